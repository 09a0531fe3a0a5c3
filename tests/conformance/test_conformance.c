/* Every operator × random lattices × worker counts × engines: the same bits as computed whole, with poison outside every
 * declared region. A wrong halo or an unwritten voxel fails here without anyone writing a test for it. */
#include "base/base.h"
#include "op/op.h"
#include "support/test.h"
#include <ctype.h>
#include <fovea/fovea.h>

typedef struct { const char *name; fv_dtype dtype; int ndim; int64_t shape[4]; bool colour; } input;

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

typedef struct { int64_t chunk[4]; int chunk_ndim; int workers, poison; const char *engine; } setting;
typedef struct { fv_bytes bytes; char shape[128]; } outcome;

static void *pixels[FV_COUNT(inputs)];

static fv_pipeline *make(const char *expression, fv_error *error) {
    fv_pipeline *p = fv_pipeline_new();
    for (int i = 0; i < FV_COUNT(inputs); i++) {
        fv_image_type type;
        fv_image_type_init(&type, inputs[i].dtype, inputs[i].ndim, inputs[i].shape);
        if (inputs[i].colour) {
            strcpy(type.axis[0], "y");
            strcpy(type.axis[1], "x");
            strcpy(type.axis[2], "c");
        }
        if (!pixels[i]) {
            pixels[i] = fv_alloc((size_t)fv_image_type_bytes(&type));
            fill(&inputs[i], pixels[i], fv_image_type_voxels(&type));
        }
        fv_pipeline_array(p, inputs[i].name, &type, pixels[i], error);
    }
    char *text = fv_sprintf("result = %s\n", expression);
    if (fv_pipeline_add(p, "case", text, error) != FV_OK) fv_fail(error, FV_ERROR_USAGE, "%s", fv_pipeline_messages(p));
    fv_pipeline_keep(p, "result", error);
    free(text);
    return p;
}

static bool run(const char *expression, const setting *s, outcome *out, fv_error *error) {
    fv_pipeline   *p = make(expression, error);
    char          *store = fv_sprintf("%s/store", test_folder());
    fv_run_options options = { .workers = s->workers, .store = store, .fresh = true, .poison = s->poison + 1, .engine = s->engine,
                               .memory = (int64_t)1 << 30, .command = getenv("FOVEA") };
    fv_result     *result = NULL;
    if (s->chunk_ndim) fv_pipeline_chunk(p, s->chunk, s->chunk_ndim, error);
    fv_status       status = error->code == FV_OK ? fv_pipeline_run(p, &options, &result, error) : error->code;
    fv_image_type   type;
    const void     *image = result ? fv_result_array(result, "result", &type) : NULL;
    const fv_table *table = result ? fv_result_table(result, "result") : NULL;
    fv_bytes_clear(&out->bytes);
    if (status == FV_OK && image) {
        snprintf(out->shape, sizeof out->shape, "%s %d", fv_dtype_name(type.dtype), type.ndim);
        fv_bytes_append(&out->bytes, image, (size_t)fv_image_type_bytes(&type));
    } else if (status == FV_OK && table)
        fv_bytes_append(&out->bytes, table->cell, (size_t)table->nrows * (size_t)table->type.ncolumns * sizeof(fv_cell));
    else if (status != FV_OK && *fv_pipeline_messages(p))
        fv_fail(error, status, "%s", fv_pipeline_messages(p));
    bool good = status == FV_OK && out->bytes.size > 0;
    fv_result_free(result);
    fv_pipeline_free(p);
    free(store);
    return good;
}

static setting random_setting(uint64_t *state, const char *engine) {
    setting s = { .engine = engine,
                  .workers = 1 + (int)(test_random(state) % 4),
                  .poison = test_random(state) % 2 ? 0x55 : 0xff };
    s.chunk_ndim = 3;
    for (int d = 0; d < 3; d++) s.chunk[d] = 1 + (int64_t)(test_random(state) % (d == 0 ? 12 : 40));
    return s;
}

static char **load_cases(int *count) {
    FILE   *file = fopen("tests/conformance/cases.txt", "r");
    char  **cases = NULL, *line = NULL;
    size_t  capacity = 0;
    ssize_t n;
    *count = 0;
    while (file && (n = getline(&line, &capacity, file)) > 0) {
        while (n > 0 && isspace((unsigned char)line[n - 1])) line[--n] = 0;
        if (!n || line[0] == '#') continue;
        cases = fv_realloc(cases, (size_t)(*count + 1) * sizeof *cases);
        cases[(*count)++] = fv_strdup(line);
    }
    free(line);
    if (file) fclose(file);
    return cases;
}

