/* The smallest test frame. A test file defines tests and lists nothing:
 *
 *     TEST(gaussian_rejects_negative_sigma) { CHECK(status == FV_ERROR_USAGE); }
 *     TEST_MAIN
 *
 * Each test prints "ok NAME", "not ok NAME: why" or "skip NAME: why" on standard output.
 */
#ifndef FV_TEST_H
#define FV_TEST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fv_test {
    const char *name;
    void (*run)(void);
    struct fv_test *next;
} fv_test;

void test_add(fv_test *test);
int  test_main(int argc, char **argv); /* arguments: only tests whose name contains one of them */
void test_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
void test_skip(const char *reason);
bool test_failed(void);

/* A fresh empty folder, removed at the end of the program; borrowed. */
const char *test_folder(void);
/* Folder of real files (FOVEA_TEST_DATA, default ../shared/data), or NULL. */
const char *test_data(void);
/* Deterministic random numbers. */
uint64_t test_random(uint64_t *state);

#define TEST(NAME)                                                                                                               \
    static void                              NAME(void);                                                                         \
    static fv_test                           test_##NAME = { #NAME, NAME, NULL };                                                \
    __attribute__((constructor)) static void add_##NAME(void) { test_add(&test_##NAME); }                                        \
    static void                              NAME(void)
#define CHECK(condition)                                                                                                         \
    do {                                                                                                                         \
        if (!(condition)) {                                                                                                      \
            test_fail(__FILE__, __LINE__, "%s", #condition);                                                                     \
            return;                                                                                                              \
        }                                                                                                                        \
    } while (0)
#define CHECK_MESSAGE(condition, ...)                                                                                            \
    do {                                                                                                                         \
        if (!(condition)) {                                                                                                      \
            test_fail(__FILE__, __LINE__, __VA_ARGS__);                                                                          \
            return;                                                                                                              \
        }                                                                                                                        \
    } while (0)
#define CHECK_INT(a, b)                                                                                                          \
    do {                                                                                                                         \
        long long found_ = (long long)(a), wanted_ = (long long)(b); /* evaluated once */                                        \
        CHECK_MESSAGE(found_ == wanted_, "%s is %lld, not %lld", #a, found_, wanted_);                                           \
    } while (0)
#define CHECK_TEXT(a, b) CHECK_MESSAGE(!strcmp(a, b), "%s is \"%s\", not \"%s\"", #a, a, b)
#define SKIP(reason)                                                                                                             \
    do {                                                                                                                         \
        test_skip(reason);                                                                                                       \
        return;                                                                                                                  \
    } while (0)
#define TEST_MAIN                                                                                                                \
    int main(int argc, char **argv) { return test_main(argc, argv); }

#endif
