/* The arrays of the conformance suite, and pipelines on them. */
#include "support/case_pipeline.h"
#include "support/test.h"

typedef struct {
    const char *name;
    fv_dtype    dtype;
    int         ndim;
    int64_t     shape[4];
    bool        colour;
} input;

static const input inputs[] = {
    { "f", FV_FLOAT32, 3, { 11, 23, 37 }, false }, { "u", FV_UINT8, 3, { 11, 23, 37 }, false },
    { "s", FV_INT16, 3, { 9, 20, 31 }, false },    { "d", FV_FLOAT64, 2, { 14, 33 }, false },
    { "m", FV_BOOL, 3, { 12, 25, 30 }, false },    { "l", FV_INT32, 3, { 12, 25, 30 }, false },
    { "p", FV_UINT8, 2, { 41, 57 }, false },       { "q", FV_BOOL, 2, { 45, 50 }, false },
    { "c", FV_UINT8, 3, { 21, 33, 3 }, true },
};

/* Smooth enough that masks have components and labels have some size. */
static void fill(const input *in, void *data, int64_t voxels) {
    uint64_t state = (uint64_t)in->name[0];
    for (int64_t i = 0; i < voxels; i++) {
        uint64_t r = test_random(&state);
        switch (in->dtype) {
        case FV_FLOAT32: ((float *)data)[i] = (float)(r >> 40) * 0x1p-24f; break;
        case FV_FLOAT64: ((double *)data)[i] = (double)(r >> 11) * 0x1p-53; break;
        case FV_UINT8: ((uint8_t *)data)[i] = (uint8_t)r; break;
        case FV_INT16: ((int16_t *)data)[i] = (int16_t)(r % 2001) - 1000; break;
        case FV_BOOL: ((uint8_t *)data)[i] = r % 100 < 60; break;
        default: ((int32_t *)data)[i] = r % 3 ? (int32_t)((i / 7) % 11) : 0; break;
        }
    }
}

static void *pixels[FV_COUNT(inputs)];

/* The first input once more, read piece by piece. */
static fv_status read_first(void *context, const int64_t *start, const int64_t *count, const int64_t *stride, void *data,
                            fv_error *error) {
    (void)error;
    const fv_image_type *type = context;
    fv_region            whole = fv__region_whole(type), region = { .ndim = type->ndim };
    fv_block             from, to = { .dtype = type->dtype, .data = data };
    memcpy(region.start, start, (size_t)type->ndim * sizeof *start);
    memcpy(region.size, count, (size_t)type->ndim * sizeof *count);
    to.region = region;
    memcpy(to.stride, stride, (size_t)type->ndim * sizeof *stride);
    fv__block_init(&from, type->dtype, &whole, pixels[0]);
    fv__block_copy(&to, &from);
    return FV_OK;
}

static fv_image_type type_of(const input *in) {
    fv_image_type type;
    fv_image_type_init(&type, in->dtype, in->ndim, in->shape);
    if (in->colour) {
        strcpy(type.axis[0], "y");
        strcpy(type.axis[1], "x");
        strcpy(type.axis[2], "c");
    }
    return type;
}

fv_pipeline *test_case_pipeline(const char *expression, bool voxels, fv_error *error) {
    fv_pipeline *p = fv_pipeline_new();
    for (int i = 0; i < FV_COUNT(inputs); i++) {
        fv_image_type type = type_of(&inputs[i]);
        if (!pixels[i]) {
            pixels[i] = fv__alloc((size_t)fv_image_type_bytes(&type));
            fill(&inputs[i], pixels[i], fv_image_type_voxels(&type));
        }
        fv_pipeline_array(p, inputs[i].name, &type, voxels ? pixels[i] : NULL, error);
        if (i) continue;
        static fv_image_type first;
        first = type;
        fv_pipeline_source(p, "pieces", &type, (const int64_t[]){ 5, 7, 11, 1, 1, 1 }, "pieces", read_first, &first, error);
    }
    char *text = fv__sprintf("result = %s\n", expression);
    if (fv_pipeline_add(p, "case", text, error) != FV_OK) fv_fail(error, FV_ERROR_USAGE, "%s", fv_pipeline_messages(p));
    free(text);
    return p;
}

fv_block test_case_array(int number) {
    int           i = number > 1 ? number - 1 : 0; /* pieces comes after the first */
    fv_image_type type = type_of(&inputs[i]);
    fv_region     whole = fv__region_whole(&type);
    fv_block      block;
    fv__block_init(&block, type.dtype, &whole, pixels[i]);
    return block;
}
