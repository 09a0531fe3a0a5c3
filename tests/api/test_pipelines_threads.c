/* Two pipelines at once in one process: each has its own messages, memory and folder, and its own results. */
#include "base/file.h"
#include "base/session.h"
#include "base/take.h"
#include "support/test.h"
#include <fovea/fovea.h>
#include <signal.h>
#include <unistd.h>

typedef struct side {
    const char *name;
    int         number, level;
    int64_t     memory;
    int         runs;
    /* what was seen */
    fv_bytes messages; /* lines */
    fv_bytes wrong;
} side;

static void collect(void *context, const char *line) {
    side *s = context;
    fv__bytes_printf(&s->messages, "%s\n", line);
}

static char *place(const side *s, const char *name, char path[512]) {
    snprintf(path, 512, "%s/%s/%s", test_folder(), s->name, name);
    return path;
}

static void wrong(side *s, const char *what) { fv__bytes_printf(&s->wrong, "%s: %s; ", s->name, what); }

static double cell_number(const fv_table *table) {
    return table->type.column[0].kind == FV_COLUMN_REAL ? table->cell[0].real : (double)table->cell[0].integer;
}

/* The sum of all voxels is known: each side multiplies the same image by a number of its own. */
static void run_once(side *s) {
    char           out[512], in[512], store[512], text[2048];
    fv_error       error = { 0 };
    fv_result     *result;
    fv_pipeline   *p = fv_pipeline_new();
    fv_run_options options = { .workers = 2, .memory = s->memory, .store = place(s, "store", store), .fresh = true };
    snprintf(text, sizeof text,
             "x = read(\"%s\") * %d\nx |> gaussian(1) |> write(\"%s\")\ntotal = sum(x)\n"
             "read(\"%s/%s/i?.tif\", stack = \"t\") |> write(\"%s/%s/out.zarr\", compression = \"zstd\")\n",
             place(s, "in.tif", in), s->number, place(s, "out.npy", out), test_folder(), s->name, test_folder(), s->name);
    fv_pipeline_log(p, s->level, collect, s);
    if (fv_pipeline_add(p, "text", text, &error) != FV_OK || fv_pipeline_keep(p, "total", &error) != FV_OK ||
        fv_pipeline_run(p, &options, &result, &error) != FV_OK) {
        wrong(s, error.message);
        fv_pipeline_free(p);
        return;
    }
    const fv_table *total = fv_result_table(result, "total");
    if (!total || cell_number(total) != s->number * 64.0 * 64 * 32) wrong(s, "another sum");
    if (!fv__file_exists(place(s, "out.npy", out)) || !fv__file_exists(place(s, "out.zarr", out))) wrong(s, "no output");
    fv_result_free(result);
    fv_pipeline_free(p);
}

static void *run_side(void *context) {
    side *s = context;
    for (int i = 0; i < s->runs; i++) run_once(s);
    return NULL;
}

static bool make_input(const side *s) {
    char           path[512], text[1024];
    fv_error       error = { 0 };
    fv_result     *result = NULL;
    fv_pipeline   *p = fv_pipeline_new();
    fv_run_options options = { .workers = 1, .store = place(s, "first", path) };
    fv_image_type  type;
    int64_t        shape[] = { 32, 64, 64 };
    uint16_t      *ones = fv__alloc(32 * 64 * 64 * sizeof *ones);
    for (int i = 0; i < 32 * 64 * 64; i++) ones[i] = 1;
    fv__path_make_folders(place(s, "", path), NULL);
    char in[512];
    snprintf(text, sizeof text, "ones |> write(\"%s\", compression = \"deflate\")\n", place(s, "in.tif", in));
    options.store = place(s, "first", path);
    fv_image_type_init(&type, FV_UINT16, 3, shape);
    bool good = fv_pipeline_array(p, "ones", &type, ones, &error) == FV_OK && fv_pipeline_add(p, "in", text, &error) == FV_OK &&
                fv_pipeline_run(p, &options, &result, &error) == FV_OK;
    if (!good) fprintf(stderr, "%s\n%s\n", error.message, fv_pipeline_messages(p));
    fv_result_free(result);
    fv_pipeline_free(p);
    free(ones);
    return good;
}

TEST(two_pipelines_do_not_see_each_other) {
    side a = { .name = "one", .number = 3, .level = 2, .memory = (int64_t)64 << 20, .runs = 4 };
    side b = { .name = "two", .number = 5, .level = 0, .memory = (int64_t)512 << 20, .runs = 4 };
    fv_messages(0, NULL, NULL);
    CHECK(make_input(&a) && make_input(&b));
    pthread_t threads[2];
    CHECK(!pthread_create(&threads[0], NULL, run_side, &a) && !pthread_create(&threads[1], NULL, run_side, &b));
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    CHECK_MESSAGE(!a.wrong.size && !b.wrong.size, "%s%s", a.wrong.data ? (char *)a.wrong.data : "",
                  b.wrong.data ? (char *)b.wrong.data : "");
    CHECK_MESSAGE(a.messages.size > 0, "the one that wants messages got none");
    CHECK_MESSAGE(!b.messages.size, "the one that wants none got: %s", (char *)b.messages.data);
    CHECK_MESSAGE(!strstr((char *)a.messages.data, "/two/"), "messages of the other: %s", (char *)a.messages.data);
    fv__bytes_release(&a.messages);
    fv__bytes_release(&a.wrong);
    fv__bytes_release(&b.wrong);
}

