/* relabel: numbers the labels of an image one after the other, without gaps. */
#include "kernels/label_set.h"
#include "op/chunks.h"

typedef struct {
    int64_t offset;
} relabel;

static const fv_param params[] = {
    FV_PARAM(relabel, offset, .def = "1", .min = 1, .max = 0x1p62, .doc = "the first number"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "labels", FV_KIND_IMAGE, .doc = "label image; 0 stays 0" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_dtype dtype = i->in[0]->image.dtype;
    if (fv_dtype_is_integer(dtype)) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE, "labels is %s; it must be an integer label image, such as label() makes",
                   fv_dtype_name(dtype));
}

static int64_t greatest(fv_dtype dtype) {
    int bits = (int)fv_dtype_size(dtype) * 8 - (fv_dtype_is_signed(dtype) || dtype == FV_UINT64);
    return (int64_t)(((uint64_t)1 << (bits - 1) << 1) - 1);
}

/* ---------------------------------------------------------------- pass "labels" */

static size_t labels_scratch(const fv_need *n) {
    fv__label_set set;
    return fv__label_set_init(&set, &n->region, NULL);
}

static size_t labels_bound(const fv_need *n) { return (size_t)fv__region_voxels(&n->region) * sizeof(fv__labelled); }

static fv_status labels_run(fv_run *r, fv_error *error) {
    fv__label_set set;
    fv__label_set_init(&set, &r->need.region, r->scratch);
    FV_TRY(fv__label_set_gather(&set, r->in[0], &r->need.in[0]->image, 0, error));
    fv__bytes_append(r->partial, set.item, (size_t)set.count * sizeof *set.item);
    return FV_OK;
}

static int64_t next_number(void *context, int64_t label, int64_t count) {
    (void)label;
    (void)count;
    return (*(int64_t *)context)++;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    int64_t  first = ((const relabel *)f->params)->offset, next = first;
    fv_dtype dtype = f->out->image.dtype;
    FV_TRY(fv__label_sets_merge(f, next_number, &next, error));
    if (next == first || next - 1 <= greatest(dtype)) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT, "offset = %lld: %lld labels reach beyond %lld, the greatest %s", (long long)first,
                   (long long)(next - first), (long long)greatest(dtype), fv_dtype_name(dtype));
}

/* ---------------------------------------------------------------- pass "renumber" */

static void renumber_need(const fv_need *n, fv_region *in) {
    if (n->lattice && n->lattice->ndim) in[0] = fv__lattice_align(n->lattice, &n->region);
}

static size_t renumber_scratch(const fv_need *n) {
    fv__label_set set;
    fv_region     chunk = fv__region_whole(&n->in[0]->image);
    for (int d = 0; n->lattice && n->lattice->ndim && d < chunk.ndim; d++)
        chunk.size[d] = FV_MIN(n->lattice->chunk[d], n->lattice->shape[d]);
    return fv__label_set_init(&set, &chunk, NULL);
}

#define WRITE(type)                                                                                                              \
    for (int64_t i = s->start; i < s->end; i++) ((type *)to)[i] = (type)number;                                                  \
    break;
static void write_stretch(void *to, size_t size, const fv_stretch *s, int64_t number) {
    switch (size) {
    case 1: WRITE(uint8_t)
    case 2: WRITE(uint16_t)
    case 4: WRITE(uint32_t)
    default: WRITE(uint64_t)
    }
}

static fv_status renumber_chunk(fv_run *r, int64_t chunk, fv_error *error) {
    fv_region     own = fv__lattice_chunk(r->need.lattice, chunk), part = fv__region_intersect(&own, &r->need.region);
    fv_block      in = fv__block_window(r->in[0], &own);
    int           last = part.ndim - 1;
    size_t        size = fv_dtype_size(in.dtype), have;
    fv__label_set set;
    fv_rows       rows;
    const void   *numbers;
    fv__label_set_init(&set, &own, r->scratch);
    FV_TRY(fv__label_set_gather(&set, &in, &r->need.in[0]->image, 0, error));
    FV_TRY(r->results->get(r->results, chunk, &numbers, &have, error));
    if (have != (size_t)set.count * sizeof(int64_t))
        return fv_fail(error, FV_ERROR_INTERNAL, "the numbers of chunk %lld do not fit its labels", (long long)chunk);
    for (fv__rows_begin(&rows, &part); fv__rows_next(&rows);) {
        void   *to = fv__block_at(r->out, rows.position);
        int64_t count = fv__stretches(set.row, in.dtype, fv__block_at(&in, rows.position), part.size[last]);
        memset(to, 0, (size_t)part.size[last] * size);
        for (int64_t i = 0; i < count; i++)
            write_stretch(to, size, &set.row[i], ((const int64_t *)numbers)[fv__label_set_find(&set, set.row[i].label)]);
    }
    return FV_OK;
}

static fv_status renumber_run(fv_run *r, fv_error *error) {
    fv_chunks chunks;
    for (fv__chunks_begin(&chunks, r->need.lattice, &r->need.region); fv__chunks_next(&chunks);)
        FV_TRY(renumber_chunk(r, chunks.index, error));
    return FV_OK;
}

static const fv_pass passes[] = {
    { .name = "labels", .scratch = labels_scratch, .bound = labels_bound, .run = labels_run, .finish = finish },
    { .name = "renumber", .need = renumber_need, .scratch = renumber_scratch, .run = renumber_run },
    FV_PASS_END,
};

const fv_op FV_OP(relabel) = {
    .name = "relabel",
    .family = "segmentation",
    .brief = "renumber labels without gaps",
    .also = "relabel_sequential, renumber",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(relabel),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .doc = "As skimage.segmentation.relabel_sequential: labels keep their order, 0 stays 0, and the type is kept. If the "
           "type cannot hold a number, that is an error.",
    .citation = "scikit-image: skimage.segmentation.relabel_sequential",
    .example = "phantom(\"cells\", [200, 200], noise = 0) > 100 |> label() |> remove_small(300) |> relabel() |> "
               "write(\"labels.tif\")",
    .see = "label keep remove_small",
};
