/* A box around every voxel, along one to three spatial axes: what separable and rank filters have in common.
 *
 * Kernels see three sides z, y, x; a missing one has a single voxel. All other axes are channels, filtered one by one.
 */
#ifndef FV_BOX_H
#define FV_BOX_H

#include "op/border.h"
#include "op/op.h"

typedef struct fv_box {
    int       naxes;     /* 1..3 spatial axes */
    int       axis[3];   /* their indices in the image, in order */
    int64_t   size[3];   /* of the box along each, at least 1 */
    int64_t   before[3]; /* the box of voxel i is i - before ... i - before + size - 1 */
    fv_border border;
    double    cval; /* for FV_BORDER_CONSTANT */
} fv_box;

enum { FV_SIDE_Z, FV_SIDE_Y, FV_SIDE_X };

typedef struct fv_side {
    int64_t n;                /* voxels of the image */
    int64_t start, end;       /* results wanted */
    int64_t in_start, in_end; /* what the input block holds */
    int64_t in_stride, out_stride;
    int64_t size, before; /* of the box */
} fv_side;

/* A box over the spatial axes of the image, centred as scipy does: size / 2 voxels before. */
static inline fv_box fv__box_new(const fv_image_type *type, const double *size, fv_border border, double cval) {
    fv_box box = { .border = border, .cval = cval };
    int    axis[FV_MAX_DIMS];
    box.naxes = fv_image_type_spatial(type, axis);
    for (int k = 0; k < box.naxes && k < 3; k++) {
        box.axis[k] = axis[k];
        box.size[k] = (int64_t)size[k];
        box.before[k] = box.size[k] / 2;
    }
    return box;
}

static inline fv_region fv__box_need(const fv_box *box, const fv_image_type *type, const fv_region *region) {
    int64_t before[FV_MAX_DIMS] = { 0 }, after[FV_MAX_DIMS] = { 0 };
    for (int k = 0; k < box->naxes; k++) {
        before[box->axis[k]] = box->before[k];
        after[box->axis[k]] = box->size[k] - 1 - box->before[k];
    }
    return fv__border_need(box->border, region, before, after, type->shape);
}

/* Everything but the strides. */
static inline void fv__box_sides(const fv_box *box, const fv_need *need, fv_side side[3]) {
    const fv_image_type *type = &need->in[0]->image;
    fv_region            in = fv__box_need(box, type, &need->region);
    for (int d = 0; d < 3; d++) side[d] = (fv_side){ .n = 1, .end = 1, .in_end = 1, .size = 1 };
    for (int k = 0; k < box->naxes; k++) {
        int axis = box->axis[k];
        side[k + 3 - box->naxes] = (fv_side){ .n = type->shape[axis],
                                              .start = need->region.start[axis],
                                              .end = need->region.start[axis] + need->region.size[axis],
                                              .in_start = in.start[axis],
                                              .in_end = in.start[axis] + in.size[axis],
                                              .size = box->size[k],
                                              .before = box->before[k] };
    }
}

/* Strides of the blocks, in parts of a voxel: a complex number has two. */
static inline void fv__box_strides(const fv_box *box, const fv_run *r, int parts, fv_side side[3]) {
    for (int k = 0; k < box->naxes; k++) {
        side[k + 3 - box->naxes].in_stride = r->in[0]->stride[box->axis[k]] * parts;
        side[k + 3 - box->naxes].out_stride = r->out->stride[box->axis[k]] * parts;
    }
}

/* Index in the image of voxel i of a side; -1: the constant, or looked at by no result. */
static inline int64_t fv__side_source(const fv_side *side, fv_border border, int64_t i) {
    if (i < side->start - side->before || i >= side->end + side->size - 1 - side->before) return -1;
    return fv__border_index(border, i, side->n);
}

/* Walks the channels of a region:
 *     fv_channels c; for (fv__channels_begin(&c, box, r); fv__channels_next(&c);) use(c.in, c.out)
 * in and out are the channel's first voxels in the blocks. */
typedef struct fv_channels {
    const fv_box *box;
    const fv_run *run;
    int64_t       position[FV_MAX_DIMS];
    bool          started;
    const void   *in;
    void         *out;
} fv_channels;

static inline void fv__channels_begin(fv_channels *c, const fv_box *box, const fv_run *r) {
    *c = (fv_channels){ .box = box, .run = r };
    memcpy(c->position, r->out->region.start, sizeof c->position);
}

static inline bool fv__channels_next(fv_channels *c) {
    const fv_region *region = &c->run->out->region;
    bool             more = !c->started;
    for (int d = region->ndim - 1; d >= 0 && !more; d--) {
        bool spatial = false;
        for (int k = 0; k < c->box->naxes; k++) spatial |= c->box->axis[k] == d;
        if (spatial) continue;
        more = ++c->position[d] < region->start[d] + region->size[d];
        if (!more) c->position[d] = region->start[d];
    }
    c->started = true;
    if (!more) return false;
    int64_t from[FV_MAX_DIMS];
    memcpy(from, c->position, sizeof from);
    for (int k = 0; k < c->box->naxes; k++) from[c->box->axis[k]] = c->run->in[0]->region.start[c->box->axis[k]];
    c->in = fv__block_at(c->run->in[0], from);
    c->out = fv__block_at(c->run->out, c->position);
    return true;
}

/* Piece `index` of results that are cut into `step` along one side. */
static inline void fv__sides_cut(const fv_side whole[3], int cut, int64_t step, int64_t index, fv_side piece[3]) {
    memcpy(piece, whole, 3 * sizeof *whole);
    piece[cut].start += index * step;
    piece[cut].end = FV_MIN(piece[cut].start + step, piece[cut].end);
}

/* Puts a piece of the results, dense rows of `pitch` elements, where it belongs among those of the whole. */
static inline void fv__sides_put(const fv_side *whole, const fv_side *piece, void *out, const void *dense, int64_t pitch,
                                 int64_t size) {
    const fv_side *z = &piece[FV_SIDE_Z], *y = &piece[FV_SIDE_Y], *x = &piece[FV_SIDE_X];
    const char    *from = dense;
    int64_t        nx = x->end - x->start;
    for (int64_t k = z->start - whole[FV_SIDE_Z].start; k < z->end - whole[FV_SIDE_Z].start; k++)
        for (int64_t j = y->start - whole[FV_SIDE_Y].start; j < y->end - whole[FV_SIDE_Y].start; j++, from += pitch * size) {
            char *to = (char *)out + (k * z->out_stride + j * y->out_stride) * size;
            if (x->out_stride == 1)
                memcpy(to, from, (size_t)(nx * size));
            else
                for (int64_t i = 0; i < nx; i++) memcpy(to + i * x->out_stride * size, from + i * size, (size_t)size);
        }
}

#endif
