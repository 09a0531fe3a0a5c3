/* Every operator × random lattices × worker counts × engines: the same bits as computed whole, with poison outside every
 * declared region. A wrong halo or an unwritten voxel fails here without anyone writing a test for it. */
#include "base/base.h"
#include "op/params.h"
#include "support/case_pipeline.h"
#include "support/outcome.h"
#include "support/test.h"
#include "support/toy_engine.h"
#include <ctype.h>
#include <fovea/fovea.h>

/* Every failure is told; the frame keeps the first. */
#define FAIL(...)                                                                                                                \
    do {                                                                                                                         \
        test_fail(__FILE__, __LINE__, __VA_ARGS__);                                                                              \
        fprintf(stderr, __VA_ARGS__);                                                                                            \
        fputc('\n', stderr);                                                                                                     \
    } while (0)

/* A sanitizer takes ten times as long and looks at memory, not at results: every operator once on threads, a sample elsewhere.
 * The plain program goes through all. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { ROUNDS = 1, ONE_OF = 4 };
#else
enum { ROUNDS = 4, ONE_OF = 1 };
#endif

static void conform(const char *engine, int rounds, int every) {
    int      ncases;
    char   **cases = test_lines(TEST_CASES, &ncases);
    uint64_t state = 11;
    CHECK(ncases > 50);
    for (int c = 0; c < ncases; c += every) {
        test_outcome whole = { 0 }, cut = { 0 };
        fv_error     error = { 0 };
        test_setting plain = { .engine = "threads", .workers = 1, .poison = -1 };
        if (!test_outcome_take(test_case_pipeline(cases[c], true, &error), &plain, &whole, &error) || !whole.bytes.size) {
            FAIL("%s: %s", cases[c], error.code ? error.message : "it gives nothing to compare");
            continue;
        }
        for (int round = 0; round < rounds; round++) {
            test_setting s = test_setting_random(&state, engine);
            if (!test_outcome_take(test_case_pipeline(cases[c], true, &error), &s, &cut, &error))
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
    conform(NULL, rounds ? atoi(rounds) : ROUNDS, 1);
}

TEST(every_operator_gives_the_same_bits_on_any_lattice_with_processes) {
    if (!getenv("FOVEA")) SKIP("FOVEA does not name the fovea command");
    conform("processes", 1, ONE_OF);
}

/* An engine that takes its jobs in any order, runs some twice and loses others. */
TEST(a_sample_of_operators_gives_the_same_bits_on_a_careless_engine) {
    toy_engine_add();
    conform("toy", 1, 4 * ONE_OF);
}

enum { ARRAYS = 10 }; /* of test_case_pipeline */

/* Applies the pipeline to its voxels, to nothing but zeros, which may fail, and to its voxels again; chunk: of the lattice, 0: as
 * the plan likes. */
static bool apply(const char *expression, int64_t chunk, test_outcome *out, bool *is_image, fv_error *error) {
    fv_pipeline  *p = test_case_pipeline(expression, false, error);
    fv_value_type type;
    const void   *own[ARRAYS] = { NULL }, *others[ARRAYS] = { NULL };
    bool          good = error->code == FV_OK && fv_pipeline_keep(p, "result", error) == FV_OK &&
                (!chunk || fv_pipeline_chunk(p, &chunk, 1, error) == FV_OK) &&
                fv_pipeline_type(p, "result", &type, error) == FV_OK;
    *is_image = good && type.kind == FV_VALUE_IMAGE;
    for (int i = 0; i < ARRAYS; i++) {
        fv_block array = test_case_array(i);
        own[i] = array.data;
        others[i] = fv__calloc((size_t)fv__region_voxels(&array.region) * fv_dtype_size(array.dtype));
    }
    for (int round = 0; round < 3 && good && *is_image; round++) {
        size_t size = (size_t)fv_image_type_bytes(&type.image);
        fv__bytes_clear(&out->bytes);
        memset(fv__bytes_append(&out->bytes, NULL, size), 0xa5, size);
        good = fv_pipeline_apply(p, round == 1 ? others : own, (void *[]){ out->bytes.data }, NULL, error) == FV_OK || round == 1;
    }
    for (int i = 0; i < ARRAYS; i++) free((void *)(uintptr_t)others[i]);
    fv_pipeline_free(p);
    return good;
}

TEST(every_operator_gives_the_same_bits_when_a_pipeline_is_applied_again) {
    int    ncases, images = 0;
    char **cases = test_lines(TEST_CASES, &ncases);
    for (int c = 0; c < ncases; c++) {
        if (test_case_runs_program(cases[c])) continue; /* only a whole run can be allowed to */
        test_outcome whole = { 0 }, again = { 0 };
        fv_error     error = { 0 };
        bool         is_image = false;
        test_setting plain = { .engine = "threads", .workers = 1, .poison = -1 };
        if (!test_outcome_take(test_case_pipeline(cases[c], true, &error), &plain, &whole, &error) ||
            !apply(cases[c], c % 2 ? 7 + c % 11 : 0, &again, &is_image, &error))
            FAIL("%s: %s", cases[c], error.message);
        else if (is_image &&
                 (again.bytes.size != whole.bytes.size || memcmp(again.bytes.data, whole.bytes.data, whole.bytes.size)))
            FAIL("%s: differs when it is applied", cases[c]);
        images += is_image;
        test_outcome_release(&whole);
        test_outcome_release(&again);
    }
    CHECK(images > 100);
    test_lines_free(cases, ncases);
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
    char **cases = test_lines(TEST_CASES, &ncases);
    for (int i = 0; i < fv__op_count(); i++) {
        const fv_op *op = fv__op_at(i);
        if (op->sink || op->files || op->gathers || op->place_later || fv__params_file(op))
            continue; /* these have tests of their own */
        if (!appears(op, cases, ncases)) test_fail(__FILE__, __LINE__, "%s has no line in tests/conformance/cases.txt", op->name);
    }
    test_lines_free(cases, ncases);
}

int main(int argc, char **argv) {
    int status;
    if (!fv_ranks_lead(NULL, &status)) return status;
    return fv_ranks_end(test_main(argc, argv));
}
