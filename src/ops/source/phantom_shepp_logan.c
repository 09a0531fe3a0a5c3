/* The Shepp-Logan phantom: ellipses (in a volume ellipsoids) of known density, with Toft's contrast. */
#include "kernels/shepp_logan.h"
#include "ops/source/phantom.h"

/* The middle of voxel i of n, from -1 to 1. */
static double place(int64_t i, int64_t n) { return ((double)(2 * i + 1) - (double)n) / (double)n; }

static void fill_row(const fv_phantom *p, int64_t z, int64_t y, float *row) {
    double v = -place(y, p->shape[1]), w = p->flat ? 0 : place(z, p->shape[0]);
    for (int64_t i = 0; i < p->size[2]; i++) row[i] = 0;
    for (int k = 0; k < FV_SHEPP_LOGAN_PARTS; k++) {
        const fv_ellipsoid *e = &fv_shepp_logan[k];
        double              rise = p->flat ? 0 : (w - e->at_z) / e->z, b = v - e->at_y;
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
            fill_row(p, z, y, (float *)p->data + fv__phantom_at(p, z, y, p->start[2]));
}
