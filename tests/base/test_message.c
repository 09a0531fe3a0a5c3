/* Messages on standard error. */
#include "base/base.h"
#include "support/test.h"
#include <pthread.h>
#include <unistd.h>

static char *captured(void (*run)(void)) { /* what it says */
    static char text[200000];
    char       *path = fv__sprintf("%s/messages", test_folder());
    int         before = dup(2);
    if (!freopen(path, "w", stderr)) abort();
    run();
    fflush(stderr);
    dup2(before, 2);
    close(before);
    FILE *file = fopen(path, "r");
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    free(path);
    return text;
}

static void three_levels(void) {
    fv_log_level levels[] = { FV_LOG_QUIET, FV_LOG_NORMAL, FV_LOG_VERBOSE };
    for (int i = 0; i < 3; i++) {
        fv__log_set(levels[i]);
        fv__log("normal %d", i);
        fv__log_verbose("verbose %d", i);
    }
    fv__log_set(FV_LOG_NORMAL);
}

TEST(messages_follow_the_level) { CHECK_TEXT(captured(three_levels), "normal 1\nnormal 2\nverbose 2\n"); }

static void before(void) { fputs("<", stderr); }
static void after(void) { fputs(">", stderr); }
static void with_hooks(void) {
    fv__log_hook(before, after);
    fv__log("text");
    fv__log_hook(NULL, NULL);
}

TEST(somebody_who_draws_is_called_around_a_message) { CHECK_TEXT(captured(with_hooks), "<text\n>"); }

static void *many(void *context) {
    (void)context;
    for (int i = 0; i < 1000; i++) fv__log("a line of a thread, whole");
    return NULL;
}
static void from_threads(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, many, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

TEST(lines_of_threads_do_not_mix) {
    char *text = captured(from_threads), *rest = NULL;
    int   count = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), count++)
        CHECK_TEXT(line, "a line of a thread, whole");
    CHECK_INT(count, 4000);
}

TEST(an_error_is_filled_and_named) {
    fv_error error = { 0 };
    CHECK_INT(fv_fail(&error, FV_ERROR_FULL, "%s is full", "it"), FV_ERROR_FULL);
    CHECK(error.code == FV_ERROR_FULL && error.chunk == -1 && error.rank == -1);
    CHECK_TEXT(error.message, "it is full");
    CHECK_INT(fv_fail(NULL, FV_ERROR_IO, "nobody listens"), FV_ERROR_IO);
    char *longer = fv__calloc(2000);
    memset(longer, 'x', 1999);
    fv_fail(&error, FV_ERROR_IO, "%s", longer);
    CHECK_INT(strlen(error.message), sizeof error.message - 1);
    free(longer);
    for (int s = FV_OK; s <= FV_ERROR_INTERNAL; s++) CHECK(strcmp(fv_status_name((fv_status)s), "unknown"));
}

TEST_MAIN
