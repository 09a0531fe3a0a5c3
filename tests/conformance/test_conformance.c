/* Every operator × random lattices × worker counts × engines: the same bits as computed whole, with poison outside every
 * declared region. A wrong halo or an unwritten voxel fails here without anyone writing a test for it. */
#include "base/base.h"
#include "op/params.h"
#include "support/outcome.h"
#include "support/test.h"
#include "support/toy_engine.h"
#include <ctype.h>
#include <fovea/fovea.h>

#define CASES "tests/conformance/cases.txt"

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
            pixels[i] = fv__alloc((size_t)fv_image_type_bytes(&type));
            fill(&inputs[i], pixels[i], fv_image_type_voxels(&type));
        }
        fv_pipeline_array(p, inputs[i].name, &type, pixels[i], error);
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

/* Every failure is told; the frame keeps the first. */
#define FAIL(...)                                                                                                                \
    do {                                                                                                                         \
        test_fail(__FILE__, __LINE__, __VA_ARGS__);                                                                              \
        fprintf(stderr, __VA_ARGS__);                                                                                            \
        fputc('\n', stderr);                                                                                                     \
    } while (0)

static void conform(const char *engine, int rounds, int every) {
    int      ncases;
    char   **cases = test_lines(CASES, &ncases);
    uint64_t state = 11;
    CHECK(ncases > 50);
    for (int c = 0; c < ncases; c += every) {
        test_outcome whole = { 0 }, cut = { 0 };
        fv_error     error = { 0 };
        test_setting plain = { .engine = "threads", .workers = 1, .poison = -1 };
        if (!test_outcome_take(make(cases[c], &error), &plain, &whole, &error) || !whole.bytes.size) {
            FAIL("%s: %s", cases[c], error.code ? error.message : "it gives nothing to compare");
            continue;
        }
        for (int round = 0; round < rounds; round++) {
            test_setting s = test_setting_random(&state, engine);
            if (!test_outcome_take(make(cases[c], &error), &s, &cut, &error))
                FAIL("%s (chunk %lldx%lldx%lld): %s", cases[c], (long long)s.chunk[0], (long long)s.chunk[1],
                     (long long)s.chunk[2], error.message);
            else if (!test_outcome_same(&cut, &whole))
                FAIL("%s: differs with chunks of %lldx%lldx%lld, %d workers, poison %d", cases[c], (long long)s.chunk[0],
                     (long long)s.chunk[1], (long long)s.chunk[2], s.workers, s.poison);
        }
        test_outcome_release(&whole);
        test_outcome_release(&cut);
    }
    test_lines_free(cases, ncases);
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

/* An engine that takes its jobs in any order, runs some twice and loses others. */
TEST(a_sample_of_operators_gives_the_same_bits_on_a_careless_engine) {
    toy_engine_add();
    conform("toy", 1, 4);
}

/* A word that stands alone and is followed by a bracket, or the sign of the operator. */
static bool appears(const fv_op *op, char **cases, int count) {
    char call[64], sign[8] = "";
    bool between = op->inputs && op->inputs[1].name;
    snprintf(call, sizeof call, "%s(", op->name);
    if (op->sign) snprintf(sign, sizeof sign, between ? " %s " : "%s", op->sign);
    if (op->role == FV_OP_PART) snprintf(sign, sizeof sign, "[");
    for (int c = 0; c < count; c++) {
        const char *at = strstr(cases[c], call);
        if (at && (at == cases[c] || !(isalnum((unsigned char)at[-1]) || at[-1] == '_'))) return true;
        if (*sign && strstr(cases[c], sign)) return true;
    }
    return false;
}

TEST(no_operator_is_left_out_of_the_conformance_suite) {
    int    ncases;
    char **cases = test_lines(CASES, &ncases);
    for (int i = 0; i < fv__op_count(); i++) {
        const fv_op *op = fv__op_at(i);
        if (op->sink || op->files || op->gathers || fv__params_file(op)) continue; /* these have tests of their own */
        if (!appears(op, cases, ncases)) test_fail(__FILE__, __LINE__, "%s has no line in tests/conformance/cases.txt", op->name);
    }
    test_lines_free(cases, ncases);
}

int main(int argc, char **argv) {
    int status;
    if (!fv_ranks_lead(NULL, &status)) return status;
    return fv_ranks_end(test_main(argc, argv));
}
