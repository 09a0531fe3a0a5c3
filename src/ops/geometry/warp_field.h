/* What warp and warp_part have in common: a field of displacements, and where it leads to. Included by their files. */
#ifndef FV_WARP_FIELD_H
#define FV_WARP_FIELD_H

#include "op/axes.h"
#include "op/kernels.h"
#include "ops/geometry/spline.h"

typedef struct {
    fv_spline  spline;
    fv_numbers limit;
    double     from, until; /* of warp_part */
} warp;

enum { IMAGE, FIELD };

/* Axes of the field: those of the image's spatial axes, and that of the components. */
typedef struct {
    int axis[3], component;
} layout;

static fv_status find_layout(const fv_mapping *m, const fv_image_type *image, const fv_image_type *field, layout *l,
                             fv_error *error) {
    if (fv_dtype_is_complex(field->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "field is %s: displacements are real numbers", fv_dtype_name(field->dtype));
    if (field->ndim != m->naxes + 1)
        return fv_fail(error, FV_ERROR_USAGE,
                       "field has %d axes; an image of %d spatial axes takes %d: one more, for the components", field->ndim,
                       m->naxes, m->naxes + 1);
    int sum = 0;
    for (int k = 0; k < m->naxes; k++) {
        const char *name = image->axis[m->axis[k]];
        sum += l->axis[k] = fv__axis_find(field, name);
        if (l->axis[k] < 0) return fv_fail(error, FV_ERROR_USAGE, "field has no axis %s, as image does", name);
    }
    l->component = field->ndim * (field->ndim - 1) / 2 - sum;
    if (field->shape[l->component] != m->naxes)
        return fv_fail(error, FV_ERROR_USAGE, "axis %s of field has %lld components; it must have %d, one for each spatial axis",
                       field->axis[l->component], (long long)field->shape[l->component], m->naxes);
    return FV_OK;
}

static fv_status check(const warp *p, const fv_type *const *in, fv_mapping *m, layout *l, fv_error *error) {
    FV_TRY(fv__spline_check(&p->spline, in[IMAGE], m, error));
    for (int k = 0; k < m->naxes; k++) m->matrix[k][k] = 0; /* every axis is interpolated */
    if (p->limit.count > 1 && p->limit.count != m->naxes)
        return fv_fail(error, FV_ERROR_USAGE, "limit has %d numbers; give one, or %d (one per axis)", p->limit.count, m->naxes);
    return find_layout(m, &in[IMAGE]->image, &in[FIELD]->image, l, error);
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const warp *p = i->params;
    fv_mapping  m;
    layout      l;
    FV_TRY(check(p, i->in, &m, &l, error));
    for (int k = 0; k < m.naxes; k++) i->out->image.shape[m.axis[k]] = i->in[FIELD]->image.shape[l.axis[k]];
    i->out->image.dtype = fv__mapping_type(m.order, i->in[IMAGE]->image.dtype);
    fv__spline_place(&m, &i->out->image);
    if (fv_image_type_bytes(&i->out->image) < 0)
        return fv_fail(error, FV_ERROR_USAGE, "the image would be larger than can be counted");
    return FV_OK;
}

static double limit_of(const warp *p, int k) { return !p->limit.count ? INFINITY : p->limit.value[p->limit.count == 1 ? 0 : k]; }

/* What a part of the result reads: its part of the field, and of the image what lies between the bounds along axis k. */
static void need_between(const fv_need *n,
                         void (*bounds)(const fv_need *n, const fv_mapping *m, int k, double *low, double *high), fv_region *in) {
    fv_mapping m;
    layout     l;
    double     low[3], high[3];
    check(n->params, n->in, &m, &l, NULL);
    in[FIELD] = fv__region_whole(&n->in[FIELD]->image);
    for (int k = 0; k < m.naxes; k++) {
        in[FIELD].start[l.axis[k]] = n->region.start[m.axis[k]];
        in[FIELD].size[l.axis[k]] = n->region.size[m.axis[k]];
        bounds(n, &m, k, &low[k], &high[k]);
    }
    fv__points_need(&m, &n->in[IMAGE]->image, low, high, &in[IMAGE]);
}

static size_t scratch_for(const fv_need *n, void (*need)(const fv_need *n, fv_region *in)) {
    fv_mapping m;
    layout     l;
    fv_region  in[FV_MAX_INPUTS];
    for (int i = 0; i < FV_MAX_INPUTS; i++) in[i] = n->region;
    check(n->params, n->in, &m, &l, NULL);
    need(n, in);
    return fv__points_scratch(&m, &n->in[IMAGE]->image, &in[IMAGE], &n->region);
}

typedef struct {
    const warp     *p;
    fv_mapping      m;
    layout          l;
    const fv_block *field;
} context;

/* Coordinates along one axis. */
static fv_status place_along(const context *c, const int64_t *position, int k, int64_t n, double *coordinate, fv_error *error) {
    int               x = c->m.naxes - 1;
    int64_t           at[FV_MAX_DIMS], stride = c->field->stride[c->l.axis[x]];
    size_t            size = fv_dtype_size(c->field->dtype);
    const fv_kernels *kernels = fv__kernels_current();
    double            limit = limit_of(c->p, k), first = (double)position[c->m.axis[k]], step = k == x;
    for (int i = 0; i <= x; i++) at[c->l.axis[i]] = position[c->m.axis[i]];
    at[c->l.component] = k;
    const char *from = fv__block_at(c->field, at);
    if (stride == 1) kernels->convert(coordinate, FV_FLOAT64, from, c->field->dtype, n);
    for (int64_t i = 0; i < n && stride != 1; i++)
        kernels->convert(&coordinate[i], FV_FLOAT64, from + i * stride * (int64_t)size, c->field->dtype, 1);
    for (int64_t i = 0; i < n; i++) {
        if (fabs(coordinate[i]) > limit)
            return fv_fail(error, FV_ERROR_INPUT, "a displacement of %g voxels along %s exceeds limit = %g: give a larger one",
                           coordinate[i],
                           k == x ? "the last axis"
                           : k    ? "the second axis"
                                  : "the first axis",
                           limit);
        coordinate[i] += first + step * (double)i;
    }
    return FV_OK;
}

#endif
