/* One operator on arrays in memory, whole or by poisoned chunks. */
#include "support/apply.h"
#include "op/kernels.h"
#include "op/params.h"
#include "op/registry.h"
#include "support/test.h"

/* ---------------------------------------------------------------- images */

test_image test_image_new(fv_dtype dtype, int ndim, const int64_t *shape) {
    test_image image = { .type.kind = FV_KIND_IMAGE };
    fv_image_type_init(&image.type.image, dtype, ndim, shape);
    image.data = fv__calloc((size_t)fv_image_type_bytes(&image.type.image));
    return image;
}

test_image test_scalar(double value) {
    return (test_image){ .type = { .kind = FV_KIND_SCALAR, .dtype = FV_FLOAT64 },
                         .scalar = { .dtype = FV_FLOAT64, .real = value } };
}

void test_image_random(test_image *image, uint64_t seed) {
    int64_t  n = fv_image_type_voxels(&image->type.image);
    uint64_t state = seed;
    for (int64_t i = 0; i < n; i++) {
        uint64_t r = test_random(&state) >> 11;
        double   u = (double)r * 0x1p-53;
        switch (image->type.image.dtype) {
        case FV_BOOL: ((uint8_t *)image->data)[i] = r & 1; break;
        case FV_UINT8: ((uint8_t *)image->data)[i] = (uint8_t)(u * 256); break;
        case FV_INT8: ((int8_t *)image->data)[i] = (int8_t)(u * 256 - 128); break;
        case FV_UINT16: ((uint16_t *)image->data)[i] = (uint16_t)(u * 65536); break;
        case FV_INT16: ((int16_t *)image->data)[i] = (int16_t)(u * 65536 - 32768); break;
        case FV_UINT32: ((uint32_t *)image->data)[i] = (uint32_t)(u * 4e9); break;
        case FV_INT32: ((int32_t *)image->data)[i] = (int32_t)(u * 4e9 - 2e9); break;
        case FV_UINT64: ((uint64_t *)image->data)[i] = r << 10; break;
        case FV_INT64: ((int64_t *)image->data)[i] = (int64_t)(r << 10) - ((int64_t)1 << 62); break;
        case FV_FLOAT32: ((float *)image->data)[i] = (float)u; break;
        case FV_FLOAT64: ((double *)image->data)[i] = u; break;
        default: break;
        }
    }
}

void test_image_free(test_image *image) {
    free(image->data);
    image->data = NULL;
}

void test_output_free(test_output *output) {
    free(output->data);
    free(output->cells);
    *output = (test_output){ 0 };
}

/* ---------------------------------------------------------------- parameters */

static bool parse_footprint(const char *text, fv_literal *literal) {
    fv_footprint f = { 0 };
    const char  *open = strchr(text, '(');
    if (!open) return false;
    if (!strncmp(text, "cross", 5)) f.shape = FV_FOOTPRINT_CROSS;
    if (!strncmp(text, "ball", 4)) f.shape = FV_FOOTPRINT_BALL;
    if (!strncmp(text, "disk", 4)) f.shape = FV_FOOTPRINT_DISK;
    if (!strncmp(text, "box", 3)) f.shape = FV_FOOTPRINT_BOX;
    f.radius = atof(open + 1);
    if (f.shape == FV_FOOTPRINT_BOX)
        for (const char *p = open; p && f.ndim < FV_MAX_DIMS; p = strchr(p + 1, ',')) f.size[f.ndim++] = atoll(p + 1);
    *literal = (fv_literal){ .kind = FV_LITERAL_FOOTPRINT, .footprint = f };
    return f.shape != FV_FOOTPRINT_NONE;
}

