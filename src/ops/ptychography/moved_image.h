/* An image and a part of its change: what ptycho_move and ptycho_follow make, each by a step of its own. */
#ifndef FV_MOVED_IMAGE_H
#define FV_MOVED_IMAGE_H

#include "op/op.h"

/* image + by * change, for the region of the output. image, change: numbers of the inputs. */
static inline void fv__move_image(const fv_run *r, int image, int change, float by) {
    fv_rows rows;
    for (fv__rows_begin(&rows, &r->out->region); fv__rows_next(&rows);) {
        const float *a = fv__block_at(r->in[image], rows.position), *b = fv__block_at(r->in[change], rows.position);
        float *restrict to = fv__block_at(r->out, rows.position);
        int64_t n = r->out->region.size[r->out->region.ndim - 1];
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) to[x] = a[x] + by * b[x];
    }
}

/* In one: whoever needs it needs all of it. */
static inline void fv__move_slab(const fv_need *n, int64_t *chunk) {
    memcpy(chunk, n->out->image.shape, (size_t)n->out->image.ndim * sizeof *chunk);
}

#endif
