/* Erosion by a ball, disk or cross: the bounded squared distance to the nearest voxel that erodes ("seed").
 *
 * A lane holds the closeness limit + 1 - d*d of a voxel whose nearest seed lies d away, and 0 beyond the limit or without a
 * seed, so that everything is a maximum and the outside of the image is simply 0. The first axis is scanned up and down with a
 * distance counter; along the others closeness spreads by direct search, max over k of close[i +- k] - k*k in saturating
 * lanes (8 bits for radii below 16, 16 bits below 256, else 32). A voxel is eroded if its closeness ends above 0.
 */
#include "kernels/vectors.h"
#include "ops/morphology/erosion.h"

/* One run: the element, both regions, and scratch. closeness is what the scan of the first axis leaves, over the region
 * `scanned`; a line is the last axis of the element with the axes inside it. */
typedef struct {
    const fv__element *e;
    const fv_block    *in, *out;
    uint8_t            flip; /* in ^ flip is 0 at a seed */
    fv_region          from, to, scanned;
    int64_t            inside; /* voxels of the axes inside the last one */
    int64_t            in_line, out_line, padded_line, rows_at_once;
    void              *closeness, *counters, *spread, *padded, *result, *nothing;
    const void       **near;
} round_run;

#define SLACK 256 /* bytes that vectors may touch behind a line */
#define LANE uint8_t
#define LANES fv_u8v
#define NAME(name) name##_u8
#include "ops/morphology/erosion_round_lanes.h"
#define LANE uint16_t
#define LANES fv_u16v
#define NAME(name) name##_u16
#include "ops/morphology/erosion_round_lanes.h"
#define LANE uint32_t
#define LANES fv_u32v
#define NAME(name) name##_u32
#include "ops/morphology/erosion_round_lanes.h"

static int64_t lane_bytes(const fv__element *e) { return e->limit < UINT8_MAX ? 1 : e->limit < UINT16_MAX ? 2 : 4; }

static size_t lay_out(round_run *r, void *scratch) {
    const fv__element *e = r->e;
    int                n = e->count, axis = e->axis[n - 1];
    int64_t            lane = lane_bytes(e), widest = 0;
    fv_scratch         pieces = { scratch, 0 };
    r->inside = fv__voxels_inside(&r->to, axis + 1);
    r->in_line = r->from.size[axis] * r->inside;
    r->out_line = r->to.size[axis] * r->inside;
    r->padded_line = r->out_line + 2 * e->half[n - 1] * r->inside;
    r->rows_at_once = FV_MIN(16, FV_MAX(1, 4096 / FV_MAX(1, r->from.size[r->to.ndim - 1])));
    r->scanned = fv__cut(r->from, &r->to, e->axis[0]);
    for (int i = 0; i < n; i++) widest = FV_MAX(widest, e->half[i]);
    if (n > 1) r->closeness = fv__scratch_take(&pieces, fv__region_voxels(&r->scanned) * lane + SLACK);
    if (n > 1) r->counters = fv__scratch_take(&pieces, r->rows_at_once * r->from.size[r->to.ndim - 1] * lane);
    r->spread = fv__scratch_take(&pieces, r->in_line * lane + SLACK);
    r->padded = fv__scratch_take(&pieces, r->padded_line * lane + SLACK);
    r->result = fv__scratch_take(&pieces, r->out_line * lane + SLACK);
    r->nothing = fv__scratch_take(&pieces, r->in_line * lane + SLACK);
    r->near = fv__scratch_take(&pieces, (2 * widest + 1) * (int64_t)sizeof *r->near);
    return pieces.used;
}

size_t fv__erode_round(const fv__element *e, const fv_region *from, const fv_region *to, const fv_block *in, const fv_block *out,
                       bool dilate, void *scratch) {
    round_run r = { .e = e, .in = in, .out = out, .flip = dilate, .from = *from, .to = *to };
    size_t    used = lay_out(&r, scratch);
    if (!in) return used;
    switch (lane_bytes(e)) {
    case 1: erode_u8(&r); break;
    case 2: erode_u16(&r); break;
    default: erode_u32(&r); break;
    }
    return used;
}
