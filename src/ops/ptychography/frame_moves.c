/* Where a frame fits better. */
#include "ops/ptychography/frame_moves.h"

static void add_row(const fv_move_planes *k, int64_t y, int64_t n, float lanes[FV_MOVE_SUMS][FV_WAVE_LANES]) {
    const float *p = k->probe.data + y * k->probe.row, *q = p + k->probe.part;
    const float *e = k->error.data + y * k->error.row, *g = e + k->error.part;
    const float *o = k->object.data + y * k->object.row, *i = o + k->object.part;
    int64_t      down = k->object.row;
    for (int64_t x = 1; x + 1 < n; x++) {
        int   l = (int)(x % FV_WAVE_LANES);
        float ur = (o[x + down] - o[x - down]) / 2, ui = (i[x + down] - i[x - down]) / 2;
        float vr = (o[x + 1] - o[x - 1]) / 2, vi = (i[x + 1] - i[x - 1]) / 2;
        float ar = p[x] * ur - q[x] * ui, ai = p[x] * ui + q[x] * ur, br = p[x] * vr - q[x] * vi, bi = p[x] * vi + q[x] * vr;
        lanes[0][l] += ar * ar + ai * ai;
        lanes[1][l] += br * br + bi * bi;
        lanes[2][l] += ar * br + ai * bi;
        lanes[3][l] += ar * e[x] + ai * g[x];
        lanes[4][l] += br * e[x] + bi * g[x];
    }
}

void fv__move_add(const fv_move_planes *planes, int64_t height, int64_t width, double sums[FV_MOVE_SUMS]) {
    for (int64_t y = 1; y + 1 < height; y++) {
        float lanes[FV_MOVE_SUMS][FV_WAVE_LANES] = { { 0 } };
        add_row(planes, y, width, lanes);
        for (int s = 0; s < FV_MOVE_SUMS; s++) sums[s] += fv__lanes_sum(lanes[s]);
    }
}
