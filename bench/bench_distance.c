/* distance on 256^3. Peers: scipy.ndimage.distance_transform_edt, the package edt. With a folder as argument the image is left
 * there as raw bytes for the peer.
 */
#include "parallel.h"

typedef struct {
    fv_numbers sampling;
    bool       physical, squared;
} distance;

int main(int argc, char **argv) {
    int64_t     shape[] = { 256, 256, 256 }, chunk[] = { 32, 256, 256 };
    bench_image image = bench_image_new(FV_BOOL, 3, shape), *inputs[] = { &image };
    bench_blobs(&image, 60, -1);
    if (argc > 1) {
        char path[512];
        snprintf(path, sizeof path, "%s/blobs.raw", argv[1]);
        FILE *file = fopen(path, "wb");
        if (!file || fwrite(image.data, 1, 256 * 256 * 256, file) == 0) perror(path);
        if (file) fclose(file);
    }
    distance plain = { 0 }, anisotropic = { .sampling = { 3, { 2.5, 1, 1 } } };
    distance odd = { .sampling = { 3, { 1.7320508, 1.4142135, 1 } } };
    bench_report("distance 256^3", "distance", &plain, inputs, 1, chunk, 7);
    bench_report("distance 256^3, spacing 2.5 1 1", "distance", &anisotropic, inputs, 1, chunk, 7);
    bench_report("distance 256^3, spacing in no simple ratio", "distance", &odd, inputs, 1, chunk, 5);
    memset(image.data, 1, 256 * 256 * 256);
    ((uint8_t *)image.data)[0] = 0;
    bench_report("distance 256^3, one zero", "distance", &plain, inputs, 1, chunk, 1);
    return 0;
}