/* ---------------------------------------------------------------- sessions */

static void *use_pool(void *context) {
    fv_session *before = fv__session_enter(context);
    int64_t     allowed = context ? (int64_t)8 << 20 : (int64_t)64 << 20;
    fv__buffer_allow(allowed);
    void *held[20];
    for (int i = 0; i < 20; i++) held[i] = fv__buffer_new((size_t)1 << 20);
    for (int i = 0; i < 20; i++) fv__buffer_free(held[i], (size_t)1 << 20);
    int64_t pooled = fv__buffer_pooled();
    fv__buffer_allow(-allowed);
    fv__session_enter(before);
    return (void *)(intptr_t)pooled;
}

TEST(each_session_keeps_to_its_own_bound_of_buffers) {
    fv_session *session = fv__session_new();
    pthread_t   threads[2];
    void       *small, *large;
    fv__buffer_trim();
    CHECK(!pthread_create(&threads[0], NULL, use_pool, session) && !pthread_create(&threads[1], NULL, use_pool, NULL));
    pthread_join(threads[0], &small);
    pthread_join(threads[1], &large);
    CHECK_MESSAGE((intptr_t)small <= 8 << 20, "%lld bytes kept", (long long)(intptr_t)small);
    CHECK_MESSAGE((intptr_t)large == 20 << 20, "%lld bytes kept", (long long)(intptr_t)large);
    CHECK_INT(fv__buffer_pooled(), 20 << 20); /* of the process, as that thread was outside of all sessions */
    fv__session_free(session);
    fv__buffer_trim();
}

TEST(memory_that_ran_out_in_one_session_is_told_to_that_one_alone) {
    fv_session *one = fv__session_new(), *two = fv__session_new(), *before = fv__session_enter(one);
    fv_error    error = { 0 };
    void       *p = NULL;
    fv__memory_fail_any(1);
    char *text = fv__strdup("a text that had to be taken from the reserve");
    CHECK_INT(fv__memory_fail(0), 0);
    CHECK_TEXT(text, "a text that had to be taken from the reserve");
    free(text);
    fv__session_enter(two);
    CHECK_INT(fv__memory_check(&error), FV_OK);
    CHECK_INT(FV_TAKE(p, 8, &error), FV_OK);
    free(p);
    fv__session_enter(one);
    CHECK_INT(FV_TAKE(p, 8, &error), FV_ERROR_MEMORY);
    CHECK_MESSAGE(strstr(error.message, "out of memory"), "%s", error.message);
    CHECK_INT(fv__memory_check(&error), FV_OK); /* told once */
    fv__memory_lend(45);
    CHECK_INT(fv__memory_check(&error), FV_ERROR_MEMORY);
    CHECK_MESSAGE(strstr(error.message, "45 bytes"), "%s", error.message);
    fv__session_enter(before);
    fv__session_free(one);
    fv__session_free(two);
}

/* ---------------------------------------------------------------- signals */

TEST(a_run_on_processes_leaves_signals_as_they_are) {
    if (!getenv("FOVEA")) SKIP("FOVEA does not name the fovea command");
    struct sigaction before, after;
    char             store[512];
    fv_error         error = { 0 };
    fv_result       *result = NULL;
    fv_pipeline     *p = fv_pipeline_new();
    snprintf(store, sizeof store, "%s/signals", test_folder());
    fv_run_options options = { .workers = 2, .engine = "processes", .command = getenv("FOVEA"), .store = store };
    sigaction(SIGPIPE, NULL, &before);
    fv_pipeline_log(p, 0, NULL, NULL);
    bool good = fv_pipeline_add(p, "text", "sum(phantom(\"cells\", [20, 20]))\n", &error) == FV_OK &&
                fv_pipeline_run(p, &options, &result, &error) == FV_OK;
    sigaction(SIGPIPE, NULL, &after);
    fv_result_free(result);
    fv_pipeline_free(p);
    CHECK_MESSAGE(good, "%s", error.message);
    CHECK(before.sa_handler == after.sa_handler);
}

static void *pooled_here(void *context) {
    (void)context;
    return (void *)(intptr_t)fv__buffer_pooled();
}

TEST(a_thread_begins_in_the_session_of_who_starts_it) {
    fv_session *session = fv__session_new(), *before = fv__session_enter(session);
    pthread_t   thread;
    void       *seen;
    fv__buffer_free(fv__buffer_new((size_t)3 << 20), (size_t)3 << 20);
    CHECK(!fv__thread_start(&thread, pooled_here, NULL));
    pthread_join(thread, &seen);
    CHECK_INT((intptr_t)seen, 3 << 20);
    fv__session_enter(before);
    CHECK_INT(fv__buffer_pooled(), 0);
    fv__session_free(session);
}

TEST_MAIN
