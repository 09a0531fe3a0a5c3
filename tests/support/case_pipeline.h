/* Pipelines of tests/conformance/cases.txt on its arrays: the expression is their value `result`. */
#ifndef FV_TEST_CASE_PIPELINE_H
#define FV_TEST_CASE_PIPELINE_H

#include "image/region.h"
#include <fovea/fovea.h>
#include <string.h>

#define TEST_CASES "tests/conformance/cases.txt"

/* Whether a case runs a program of the machine, which needs consent. */
static inline bool test_case_runs_program(const char *expression) { return strstr(expression, "command") != NULL; }

/* voxels false: it is told only the types of its arrays. */
fv_pipeline *test_case_pipeline(const char *expression, bool voxels, fv_error *error);
/* The voxels of the array that the pipeline was given as number so-and-so. */
fv_block test_case_array(int number);

#endif
