/* count: number of voxels that are not zero. */
#include "op/interval.h"
#include "op/reduce.h"

static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image or mask" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) { return fv__infer_scalar(i, FV_INT64, error); }

/* Blocks of 2^16, so that the inner sum can be narrow and the loop wide. */
#define COUNT(TYPE)                                                                                                              \
    for (int64_t done = 0; done < n; done += 1 << 16) {                                                                          \
        int64_t  end = FV_MIN(n, done + (1 << 16));                                                                              \
        uint32_t found = 0;                                                                                                      \
        for (int64_t i = done; i < end; i++) found += ((const TYPE *)data)[i] != 0;                                              \
        count += found;                                                                                                          \
    }                                                                                                                            \
    break;

static int64_t count_row(const void *data, fv_dtype dtype, int64_t n) {
    int64_t count = 0;
    switch (dtype) {
    case FV_FLOAT32: COUNT(float)
    case FV_FLOAT64: COUNT(double)
    default:
        switch (fv_dtype_size(dtype)) {
        case 1: COUNT(uint8_t)
        case 2: COUNT(uint16_t)
        case 4: COUNT(uint32_t)
        default: COUNT(uint64_t)
        }
    }
    return count;
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const fv_block *block = r->in[0];
    int64_t         count = 0, n = block->region.ndim ? block->region.size[block->region.ndim - 1] : 1;
    fv_rows         rows;
    for (fv__rows_begin(&rows, &block->region); fv__rows_next(&rows);)
        count += count_row(fv__block_at(block, rows.position), block->dtype, n);
    fv__bytes_append(r->partial, &count, sizeof count);
    return FV_OK;
}

static void combine(const void *params, fv_bytes *into, const void *partial, size_t size) {
    (void)params;
    (void)size;
    int64_t a, b;
    memcpy(&a, into->data, sizeof a);
    memcpy(&b, partial, sizeof b);
    a += b;
    memcpy(into->data, &a, sizeof a);
}

static fv_status finish(fv_finish *f, fv_error *error) {
    const int64_t *count;
    FV_TRY(fv__finish_partial(f, (const void **)&count, sizeof *count, error));
    return fv__put_whole(f, count ? *count : 0, error);
}

static const fv_pass passes[] = { { .run = run, .combine = combine, .finish = finish }, FV_PASS_END };

const fv_op FV_OP(count) = {
    .name = "count",
    .family = "statistics",
    .brief = "number of voxels that are not zero",
    .version = 1,
    .also = "count_nonzero, nnz, countNonZero",
    .doc = "As numpy.count_nonzero; nan counts as not zero. It counts pixels, not objects: the number of objects is "
           "max(label(mask)).",
    .inputs = inputs,
    .result = FV_KIND_SCALAR,
    .infer = infer,
    .passes = passes,
    .example = "count(phantom(\"cells\", [200, 200]) > 100)",
    .see = "sum label measure",
};

const fv_estimator FV_ESTIMATOR(count) = { .estimate = fv__estimate_count };
