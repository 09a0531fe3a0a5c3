/* The threads engine under load: several pipelines at once, many small tasks, cancelling. Also run under ThreadSanitizer. */
#include "base/base.h"
#include "support/test.h"
#include <fovea/fovea.h>
#include <pthread.h>
#include <unistd.h>

static const char *const text = "a = phantom(\"foam\", [24, 60, 60], seed = 1)\n"
                                "g = gaussian(a, 2)\n"
                                "l = label(g > otsu(g))\n"
                                "t = measure(l, a)\n"
                                "m = mean(g)\n";

typedef struct {
    int         workers;
    const char *store;
    fv_hash     labels, table;
    double      mean;
    bool        good;
} run;

static void *run_once(void *argument) {
    run           *r = argument;
    fv_error       error = { 0 };
    fv_pipeline   *p = fv_pipeline_new();
    fv_result     *result = NULL;
    fv_image_type  type;
    fv_run_options options = { .workers = r->workers, .store = r->store, .memory = (int64_t)256 << 20, .fresh = true };
    r->good = fv_pipeline_add(p, "test", text, &error) == FV_OK && fv_pipeline_keep(p, "l", &error) == FV_OK &&
              fv_pipeline_keep(p, "t", &error) == FV_OK && fv_pipeline_keep(p, "m", &error) == FV_OK &&
              fv_pipeline_chunk(p, (int64_t[]){ 7, 20, 25 }, 3, &error) == FV_OK &&
              fv_pipeline_run(p, &options, &result, &error) == FV_OK;
    if (r->good) {
        const void     *labels = fv_result_array(result, "l", &type);
        const fv_table *table = fv_result_table(result, "t");
        r->labels = fv__hash_bytes(labels, (size_t)fv_image_type_bytes(&type));
        r->table = fv__hash_bytes(table->cell, (size_t)table->nrows * (size_t)table->type.ncolumns * sizeof(fv_cell));
        r->mean = fv_result_table(result, "m")->cell[0].real;
    } else
        fprintf(stderr, "%s %s\n", error.message, fv_pipeline_messages(p));
    fv_result_free(result);
    fv_pipeline_free(p);
    return NULL;
}

TEST(any_number_of_workers_gives_the_same_bits) {
    run   first = { .workers = 1 };
    char *store = fv__sprintf("%s/one", test_folder());
    first.store = store;
    run_once(&first);
    CHECK(first.good);
    for (int workers = 2; workers <= 8; workers += 3) {
        run r = { .workers = workers, .store = store };
        run_once(&r);
        CHECK(r.good && fv__hash_equal(r.labels, first.labels) && fv__hash_equal(r.table, first.table) && r.mean == first.mean);
    }
    free(store);
}

TEST(several_pipelines_run_at_once_in_one_process) {
    enum { COUNT = 3 };
    run       runs[COUNT];
    pthread_t threads[COUNT];
    for (int i = 0; i < COUNT; i++) {
        runs[i] = (run){ .workers = 2, .store = fv__sprintf("%s/at-once-%d", test_folder(), i) };
        pthread_create(&threads[i], NULL, run_once, &runs[i]);
    }
    for (int i = 0; i < COUNT; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < COUNT; i++) CHECK(runs[i].good && fv__hash_equal(runs[i].labels, runs[0].labels));
    for (int i = 0; i < COUNT; i++) free((char *)(uintptr_t)runs[i].store);
}

static volatile int cancel;

/* The first report comes when the item is open and no task has run; on a quick machine there may be no second one. */
static void cancel_early(void *context, const fv_run_state *state) {
    (void)context;
    (void)state;
    cancel = 1;
}

TEST(a_cancelled_run_says_so_and_can_go_on) {
    fv_error       error = { 0 };
    fv_pipeline   *p = fv_pipeline_new();
    fv_result     *result = NULL;
    char          *store = fv__sprintf("%s/cancel", test_folder());
    fv_run_options options = { .workers = 2, .store = store, .progress = cancel_early, .cancel = &cancel };
    fv_image_type  type;
    CHECK(fv_pipeline_add(p, "test", "s = gaussian(phantom(\"noise\", [100, 100, 100]), 12)\n", &error) == FV_OK);
    CHECK(fv_pipeline_keep(p, "s", &error) == FV_OK && fv_pipeline_chunk(p, (int64_t[]){ 10, 20, 20 }, 3, &error) == FV_OK);
    CHECK_INT(fv_pipeline_run(p, &options, &result, &error), FV_ERROR_CANCELLED);
    CHECK(!fv_result_array(result, "s", &type));
    fv_result_free(result);
    options.progress = NULL;
    options.cancel = NULL;
    CHECK_INT(fv_pipeline_run(p, &options, &result, &error), FV_OK);
    CHECK(fv_result_array(result, "s", &type));
    fv_result_free(result);
    fv_pipeline_free(p);
    free(store);
}

static void look_at(void *context, const fv_run_state *state) {
    double *most = context;
    *most = FV_MAX(*most, state->fraction);
}

TEST(many_small_items_are_counted_while_others_are_opened) {
    char  *in = fv__sprintf("%s/item", test_folder()), *store = fv__sprintf("%s/items", test_folder()), write[600], read[600];
    double most = 0;
    snprintf(read, sizeof read, "m = mean(gaussian(read(\"%s*.npy\"), 1))\nwrite(m, \"%s.csv\")\n", in, in);
    fv_run_options options = { .workers = 4, .store = store, .progress = look_at, .context = &most };
    for (int i = 0; i <= 40; i++) {
        fv_error     error = { 0 };
        fv_result   *result = NULL;
        fv_pipeline *p = fv_pipeline_new();
        snprintf(write, sizeof write, "phantom(\"foam\", [40, 40], seed = %d) |> write(\"%s%02d.npy\")\n", i, in, i);
        CHECK_INT(fv_pipeline_add(p, "test", i < 40 ? write : read, &error), FV_OK);
        CHECK_INT(fv_pipeline_run(p, &options, &result, &error), FV_OK);
        CHECK(fv_result_summary(result).tasks_run >= (i < 40 ? 1 : 40));
        fv_result_free(result);
        fv_pipeline_free(p);
    }
    CHECK(most <= 1);
    free(in);
    free(store);
}

TEST_MAIN
