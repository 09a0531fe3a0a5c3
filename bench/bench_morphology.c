/* erode on 256^3: how the footprints cost. Peer: scipy.ndimage.distance_transform_edt(x) > 12. */
#include "parallel.h"

int main(void) {
    int64_t     shape[] = { 256, 256, 256 }, chunk[] = { 128, 256, 256 }, small[] = { 64, 128, 256 };
    bench_image image = bench_image_new(FV_BOOL, 3, shape), *inputs[] = { &image };
    bench_blobs(&image, 60, -1);
    struct {
        const char  *name;
        fv_footprint footprint;
    } cases[] = {
        { "cross()", { .shape = FV_FOOTPRINT_CROSS } },
        { "ball(4)", { .shape = FV_FOOTPRINT_BALL, .radius = 4 } },
        { "ball(12)", { .shape = FV_FOOTPRINT_BALL, .radius = 12 } },
        { "ball(30)", { .shape = FV_FOOTPRINT_BALL, .radius = 30 } },
        { "disk(12)", { .shape = FV_FOOTPRINT_DISK, .radius = 12 } },
        { "box(3)", { .shape = FV_FOOTPRINT_BOX, .ndim = 1, .size = { 3 } } },
        { "box(25)", { .shape = FV_FOOTPRINT_BOX, .ndim = 1, .size = { 25 } } },
    };
    for (int i = 0; i < FV_COUNT(cases); i++) {
        char text[64];
        snprintf(text, sizeof text, "erode %s, 256^3 in 2 chunks", cases[i].name);
        bench_report(text, "erode", &cases[i].footprint, inputs, 1, chunk, 7);
    }
    bench_report("erode ball(12), 256^3 in 8 chunks", "erode", &cases[2].footprint, inputs, 1, small, 7);
    return 0;
}
