/* The Shepp-Logan phantom: ellipses (in a volume ellipsoids) of known density, with Toft's contrast. */
#include "ops/source/phantom.h"

typedef struct { double density, x, y, z, at_x, at_y, at_z, cosine, sine; } ellipsoid;

#define TILT_COSINE 0.9510565162951535 /* 18 degrees */
#define TILT_SINE 0.3090169943749474

/* Half axes, middle and turn about z; the image spans -1 to 1 and y points up. */
static const ellipsoid head[] = {
    { 1, 0.69, 0.92, 0.81, 0, 0, 0, 1, 0 },
    { -0.8, 0.6624, 0.874, 0.78, 0, -0.0184, 0, 1, 0 },
    { -0.2, 0.11, 0.31, 0.22, 0.22, 0, 0, TILT_COSINE, -TILT_SINE },
    { -0.2, 0.16, 0.41, 0.28, -0.22, 0, 0, TILT_COSINE, TILT_SINE },
    { 0.1, 0.21, 0.25, 0.41, 0, 0.35, -0.15, 1, 0 },
    { 0.1, 0.046, 0.046, 0.05, 0, 0.1, 0.25, 1, 0 },
    { 0.1, 0.046, 0.046, 0.05, 0, -0.1, 0.25, 1, 0 },
    { 0.1, 0.046, 0.023, 0.05, -0.08, -0.605, 0, 1, 0 },
    { 0.1, 0.023, 0.023, 0.02, 0, -0.606, 0, 1, 0 },
    { 0.1, 0.023, 0.046, 0.02, 0.06, -0.605, 0, 1, 0 },
};
enum { PARTS = (int)(sizeof head / sizeof *head) };

/* The middle of voxel i of n, from -1 to 1. */
static double place(int64_t i, int64_t n) { return ((double)(2 * i + 1) - (double)n) / (double)n; }

static void fill_row(const fv_phantom *p, int64_t z, int64_t y, float *row) {
    double v = -place(y, p->shape[1]), w = p->flat ? 0 : place(z, p->shape[0]);
    for (int64_t i = 0; i < p->size[2]; i++) row[i] = 0;
    for (int k = 0; k < PARTS; k++) {
        const ellipsoid *e = &head[k];
        double           rise = p->flat ? 0 : (w - e->at_z) / e->z, b = v - e->at_y;
        for (int64_t i = 0; i < p->size[2] && rise * rise <= 1; i++) {
            double a = place(p->start[2] + i, p->shape[2]) - e->at_x;
            double across = (a * e->cosine + b * e->sine) / e->x, along = (b * e->cosine - a * e->sine) / e->y;
            row[i] += across * across + along * along + rise * rise <= 1 ? (float)e->density : 0;
        }
    }
}

void FV_ISA_NAME(fv__phantom_shepp_logan)(const fv_phantom *p) {
    for (int64_t z = p->start[0]; z < p->start[0] + p->size[0]; z++)
        for (int64_t y = p->start[1]; y < p->start[1] + p->size[1]; y++)
            fill_row(p, z, y, (float *)p->data + fv_phantom_at(p, z, y, p->start[2]));
}
