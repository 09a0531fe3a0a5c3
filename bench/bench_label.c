/* label on 512^3: smooth blobs and noise. Peer: scipy.ndimage.label(x, numpy.ones((3, 3, 3))). With a folder as argument the
 * images are left there as raw bytes for the peer.
 */
#include "parallel.h"

static void noise(bench_image *image, uint32_t percent) {
    uint64_t state = 99;
    int64_t  n = fv_image_type_voxels(&image->type.image);
    for (int64_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        ((uint8_t *)image->data)[i] = (uint32_t)(state >> 40) % 100 < percent;
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
    int64_t     shape[] = { 512, 512, 512 }, chunk[] = { 128, 128, 128 }, slab[] = { 16, 512, 512 };
    bench_image image = bench_image_new(FV_BOOL, 3, shape), *inputs[] = { &image };
    bench_blobs(&image, 40, 3);
    if (argc > 1) save(&image, argv[1], "blobs");
    for (int64_t connectivity = 1; connectivity <= 3; connectivity++) {
        char text[64];
        snprintf(text, sizeof text, "label 512^3 blobs, connectivity %d", (int)connectivity);
        bench_report(text, "label", &connectivity, inputs, 1, chunk, 3);
    }
    int64_t full = 3;
    bench_report("label 512^3 blobs, connectivity 3, slabs", "label", &full, inputs, 1, slab, 3);
    noise(&image, 30);
    if (argc > 1) save(&image, argv[1], "noise");
    for (int64_t connectivity = 1; connectivity <= 3; connectivity += 2) {
        char text[64];
        snprintf(text, sizeof text, "label 512^3 noise 30%%, connectivity %d", (int)connectivity);
        bench_report(text, "label", &connectivity, inputs, 1, chunk, 1);
    }
    return 0;
}
