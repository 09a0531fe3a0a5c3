/* What an engine may do to its jobs: take them in any order, run them twice, lose them. The results stay the same, to the bit. */
#include "base/base.h"
#include "base/file.h"
#include "support/test.h"
#include "support/toy_engine.h"
#include <fovea/fovea.h>

static const char *const text = "a = phantom(\"foam\", [40, 60, 60], seed = 1)\n"
                                "g = gaussian(a, 2)\n"
                                "l = label(g > otsu(g))\n"
                                "write(l, \"%s/labels.%s\")\n"
                                "write(measure(l, a), \"%s/table.csv\")\n";

static fv_status run_on(const char *engine, const char *format, int workers, fv_error *error) {
    char          *folder = fv__sprintf("%s/%s", test_folder(), engine), *store = fv__sprintf("%s/store", folder);
    char          *whole = fv__sprintf(text, folder, format, folder);
    fv_pipeline   *p = fv_pipeline_new();
    fv_result     *result = NULL;
    int64_t        chunk[] = { 5, 20, 25 };
    fv_run_options options = {
        .engine = engine, .workers = workers, .store = store, .memory = (int64_t)256 << 20, .fresh = true
    };
    options.overwrite = true;
    fv_status status = fv_pipeline_add(p, "test", whole, error);
    if (status == FV_OK) status = fv_pipeline_chunk(p, chunk, 3, error);
    if (status == FV_OK) status = fv_pipeline_run(p, &options, &result, error);
    fv_result_free(result);
    fv_pipeline_free(p);
    free(whole);
    free(store);
    free(folder);
    return status;
}

static fv_hash content(const char *engine, const char *name) {
    char    *path = fv__sprintf("%s/%s/%s", test_folder(), engine, name);
    fv_bytes bytes = { 0 };
    if (fv__file_read_all(path, (size_t)1 << 26, &bytes, NULL) != FV_OK || bytes.size < 100)
        test_fail(__FILE__, __LINE__, "%s is not there", path);
    fv_hash hash = fv__hash_bytes(bytes.data, bytes.size);
    fv__bytes_release(&bytes);
    free(path);
    return hash;
}

TEST(a_careless_engine_writes_the_same_files) {
    static const char *const formats[] = { "npy", "tif" };
    toy_engine_add();
    for (int f = 0; f < FV_COUNT(formats); f++) {
        fv_error error = { 0 };
        char     name[32];
        int      lost = toy_lost, repeated = toy_repeated;
        snprintf(name, sizeof name, "labels.%s", formats[f]);
        if (run_on("threads", formats[f], 2, &error) != FV_OK || run_on("toy", formats[f], 2, &error) != FV_OK)
            test_fail(__FILE__, __LINE__, "%s: %s", formats[f], error.message);
        CHECK(toy_lost > lost && toy_repeated > repeated);
        CHECK(fv__hash_equal(content("toy", name), content("threads", name)));
        CHECK(fv__hash_equal(content("toy", "table.csv"), content("threads", "table.csv")));
    }
}

TEST(a_job_that_is_lost_again_and_again_fails_with_a_sentence) {
    fv_error error = { 0 };
    toy_engine_add();
    toy_hopeless = true;
    fv_status status = run_on("toy", "npy", 1, &error);
    toy_hopeless = false;
    CHECK(status == FV_ERROR_INTERNAL);
    CHECK(strstr(error.message, "three worker processes died on stage 1, task ") != NULL);
}

TEST(an_unknown_engine_is_refused_with_the_names_of_all) {
    fv_error error = { 0 };
    toy_engine_add();
    CHECK(run_on("tractor", "npy", 1, &error) == FV_ERROR_USAGE);
    CHECK(strstr(error.message, "tractor") && strstr(error.message, "threads") && strstr(error.message, "toy"));
}

TEST_MAIN
