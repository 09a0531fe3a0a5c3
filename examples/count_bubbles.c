/* Counts the bubbles in an array that this program holds in memory.
 *
 *     cc count_bubbles.c $(pkg-config --cflags --libs fovea) -o count_bubbles
 */
#include <fovea/fovea.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 96 };

/* A solid block with two round bubbles. */
static void fill(unsigned char *pixels) {
    for (int z = 0; z < SIZE; z++)
        for (int y = 0; y < SIZE; y++)
            for (int x = 0; x < SIZE; x++) {
                double small = sqrt(pow(z - 30, 2) + pow(y - 30, 2) + pow(x - 30, 2));
                double large = sqrt(pow(z - 62, 2) + pow(y - 62, 2) + pow(x - 62, 2));
                *pixels++ = small < 12 || large < 20 ? 0 : 255;
            }
}

static void show_progress(void *context, const fv_run_state *state) {
    (void)context;
    fprintf(stderr, "%3.0f%%\n", 100 * state->fraction);
}

int main(void) {
    fv_error       error = { 0 };
    fv_image_type  type, labels_type;
    fv_result     *result = NULL;
    volatile int   cancel = 0; /* a signal handler or another thread may set it */
    unsigned char *pixels = malloc((size_t)SIZE * SIZE * SIZE);
    if (!pixels) return 1;
    fill(pixels);
    fv_image_type_init(&type, FV_UINT8, 3, (int64_t[]){ SIZE, SIZE, SIZE });

    fv_pipeline *pipeline = fv_pipeline_new();
    if (fv_pipeline_array(pipeline, "block", &type, pixels, &error) != FV_OK ||
        fv_pipeline_add(pipeline, "example", "bubbles = label(block < 128)\n", &error) != FV_OK ||
        fv_pipeline_add(pipeline, "example", "sizes = measure(bubbles)\n", &error) != FV_OK ||
        fv_pipeline_keep(pipeline, "bubbles", &error) != FV_OK || fv_pipeline_keep(pipeline, "sizes", &error) != FV_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    fv_run_options options = { .workers = 2, .progress = show_progress, .cancel = &cancel };
    if (fv_pipeline_run(pipeline, &options, &result, &error) != FV_OK) {
        fprintf(stderr, "%s%s\n", fv_pipeline_messages(pipeline), error.message);
        return 1;
    }
    const int      *labels = fv_result_array(result, "bubbles", &labels_type);
    const fv_table *sizes = fv_result_table(result, "sizes");
    printf("%lld bubbles; the voxel at (62, 62, 62) has label %d\n", (long long)sizes->nrows,
           labels[(62 * SIZE + 62) * SIZE + 62]);
    for (long long row = 0; row < sizes->nrows; row++)
        printf("label %lld: %lld voxels\n", (long long)sizes->cell[row * sizes->type.ncolumns].integer,
               (long long)sizes->cell[row * sizes->type.ncolumns + 1].integer);
    fv_result_free(result);
    fv_pipeline_free(pipeline);
    free(pixels);
    return 0;
}
