/* Runs one operator on arrays in memory, without planner or engine: whole, or chunk by chunk with poison outside the declared
 * regions. For tests and kernel benchmarks of operators.
 *
 *     test_image in = test_image_new(FV_FLOAT32, 2, (int64_t[]){ 100, 80 });
 *     test_output out = { 0 };
 *     CHECK(test_apply("gaussian", "sigma=2; mode=wrap", (test_image *[]){ &in }, 1, NULL, 0, &out, &error) == FV_OK);
 */
#ifndef FV_TEST_APPLY_H
#define FV_TEST_APPLY_H

#include "op/op.h"

typedef struct test_image {
    fv_type   type; /* an image, or a scalar with value below */
    void     *data;
    fv_scalar scalar;
} test_image;

typedef struct test_output {
    fv_type   type;
    void     *data; /* dense image */
    fv_scalar scalar;
    fv_cell  *cells; /* table rows */
    int64_t   nrows;
    double    seconds; /* spent inside run() and finish() */
} test_output;

test_image test_image_new(fv_dtype dtype, int ndim, const int64_t *shape); /* zeroed */
test_image test_scalar(double value);
void test_image_random(test_image *image, uint64_t seed); /* floats in [0, 1), integers over 0..200 or their range, bools half */
void test_image_free(test_image *image);
void test_output_free(test_output *output);

/* params: "name=value; name=value", values as fv__literal_parse takes them, footprints as ball(3), box(5), box(3,5), disk(2),
 * cross(). chunk: the lattice of the output (or of input 0 for reductions), NULL for one whole chunk. With chunks, input
 * windows are set in a margin filled with the byte `poison`, and so is the output before it runs. A missing input is NULL. */
fv_status test_apply(const char *op, const char *params, test_image *const *inputs, int ninputs, const int64_t *chunk,
                     uint8_t poison, test_output *output, fv_error *error);

/* Whole against `rounds` random lattices, each with two poisons: true if all bits agree, else message says where not. */
bool test_conforms(const char *op, const char *params, test_image *const *inputs, int ninputs, int rounds, char message[256]);

/* The operator on every instruction set that the processor runs: true if all bits agree, else message says which differs. */
bool test_same_on_every_isa(const char *op, const char *params, test_image *const *inputs, int ninputs, char message[256]);

#endif
