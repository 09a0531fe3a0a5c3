/* Runs a pipeline and takes the bytes of its value `result`, so that runs under different settings can be compared.
 *
 *     fv_pipeline *p = fv_pipeline_new();
 *     fv_pipeline_add(p, "case", "result = phantom(\"cells\", [20, 30])\n", &error);
 *     CHECK(test_outcome_take(p, &(test_setting){ .workers = 1, .poison = -1 }, &outcome, &error));
 */
#ifndef FV_TEST_OUTCOME_H
#define FV_TEST_OUTCOME_H

#include "base/base.h"
#include <fovea/fovea.h>

typedef struct test_setting {
    int64_t     chunk[4];
    int         chunk_ndim;      /* 0: as the plan likes */
    int         workers, poison; /* byte to fill everything outside declared regions with; -1: none */
    const char *engine;          /* NULL: the default */
} test_setting;

typedef struct test_outcome {
    fv_bytes bytes;
    char     shape[128]; /* of an image, with its type */
} test_outcome;

/* Runs the pipeline, which is freed. False: it failed, and error says why. */
bool test_outcome_take(fv_pipeline *pipeline_take, const test_setting *setting, test_outcome *out, fv_error *error);
/* The same of a value that somebody else has computed. */
void test_outcome_image(const fv_image_type *type, const void *data, test_outcome *out);
void test_outcome_table(const fv_table *table, test_outcome *out);
bool test_outcome_same(const test_outcome *a, const test_outcome *b);
void test_outcome_release(test_outcome *outcome);

/* A random lattice, number of workers and poison. */
test_setting test_setting_random(uint64_t *state, const char *engine);

/* Lines of a text file that are neither empty nor comments (#). Free with test_lines_free. */
char **test_lines(const char *path, int *count);
void   test_lines_free(char **lines, int count);

#endif
