/* Types of point-wise operators: what the inputs are computed in and what comes out. An operator names one of these as its
 * infer.
 *
 * Common to all: the axes of images are matched by name (op/broadcast.h); axes, spacing, units and affine come from the image
 * with most axes, of several the first that knows any; a scalar never changes the shape, and is brought to the compute type (it
 * is weak); only scalars give a scalar. Complex images are refused.
 *
 * "Small" below: bool, integers of 8 and 16 bits, float32. */
#ifndef FV_PROMOTE_H
#define FV_PROMOTE_H

#include "op/op.h"

/* Sentences for the documentation of operators that follow these rules. */
#define FV_DOC_ARITHMETIC                                                                                                        \
    "The result cannot overflow: images of bool, of integers of up to 16 bits and of float32 give float32, all others "          \
    "float64."
#define FV_DOC_COMPARISON                                                                                                        \
    "The result is a mask (bool). Integers are compared exactly, also with a number that has a fraction; only 64-bit "           \
    "integers are compared with such a number as float64. With a float32 image, a number is rounded to float32 first."
#define FV_DOC_SELECT                                                                                                            \
    "Images of one type keep it, also together with a whole number, which is brought into the range of the type. "               \
    "Different types give the types of arithmetic: float32, or float64 for wide integers and float64."

/* Arithmetic never wraps: small types give float32, others float64; scalars float64. */
fv_status fv__infer_arithmetic(fv_infer *i, fv_error *error);
/* The same, but whole scalars give a whole scalar. */
fv_status fv__infer_integral(fv_infer *i, fv_error *error);
/* Bool, compared exactly: an integer against an integer or a number with a fraction. (Integers of 64 bits against a real
 * number are compared in float64. Scalars take the type of a float32 image.) */
fv_status fv__infer_comparison(fv_infer *i, fv_error *error);
/* The type of the first input stays; further inputs are scalars. */
fv_status fv__infer_keep(fv_infer *i, fv_error *error);
/* One of the inputs is the result: their common type if they agree, else as arithmetic. A whole number fits every type (it
 * saturates), a real number only floating-point images. */
fv_status fv__infer_select(fv_infer *i, fv_error *error);
/* The same for inputs 1 and 2, chosen by input 0, which is bool. */
fv_status fv__infer_where(fv_infer *i, fv_error *error);
/* Bits: bools give bool, integers the least integer type that holds both. Real numbers are refused. */
fv_status fv__infer_bits(fv_infer *i, fv_error *error);
/* Bool, asked of one floating-point value. */
fv_status fv__infer_test(fv_infer *i, fv_error *error);

/* Refuses images of different shapes by the names of the inputs. */
fv_status fv__same_shape(const fv_image_type *image, const char *image_name, const fv_image_type *other, const char *name,
                         fv_error *error);

/* The type that holds every value of an element type and is computed in: FLOAT32, FLOAT64, INT64, UINT64 or BOOL. */
fv_dtype fv__compute_type(fv_dtype dtype);

#endif
