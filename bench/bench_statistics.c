/* Times reductions on an image in memory, on one thread, with the speed of reading the same memory for comparison.
 *
 *     bench_statistics [NAME ...]        only these operators
 *
 * prints nanoseconds a voxel and GB/s of the best of several runs; `read` is a plain sum of 64-bit words. */
#include "support/apply.h"
#include "support/test.h"

enum { SIDE = 2048, ROUNDS = 7 };

static double best_read(const test_image *image) {
    double   best = 1e9;
    int64_t  words = fv_image_type_bytes(&image->type.image) / 8;
    uint64_t keep = 0;
    for (int k = 0; k < ROUNDS; k++) {
        double          start = fv__now();
        const uint64_t *x = image->data;
        for (int64_t i = 0; i < words; i++) keep += x[i];
        best = FV_MIN(best, fv__now() - start);
    }
    return keep == 42 ? 0 : best;
}

static double best_run(const char *op, const char *params, test_image *image) {
    double best = 1e9;
    for (int k = 0; k < ROUNDS; k++) {
        test_output out;
        fv_error    error = { 0 };
        if (test_apply(op, params, &image, 1, NULL, 0, &out, &error) != FV_OK) {
            fprintf(stderr, "%s: %s\n", op, error.message);
            exit(1);
        }
        best = FV_MIN(best, out.seconds);
        test_output_free(&out);
    }
    return best;
}

int main(int argc, char **argv) {
    static const struct {
        const char *op, *params;
    } ops[] = { { "sum", "" },   { "mean", "" },      { "var", "" },           { "min", "" },
                { "count", "" }, { "histogram", "" }, { "quantile", "q=0.5" }, { "otsu", "" } };
    static const fv_dtype types[] = { FV_UINT8, FV_UINT16, FV_FLOAT32, FV_FLOAT64 };
    for (int t = 0; t < FV_COUNT(types); t++) {
        test_image image = test_image_new(types[t], 2, (int64_t[]){ SIDE, SIDE });
        test_image_random(&image, 1);
        double bytes = (double)fv_image_type_bytes(&image.type.image), voxels = (double)SIDE * SIDE, read = best_read(&image);
        printf("%-8s %-10s %6.3f ns  %6.2f GB/s\n", fv_dtype_name(types[t]), "read", read / voxels * 1e9, bytes / read / 1e9);
        for (int o = 0; o < FV_COUNT(ops); o++) {
            bool wanted = argc < 2;
            for (int k = 1; k < argc; k++) wanted = wanted || !strcmp(argv[k], ops[o].op);
            if (!wanted) continue;
            double seconds = best_run(ops[o].op, ops[o].params, &image);
            printf("%-8s %-10s %6.3f ns  %6.2f GB/s\n", fv_dtype_name(types[t]), ops[o].op, seconds / voxels * 1e9,
                   bytes / seconds / 1e9);
        }
        test_image_free(&image);
    }
    return 0;
}