/* Every failure is told; the frame keeps the first. */
#define FAIL(...)                                  \
    do {                                           \
        test_fail(__FILE__, __LINE__, __VA_ARGS__); \
        fprintf(stderr, __VA_ARGS__);               \
        fputc('\n', stderr);                        \
    } while (0)

static void conform(const char *engine, int rounds, int every) {
    int      ncases;
    char   **cases = load_cases(&ncases);
    uint64_t state = 11;
    CHECK(ncases > 50);
    for (int c = 0; c < ncases; c += every) {
        outcome  whole = { 0 }, cut = { 0 };
        fv_error error = { 0 };
        setting  plain = { .engine = "threads", .workers = 1, .poison = -1 };
        if (!run(cases[c], &plain, &whole, &error)) {
            FAIL("%s: %s", cases[c], error.message);
            continue;
        }
        for (int round = 0; round < rounds; round++) {
            setting s = random_setting(&state, engine);
            if (!run(cases[c], &s, &cut, &error))
                FAIL("%s (chunk %lldx%lldx%lld): %s", cases[c], (long long)s.chunk[0], (long long)s.chunk[1],
                     (long long)s.chunk[2], error.message);
            else if (cut.bytes.size != whole.bytes.size || memcmp(cut.bytes.data, whole.bytes.data, whole.bytes.size))
                FAIL("%s: differs with chunks of %lldx%lldx%lld, %d workers, poison %d", cases[c], (long long)s.chunk[0],
                     (long long)s.chunk[1], (long long)s.chunk[2], s.workers, s.poison);
        }
        fv_bytes_release(&whole.bytes);
        fv_bytes_release(&cut.bytes);
    }
    for (int c = 0; c < ncases; c++) free(cases[c]);
    free(cases);
}

/* Started by mpiexec, on its ranks: see tests/engines/test_mpi.py. */
TEST(every_operator_gives_the_same_bits_on_any_lattice_with_threads) {
    const char *rounds = getenv("FOVEA_TEST_ROUNDS");
    conform(NULL, rounds ? atoi(rounds) : 4, 1);
}

TEST(every_operator_gives_the_same_bits_on_any_lattice_with_processes) {
    if (!getenv("FOVEA")) SKIP("FOVEA does not name the fovea command");
    conform("processes", 1, 1);
}

/* A word that stands alone and is followed by a bracket, or the sign of the operator. */
static bool appears(const fv_op *op, char **cases, int count) {
    static const char *const signs[][2] = { { "add", " + " },
                                            { "subtract", " - " },
                                            { "multiply", " * " },
                                            { "divide", " / " },
                                            { "remainder", " % " },
                                            { "power", " ** " },
                                            { "negative", "-" },
                                            { "equal", " == " },
                                            { "not_equal", " != " },
                                            { "less", " < " },
                                            { "less_equal", " <= " },
                                            { "greater", " > " },
                                            { "greater_equal", " >= " },
                                            { "and", " & " },
                                            { "or", " | " },
                                            { "not", "!" },
                                            { "slice", "[" } };
    char call[64];
    snprintf(call, sizeof call, "%s(", op->name);
    for (int c = 0; c < count; c++) {
        const char *at = strstr(cases[c], call);
        if (at && (at == cases[c] || !(isalnum((unsigned char)at[-1]) || at[-1] == '_'))) return true;
        for (int k = 0; k < FV_COUNT(signs); k++)
            if (!strcmp(signs[k][0], op->name) && strstr(cases[c], signs[k][1])) return true;
    }
    return false;
}

TEST(no_operator_is_left_out_of_the_conformance_suite) {
    int    ncases;
    char **cases = load_cases(&ncases);
    for (int i = 0; i < fv_op_count(); i++) {
        const fv_op *op = fv_op_at(i);
        if (op->sink || op->files || !strncmp(op->name, "read", 4)) continue; /* files have tests of their own */
        if (!appears(op, cases, ncases)) test_fail(__FILE__, __LINE__, "%s has no line in tests/conformance/cases.txt", op->name);
    }
    for (int c = 0; c < ncases; c++) free(cases[c]);
    free(cases);
}

int main(int argc, char **argv) {
    int status;
    if (!fv_ranks_lead(NULL, &status)) return status;
    return fv_ranks_end(test_main(argc, argv));
}
