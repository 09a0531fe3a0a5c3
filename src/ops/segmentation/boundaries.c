/* boundaries: marks voxels next to another label. */
#include "op/op.h"

typedef struct {
    int64_t   connectivity;
    fv_choice mode;
    int64_t   background;
} boundaries;

enum { THICK, INNER, OUTER };

static const fv_param params[] = {
    FV_PARAM(boundaries, connectivity, .def = "1", .min = 1, .max = 3,
             .doc = "which voxels are neighbours: 1 by faces, 2 also by edges, 3 also by corners"),
    FV_PARAM(boundaries, mode, .def = "thick", .choices = "thick|inner|outer",
             .doc = "thick: on both sides of an outline; inner: only inside labels; outer: in the background, and between "
                    "labels that touch"),
    FV_PARAM(boundaries, background, .def = "0", .doc = "the label of the background, for inner and outer"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "labels", FV_KIND_IMAGE, .doc = "label image, or bool image" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *image = &i->in[0]->image;
    int64_t              given = ((const boundaries *)i->params)->connectivity;
    int                  spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    if (image->dtype != FV_BOOL && !fv_dtype_is_integer(image->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "labels is %s; it must be an integer label image or bool",
                       fv_dtype_name(image->dtype));
    if (n < 1 || n > 3)
        return fv_fail(error, FV_ERROR_USAGE, "labels has %d spatial axes; one to three named z, y, x are needed", n);
    if (given > n)
        return fv_fail(error, FV_ERROR_USAGE, "connectivity = %lld: at most %d, the number of spatial axes of the image",
                       (long long)given, n);
    i->out->image.dtype = FV_BOOL;
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    int     spatial[FV_MAX_DIMS], count = fv_image_type_spatial(&n->in[0]->image, spatial);
    int64_t one[FV_MAX_DIMS] = { 0 };
    for (int k = 0; k < count; k++) one[spatial[k]] = 1;
    in[0] = fv__region_grow(&n->region, one, one);
    in[0] = fv__region_clip(&in[0], n->in[0]->image.shape);
}

/* A bit for what the neighbours at one offset are: 1 another label, 2 another label that is not background. */
#define NEAR(type)                                                                                                               \
    for (int64_t i = 0; i < n; i++) {                                                                                            \
        type    a = ((const type *)own)[i], b = ((const type *)near)[i];                                                         \
        uint8_t other = a != b;                                                                                                  \
        to[i] |= (uint8_t)(other | (uint8_t)(other & (uint8_t)(b != (type)background)) << 1) & bits;                             \
    }                                                                                                                            \
    break;
static void look(uint8_t *restrict to, const void *own, const void *near, size_t size, int64_t background, uint8_t bits,
                 int64_t n) {
    switch (size) {
    case 1: NEAR(uint8_t)
    case 2: NEAR(uint16_t)
    case 4: NEAR(uint32_t)
    default: NEAR(uint64_t)
    }
}

#define DECIDE(type)                                                                                                             \
    for (int64_t i = 0; i < n; i++) {                                                                                            \
        uint8_t back = ((const type *)own)[i] == (type)background, edge = to[i] & 1, two = to[i] >> 1;                           \
        to[i] = mode == THICK ? edge : mode == INNER ? edge & !back : edge & (back | two);                                       \
    }                                                                                                                            \
    break;
static void decide(uint8_t *to, const void *own, size_t size, int64_t background, int mode, int64_t n) {
    switch (size) {
    case 1: DECIDE(uint8_t)
    case 2: DECIDE(uint16_t)
    case 4: DECIDE(uint32_t)
    default: DECIDE(uint64_t)
    }
}

/* The neighbours of a row at one offset, where they lie in the image. */
static void look_at(const fv_run *r, const int *step, const int *spatial, int count, const int64_t *position, uint8_t bits,
                    uint8_t *to, int64_t n) {
    const boundaries *p = r->need.params;
    const fv_block   *in = r->in[0];
    int               last = in->region.ndim - 1;
    int64_t           own[FV_MAX_DIMS], near[FV_MAX_DIMS], from = 0, end = n;
    memcpy(near, position, sizeof near);
    memcpy(own, position, sizeof own);
    for (int k = 0; k < count; k++) {
        int d = spatial[k];
        near[d] += step[k];
        if (d == last) {
            from = near[d] < 0;
            end = n - (near[d] + n > r->need.in[0]->image.shape[d]);
        } else if (near[d] < 0 || near[d] >= r->need.in[0]->image.shape[d])
            return;
    }
    if (from >= end) return;
    own[last] += from;
    near[last] += from;
    look(to + from, fv__block_at(in, own), fv__block_at(in, near), fv_dtype_size(in->dtype), p->background, bits, end - from);
}

static void find_row(const fv_run *r, const int64_t *position, uint8_t *to, int64_t n) {
    const boundaries *p = r->need.params;
    int               spatial[FV_MAX_DIMS], count = fv_image_type_spatial(&r->need.in[0]->image, spatial);
    memset(to, 0, (size_t)n);
    for (int code = 0; code < 27; code++) {
        int  full[3] = { code / 9 - 1, code / 3 % 3 - 1, code % 3 - 1 }, step[3] = { 0 }, steps = 0;
        bool exists = true;
        for (int k = 0; k < 3; k++) {
            steps += full[k] != 0;
            if (k < 3 - count)
                exists = exists && !full[k];
            else
                step[k - (3 - count)] = full[k];
        }
        uint8_t bits = (uint8_t)((steps <= p->connectivity ? 1 : 0) | (p->mode.index == OUTER ? 2 : 0));
        if (exists && steps && bits) look_at(r, step, spatial, count, position, bits, to, n);
    }
    decide(to, fv__block_at(r->in[0], position), fv_dtype_size(r->in[0]->dtype), p->background, p->mode.index, n);
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    fv_rows rows;
    int64_t n = r->need.region.size[r->need.region.ndim - 1];
    for (fv__rows_begin(&rows, &r->need.region); fv__rows_next(&rows);)
        find_row(r, rows.position, fv__block_at(r->out, rows.position), n);
    return FV_OK;
}

static double cost(const fv_need *n) {
    (void)n;
    return 2;
}

static const fv_pass passes[] = { { .need = need, .run = run }, FV_PASS_END };

const fv_op FV_OP(boundaries) = {
    .name = "boundaries",
    .family = "segmentation",
    .brief = "mark the outlines of labels",
    .also = "find_boundaries, bwperim, boundarymask",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(boundaries),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "True at voxels next to another label. As skimage.segmentation.find_boundaries, without its mode subpixel, which "
           "gives an image of another size.",
    .citation = "scikit-image: skimage.segmentation.find_boundaries",
    .example = "phantom(\"cells\", [200, 200], noise = 0) > 100 |> label() |> boundaries(mode = \"inner\") |> "
               "write(\"outlines.png\")",
    .see = "label colorize gradient",
};
