/* blobs_log on images of 1000^2, 10 scales up to 30: the time inside the operator. Peer: skimage.feature.blob_log
 * (bench/peer_measures.py), for which the images are left as raw bytes in the folder of an argument.
 */
#include "parallel.h"

typedef struct {
    fv_numbers min_sigma, max_sigma;
    int64_t    num_sigma;
    double     threshold, overlap;
    bool       log_scale;
    int64_t    exclude_border;
} blobs_log;

enum { IMAGES = 8, SIDE = 1000 };

/* Smooth spots of several sizes on a little noise. */
static void draw(uint8_t *image, uint64_t seed) {
    for (int64_t i = 0; i < SIDE * SIDE; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        image[i] = (uint8_t)(seed >> 60);
    }
    for (int spot = 0; spot < 400; spot++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        int64_t cy = (int64_t)(seed >> 34) % SIDE, cx = (int64_t)(seed >> 14 & 0xfffff) % SIDE;
        int64_t r = 4 + (int64_t)(seed >> 58) % 20;
        for (int64_t y = FV_MAX(cy - 2 * r, 0); y < FV_MIN(cy + 2 * r, SIDE); y++)
            for (int64_t x = FV_MAX(cx - 2 * r, 0); x < FV_MIN(cx + 2 * r, SIDE); x++) {
                double far = (double)((y - cy) * (y - cy) + (x - cx) * (x - cx)) / (double)(r * r);
                int    value = image[y * SIDE + x] + (int)(180 * exp(-far));
                image[y * SIDE + x] = (uint8_t)FV_MIN(value, 255);
            }
    }
}

int main(int argc, char **argv) {
    int64_t   shape[] = { IMAGES, SIDE, SIDE }, chunk[] = { 1, SIDE, SIDE };
    blobs_log params = {
        .min_sigma = { 1, { 1 } }, .max_sigma = { 1, { 30 } }, .num_sigma = 10, .threshold = 0.1, .overlap = 0.5
    };
    bench_image images = bench_image_new(FV_UINT8, 3, shape), *inputs[] = { &images };
    strcpy(images.type.image.axis[0], "t");
    for (int i = 0; i < IMAGES; i++) draw((uint8_t *)images.data + (int64_t)i * SIDE * SIDE, (uint64_t)i + 1);
    if (argc > 1) {
        char path[512];
        snprintf(path, sizeof path, "%s/spots.raw", argv[1]);
        FILE *file = fopen(path, "wb");
        if (!file || fwrite(images.data, 1, (size_t)IMAGES * SIDE * SIDE, file) == 0) perror(path);
        if (file) fclose(file);
    }
    bench_report("blobs_log 8 x 1000^2, 10 scales to 30", "blobs_log", &params, inputs, 1, chunk, 3);
    return 0;
}