static fv_status set_params(const fv_op *op, const char *text, void *params, fv_arena *arena, fv_error *error) {
    fv__params_default(op, params);
    char *copy = fv__arena_strdup(arena, text ? text : ""), *save = NULL;
    for (char *word = strtok_r(copy, ";", &save); word; word = strtok_r(NULL, ";", &save)) {
        word += strspn(word, " ");
        if (!*word) continue;
        char *equal = strchr(word, '=');
        if (!equal) return fv_fail(error, FV_ERROR_USAGE, "test: %s has no =", word);
        *equal = 0;
        for (char *end = equal - 1; end > word && *end == ' '; end--) *end = 0;
        const fv_param *param = fv__params_find(op, word);
        if (!param) return fv_fail(error, FV_ERROR_USAGE, "test: no parameter %s", word);
        fv_literal  literal;
        const char *value = equal + 1 + strspn(equal + 1, " ");
        if (param->kind == FV_PARAM_FOOTPRINT ? !parse_footprint(value, &literal) : !fv__literal_parse(value, &literal, arena))
            return fv_fail(error, FV_ERROR_USAGE, "test: bad value %s", value);
        FV_TRY(fv__params_set(op, param, params, &literal, arena, error));
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- running */

typedef struct {
    fv_results base;
    fv_bytes  *blob;
    int64_t    count;
} blobs;
typedef struct {
    fv_finish base;
    fv_bytes *partial;
    blobs    *results;
} finishing;

static fv_status get_result(fv_results *results, int64_t index, const void **data, size_t *size, fv_error *error) {
    (void)error;
    blobs *b = (blobs *)results;
    *data = index < b->count ? b->blob[index].data : NULL;
    *size = index < b->count ? b->blob[index].size : 0;
    return FV_OK;
}
static size_t    partial_size(fv_finish *f, int64_t i) { return ((finishing *)f)->partial[i].size; }
static fv_status partial_get(fv_finish *f, int64_t i, const void **data, fv_error *error) {
    (void)error;
    *data = ((finishing *)f)->partial[i].data;
    return FV_OK;
}
static fv_status partial_read(fv_finish *f, int64_t i, size_t offset, void *data, size_t size, fv_error *error) {
    (void)error;
    memcpy(data, ((finishing *)f)->partial[i].data + offset, size);
    return FV_OK;
}
static fv_status result_put(fv_finish *f, int64_t index, const void *data, size_t size, fv_error *error) {
    (void)error;
    blobs *b = ((finishing *)f)->results;
    if (index >= b->count) {
        b->blob = fv__realloc(b->blob, (size_t)(index + 1) * sizeof *b->blob);
        memset(b->blob + b->count, 0, (size_t)(index + 1 - b->count) * sizeof *b->blob);
        b->count = index + 1;
    }
    fv__bytes_append(&b->blob[index], data, size);
    return FV_OK;
}

static void free_blobs(blobs *b) {
    for (int64_t i = 0; i < b->count; i++) fv__bytes_release(&b->blob[i]);
    free(b->blob);
    *b = (blobs){ .base.get = get_result };
}

/* A copy of region of the image inside a margin of poison. */
static fv_block poisoned(const test_image *image, const fv_region *region, uint8_t poison, void **memory) {
    int64_t margin[FV_MAX_DIMS];
    for (int d = 0; d < region->ndim; d++) margin[d] = d == region->ndim - 1 ? 8 : 2;
    fv_region grown = fv__region_grow(region, margin, margin);
    size_t    size = (size_t)fv__region_voxels(&grown) * fv_dtype_size(image->type.image.dtype);
    *memory = fv__buffer_new(size);
    memset(*memory, poison, size);
    fv_block outer, whole;
    fv__block_init(&outer, image->type.image.dtype, &grown, *memory);
    fv_block  inner = fv__block_window(&outer, region);
    fv_region all = fv__region_whole(&image->type.image);
    fv__block_init(&whole, image->type.image.dtype, &all, image->data);
    fv__block_copy(&inner, &whole);
    return inner;
}

static fv_status run_chunk(const fv_pass *pass, fv_run *r, test_image *const *inputs, int ninputs, bool whole, uint8_t poison,
                           double *seconds, fv_error *error) {
    fv_region need[FV_MAX_INPUTS];
    fv_block  block[FV_MAX_INPUTS];
    void     *memory[FV_MAX_INPUTS] = { 0 };
    for (int i = 0; i < FV_MAX_INPUTS; i++) need[i] = r->need.region;
    if (pass->need) pass->need(&r->need, need);
    size_t size[FV_MAX_INPUTS] = { 0 };
    for (int i = 0; i < ninputs; i++) {
        if (!inputs[i]) continue;
        if (inputs[i]->type.kind == FV_KIND_SCALAR) {
            r->scalar[i] = &inputs[i]->scalar;
            continue;
        }
        fv_region all = fv__region_whole(&inputs[i]->type.image);
        if (!fv__region_inside(&need[i], &all)) return fv_fail(error, FV_ERROR_INTERNAL, "need of input %d leaves the image", i);
        if (whole && fv__region_equal(&need[i], &all))
            fv__block_init(&block[i], inputs[i]->type.image.dtype, &all, inputs[i]->data);
        else {
            int64_t margin[FV_MAX_DIMS];
            for (int d = 0; d < need[i].ndim; d++) margin[d] = d == need[i].ndim - 1 ? 8 : 2;
            fv_region grown = fv__region_grow(&need[i], margin, margin);
            size[i] = (size_t)fv__region_voxels(&grown) * fv_dtype_size(inputs[i]->type.image.dtype);
            block[i] = poisoned(inputs[i], &need[i], poison, &memory[i]);
        }
        r->in[i] = &block[i];
    }
    size_t scratch = pass->scratch ? pass->scratch(&r->need) : 0;
    r->scratch = fv__buffer_new(scratch);
    memset(r->scratch, poison, scratch);
    double    start = fv__now();
    fv_status status = pass->run(r, error);
    *seconds += fv__now() - start;
    fv__buffer_free(r->scratch, scratch);
    for (int i = 0; i < ninputs; i++)
        if (memory[i]) fv__buffer_free(memory[i], size[i]);
    return status;
}

static fv_status run_passes(const fv_op *op, const void *params, test_image *const *inputs, int ninputs,
                            const fv_type *const *types, const int64_t *chunk, uint8_t poison, test_output *output,
                            fv_error *error) {
    blobs      results = { .base.get = get_result }, next = { .base.get = get_result };
    fv_lattice lattice = { 0 }, *made = NULL;
    bool       have_results = false;
    fv_status  status = FV_OK;
    for (const fv_pass *pass = op->passes; pass->run && status == FV_OK; pass++) {
        const fv_image_type *space = pass->finish ? &inputs[0]->type.image : &output->type.image;
        fv_lattice           cut;
        fv__lattice_init(&cut, space->ndim, space->shape, chunk ? chunk : space->shape);
        if (pass->finish) {
            lattice = cut;
            made = &lattice;
        }
        int64_t   count = fv__lattice_count(&cut);
        fv_bytes *partial = pass->finish ? fv__calloc(sizeof *partial * (size_t)FV_MAX(count, 1)) : NULL;
        fv_block  whole;
        fv_region all = fv__region_whole(space);
        if (!pass->finish) {
            size_t size = (size_t)fv_image_type_bytes(space);
            output->data = fv__alloc(size);
            memset(output->data, poison, size);
            fv__block_init(&whole, space->dtype, &all, output->data);
        }
        for (int64_t c = 0; c < count && status == FV_OK; c++) {
            fv_run r = { .need = { .params = params,
                                   .ninputs = ninputs,
                                   .out = &output->type,
                                   .region = fv__lattice_chunk(&cut, c),
                                   .lattice = made },
                         .chunk = pass->finish ? c : -1,
                         .results = have_results ? &results.base : NULL };
            for (int i = 0; i < ninputs; i++) r.need.in[i] = types[i];
            fv_block window;
            if (pass->finish)
                r.partial = &partial[c];
            else {
                window = fv__block_window(&whole, &r.need.region);
                r.out = &window;
            }
            status = run_chunk(pass, &r, inputs, ninputs, !chunk, poison, &output->seconds, error);
        }
        if (pass->finish && status == FV_OK) {
            int64_t npartials = count;
            if (pass->combine) {
                for (int64_t c = count - 1; c > 0; c--) pass->combine(params, &partial[0], partial[c].data, partial[c].size);
                npartials = 1;
            }
            finishing f = { .base = { .params = params,
                                      .ninputs = ninputs,
                                      .out = &output->type,
                                      .lattice = &lattice,
                                      .npartials = npartials,
                                      .results = have_results ? &results.base : NULL,
                                      .size = partial_size,
                                      .partial = partial_get,
                                      .read = partial_read,
                                      .put = result_put },
                            .partial = partial,
                            .results = &next };
            for (int i = 0; i < ninputs; i++) {
                f.base.in[i] = types[i];
                if (inputs[i] && inputs[i]->type.kind == FV_KIND_SCALAR) f.base.scalar[i] = &inputs[i]->scalar;
            }
            double start = fv__now();
            status = pass->finish(&f.base, error);
            output->seconds += fv__now() - start;
            free_blobs(&results);
            results = next;
            next = (blobs){ .base.get = get_result };
            have_results = true;
        }
        for (int64_t c = 0; partial && c < count; c++) fv__bytes_release(&partial[c]);
        free(partial);
    }
    if (status == FV_OK && output->type.kind == FV_KIND_SCALAR)
        memcpy(&output->scalar, results.blob[0].data, sizeof output->scalar);
    if (status == FV_OK && output->type.kind == FV_KIND_TABLE) {
        fv_bytes all = { 0 };
        for (int64_t i = 0; i < results.count; i++) fv__bytes_append(&all, results.blob[i].data, results.blob[i].size);
        output->cells = (fv_cell *)all.data;
        output->nrows = (int64_t)(all.size / sizeof(fv_cell)) / output->type.table->ncolumns;
    }
    free_blobs(&results);
    return status;
}

static fv_status run_point(const fv_op *op, const void *params, fv_dtype compute, test_image *const *inputs, int ninputs,
                           test_output *output) {
    const fv_kernels *k = fv__kernels_current();
    bool              image = output->type.kind == FV_KIND_IMAGE;
    int64_t           n = image ? fv_image_type_voxels(&output->type.image) : 1;
    void             *converted[FV_MAX_INPUTS] = { 0 };
    for (int i = 0; i < ninputs; i++) {
        if (!inputs[i]) continue;
        converted[i] = fv__alloc((size_t)n * 8);
        if (inputs[i]->type.kind == FV_KIND_SCALAR)
            for (int64_t j = 0; j < n; j++)
                k->convert((char *)converted[i] + j * (int64_t)fv_dtype_size(compute), compute, &inputs[i]->scalar.integer,
                           inputs[i]->scalar.dtype, 1);
        else
            k->convert(converted[i], compute, inputs[i]->data, inputs[i]->type.image.dtype, n);
    }
    fv_dtype dtype = image ? output->type.image.dtype : output->type.dtype, made = dtype == FV_BOOL ? FV_BOOL : compute;
    void    *raw = fv__alloc((size_t)n * 8 + 8);
    output->data = fv__alloc((size_t)n * 8 + 8);
    op->point[compute](params, n, raw, (const void *const *)converted);
    k->convert(output->data, dtype, raw, made, n);
    output->scalar.dtype = dtype;
    if (!image) memcpy(&output->scalar.integer, output->data, fv_dtype_size(dtype));
    free(raw);
    for (int i = 0; i < ninputs; i++) free(converted[i]);
    return FV_OK;
}

static const fv_isa *forced_isa; /* NULL: the registry's choice */

static const fv_op *find_op(const char *name) {
    for (const fv_op *const *op = forced_isa ? forced_isa->ops : NULL; op && *op; op++)
        if (!strcmp((*op)->name, name)) return *op;
    return fv__op_find(name);
}

fv_status test_apply(const char *name, const char *text, test_image *const *inputs, int given, const int64_t *chunk,
                     uint8_t poison, test_output *output, fv_error *error) {
    static fv_arena      forever; /* table types of outputs stay valid */
    static const fv_type absent = { .kind = FV_KIND_NONE };
    const fv_op         *op = find_op(name);
    if (!op) return fv_fail(error, FV_ERROR_USAGE, "test: no operator %s", name);
    *output = (test_output){ 0 };
    fv_arena    arena = { 0 };
    void       *params = fv__arena_alloc(&arena, op->params_size + 1);
    fv_status   status = set_params(op, text, params, &arena, error);
    int         ninputs = fv__inputs_count(op);
    test_image *slots[FV_MAX_INPUTS] = { 0 };
    fv_infer    infer = {
           .params = params, .params_size = op->params_size, .ninputs = ninputs, .out = &output->type, .arena = &forever
    };
    for (int i = 0; i < ninputs; i++) {
        slots[i] = i < given ? inputs[i] : NULL;
        infer.in[i] = slots[i] ? &slots[i]->type : &absent;
    }
    if (ninputs && slots[0]) output->type = slots[0]->type;
    if (status == FV_OK) status = op->infer(&infer, error);
    if (status == FV_OK) {
        if (fv__op_is_point(op))
            status = run_point(op, params, infer.compute, slots, ninputs, output);
        else
            status = run_passes(op, params, slots, ninputs, infer.in, chunk, poison, output, error);
    }
    fv__arena_release(&arena);
    return status;
}

static bool equal(const test_output *a, const test_output *b) {
    if (a->type.kind == FV_KIND_IMAGE) return !memcmp(a->data, b->data, (size_t)fv_image_type_bytes(&a->type.image));
    if (a->type.kind == FV_KIND_SCALAR) return !memcmp(&a->scalar, &b->scalar, sizeof a->scalar);
    return a->nrows == b->nrows &&
           (!a->nrows || !memcmp(a->cells, b->cells, (size_t)a->nrows * (size_t)a->type.table->ncolumns * sizeof(fv_cell)));
}

bool test_conforms(const char *op, const char *params, test_image *const *inputs, int ninputs, int rounds, char message[256]) {
    test_output whole;
    fv_error    error = { 0 };
    uint64_t    state = 7;
    if (test_apply(op, params, inputs, ninputs, NULL, 0, &whole, &error) != FV_OK) {
        snprintf(message, 256, "whole: %.200s", error.message);
        return false;
    }
    bool same = true;
    for (int round = 0; round < rounds && same; round++) {
        const fv_image_type *space = whole.type.kind == FV_KIND_IMAGE ? &whole.type.image : &inputs[0]->type.image;
        int64_t              chunk[FV_MAX_DIMS];
        for (int d = 0; d < space->ndim; d++)
            chunk[d] = 1 + (int64_t)(test_random(&state) % (uint64_t)FV_MAX(space->shape[d], 1));
        for (int p = 0; p < 2 && same; p++) {
            test_output cut;
            if (test_apply(op, params, inputs, ninputs, chunk, p ? 0xff : 0x55, &cut, &error) != FV_OK) {
                snprintf(message, 256, "chunked: %.200s", error.message);
                same = false;
            } else if (!equal(&whole, &cut)) {
                snprintf(message, 256, "differs with chunks of %lld x %lld x %lld, poison %d", (long long)chunk[0],
                         (long long)(space->ndim > 1 ? chunk[1] : 0), (long long)(space->ndim > 2 ? chunk[2] : 0), p);
                same = false;
            }
            test_output_free(&cut);
        }
    }
    test_output_free(&whole);
    return same;
}

bool test_same_on_every_isa(const char *op, const char *params, test_image *const *inputs, int ninputs, char message[256]) {
    test_output first = { 0 };
    bool        same = true;
    for (const fv_isa *isa = fv__isas; isa->name && same; isa++) {
        if (!fv__isa_supported(isa->name)) continue;
        test_output out;
        fv_error    error = { 0 };
        forced_isa = isa;
        if (test_apply(op, params, inputs, ninputs, NULL, 0, &out, &error) != FV_OK) {
            snprintf(message, 256, "%s: %.200s", isa->name, error.message);
            same = false;
        } else if (first.type.kind != FV_KIND_NONE && !equal(&first, &out)) {
            snprintf(message, 256, "%s differs from %s", isa->name, fv__isas[0].name);
            same = false;
        }
        if (first.type.kind == FV_KIND_NONE)
            first = out;
        else
            test_output_free(&out);
    }
    forced_isa = NULL;
    test_output_free(&first);
    return same;
}
