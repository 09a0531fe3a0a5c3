/* The smallest test frame. */
#include "support/test.h"
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

static fv_test *first, **last = &first;
static char     failure[1024], skipped[256], folder[64];

void test_add(fv_test *test) {
    *last = test;
    last = &test->next;
}

void test_fail(const char *file, int line, const char *format, ...) {
    if (failure[0]) return;
    const char *name = strrchr(file, '/');
    int         used = snprintf(failure, sizeof failure, "%s:%d: ", name ? name + 1 : file, line);
    va_list     arguments;
    va_start(arguments, format);
    vsnprintf(failure + used, sizeof failure - (size_t)used, format, arguments);
    va_end(arguments);
}

void test_skip(const char *reason) { snprintf(skipped, sizeof skipped, "%s", reason); }
bool test_failed(void) { return failure[0] != 0; }

const char *test_folder(void) {
    if (!folder[0]) {
        const char *where = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%s/fovea-test-XXXXXX", where && *where ? where : "/tmp");
        if (!mkdtemp(folder)) abort();
    }
    return folder;
}

const char *test_data(void) {
    const char *data = getenv("FOVEA_TEST_DATA");
    if (!data) data = "../shared/data";
    struct stat s;
    return !stat(data, &s) && S_ISDIR(s.st_mode) ? data : NULL;
}

uint64_t test_random(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int test_main(int argc, char **argv) {
    int failures = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (fv_test *test = first; test; test = test->next) {
        bool wanted = argc < 2;
        for (int i = 1; i < argc; i++) wanted = wanted || strstr(test->name, argv[i]);
        if (!wanted) continue;
        failure[0] = skipped[0] = 0;
        test->run();
        if (failure[0]) {
            printf("not ok %s: %s\n", test->name, failure);
            failures++;
        } else if (skipped[0])
            printf("skip %s: %s\n", test->name, skipped);
        else
            printf("ok %s\n", test->name);
    }
    if (folder[0]) {
        char command[96];
        snprintf(command, sizeof command, "rm -rf %s", folder);
        if (system(command)) fprintf(stderr, "could not remove %s\n", folder);
    }
    return failures > 0;
}
