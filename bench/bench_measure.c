/* measure on 400^3 with 10,648 labels. Peer: skimage.measure.regionprops_table. With a folder as argument the images are left
 * there as raw bytes for the peer.
 */
#include "parallel.h"

/* Wavy cells of 18^3 voxels, with gaps between them. */
static void cells(bench_image *image) {
    int32_t *out = image->data;
    for (int64_t z = 0; z < 400; z++)
        for (int64_t y = 0; y < 400; y++)
            for (int64_t x = 0; x < 400; x++) {
                int64_t a = z + (int64_t)(3 * sin((double)y / 9)), b = y + (int64_t)(3 * sin((double)x / 7)),
                        c = x + (int64_t)(3 * sin((double)z / 8));
                bool    gap = (a + 36) % 18 < 2 || (b + 36) % 18 < 2 || (c + 36) % 18 < 2;
                int64_t cell = ((a + 36) / 18 % 22 * 22 + (b + 36) / 18 % 22) * 22 + (c + 36) / 18 % 22;
                *out++ = gap ? 0 : (int32_t)cell + 1;
            }
}

static void save(const bench_image *image, const char *folder, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s.raw", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(image->data, 1, (size_t)fv_image_type_bytes(&image->type.image), file) == 0) perror(path);
    if (file) fclose(file);
}

int main(int argc, char **argv) {
    static const fv_dtype dtypes[] = { FV_UINT8, FV_UINT16, FV_FLOAT32, FV_FLOAT64 };
    int64_t               shape[] = { 400, 400, 400 }, chunk[] = { 128, 128, 128 };
    bench_image           labels = bench_image_new(FV_INT32, 3, shape), *inputs[] = { &labels, NULL };
    struct {
        const char *properties;
    } none = { "" }, shapes = { "voxels centroid bbox axis_lengths extent" }, all = { "all" };
    cells(&labels);
    if (argc > 1) save(&labels, argv[1], "labels");
    bench_report("measure 400^3", "measure", &none, inputs, 1, chunk, 3);
    bench_report("measure 400^3, axis lengths", "measure", &shapes, inputs, 1, chunk, 3);
    bench_report("measure 400^3, all", "measure", &all, inputs, 1, chunk, 3);
    for (int i = 0; i < FV_COUNT(dtypes); i++) {
        bench_image intensity = bench_image_new(dtypes[i], 3, shape);
        char        text[64];
        uint64_t    state = 1;
        for (int64_t k = 0; k < 400 * 400 * 400; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            double value = (double)(state >> 56);
            if (dtypes[i] == FV_UINT8) ((uint8_t *)intensity.data)[k] = (uint8_t)value;
            if (dtypes[i] == FV_UINT16) ((uint16_t *)intensity.data)[k] = (uint16_t)value;
            if (dtypes[i] == FV_FLOAT32) ((float *)intensity.data)[k] = (float)value / 255;
            if (dtypes[i] == FV_FLOAT64) ((double *)intensity.data)[k] = value / 255;
        }
        if (argc > 1) save(&intensity, argv[1], fv_dtype_name(dtypes[i]));
        inputs[1] = &intensity;
        snprintf(text, sizeof text, "measure 400^3 with %s", fv_dtype_name(dtypes[i]));
        bench_report(text, "measure", &none, inputs, 2, chunk, 3);
        fv__buffer_free(intensity.data, (size_t)fv_image_type_bytes(&intensity.type.image));
    }
    return 0;
}
