/* Types of point-wise operators. */
#include "op/promote.h"
#include "op/broadcast.h"
#include "op/place.h"
#include <stdio.h>

/* What the inputs are, seen at once. */
typedef struct {
    const fv_image_type *image;         /* the first; NULL: all are scalars */
    bool                 small;         /* all images are */
    bool                 mixed;         /* images differ in type */
    bool                 integers;      /* all images and scalars are integers or bools */
    bool                 bools;         /* all images and scalars are bools */
    bool                 bool_images;   /* all images are bools */
    bool                 real;          /* a scalar is float64 */
    bool                 wide_signed;   /* an image is int64 */
    bool                 wide_unsigned; /* an image or scalar is uint64 */
    bool                 unsigned_only; /* all images and scalars are uint64 */
    bool                 float32;       /* an image is */
} survey;

static bool is_small(fv_dtype dtype) { return dtype == FV_FLOAT32 || (fv_dtype_size(dtype) <= 2 && !fv_dtype_is_float(dtype)); }

static void add_type(survey *s, const fv_type *type) {
    fv_dtype dtype = type->kind == FV_KIND_IMAGE ? type->image.dtype : type->dtype;
    s->integers = s->integers && !fv_dtype_is_float(dtype);
    s->bools = s->bools && dtype == FV_BOOL;
    s->wide_unsigned = s->wide_unsigned || dtype == FV_UINT64;
    s->unsigned_only = s->unsigned_only && dtype == FV_UINT64;
    if (type->kind != FV_KIND_IMAGE) {
        s->real = s->real || dtype == FV_FLOAT64;
        return;
    }
    if (!s->image) s->image = &type->image;
    s->mixed = s->mixed || dtype != s->image->dtype;
    s->small = s->small && is_small(dtype);
    s->bool_images = s->bool_images && dtype == FV_BOOL;
    s->wide_signed = s->wide_signed || dtype == FV_INT64;
    s->float32 = s->float32 || dtype == FV_FLOAT32;
}

static survey look(const fv_infer *i, int first) {
    survey s = { .small = true, .integers = true, .bools = true, .bool_images = true, .unsigned_only = true };
    for (int k = first; k < i->ninputs; k++)
        if (i->in[k]->kind != FV_KIND_NONE) add_type(&s, i->in[k]);
    return s;
}

static bool same_shape(const fv_image_type *a, const fv_image_type *b) {
    return a->ndim == b->ndim && !memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape);
}

fv_status fv__same_shape(const fv_image_type *image, const char *image_name, const fv_image_type *other, const char *name,
                         fv_error *error) {
    char one[FV_AXES_TEXT], two[FV_AXES_TEXT];
    if (same_shape(image, other)) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE, "%s has another shape than %s: %s and %s; they must be equal", name, image_name,
                   fv__axes_text(other, one), fv__axes_text(image, two));
}

/* Checks kinds, and makes the output an image with the axes of all, or a scalar; *image: whether it is one. */
static fv_status shape_output(fv_infer *i, bool *image, fv_error *error) {
    const fv_image_type *images[FV_MAX_INPUTS];
    int                  count = 0;
    for (int k = 0; k < i->ninputs; k++) {
        if (i->in[k]->kind != FV_KIND_IMAGE) continue;
        images[count++] = &i->in[k]->image;
        if (fv_dtype_is_complex(i->in[k]->image.dtype))
            return fv_fail(error, FV_ERROR_USAGE, "the image is %s; real, integer and bool images are possible",
                           fv_dtype_name(i->in[k]->image.dtype));
    }
    fv_type out = { .kind = count ? FV_KIND_IMAGE : FV_KIND_SCALAR };
    *image = count > 0;
    if (count) FV_TRY(fv__broadcast(images, count, &out.image, error));
    for (int k = 0; k < count && !fv__place_known(&out.image); k++) fv__place_take(&out.image, images[k]);
    *i->out = out;
    return FV_OK;
}

static void set(fv_infer *i, fv_dtype compute, fv_dtype dtype) {
    i->compute = compute;
    if (i->out->kind == FV_KIND_IMAGE)
        i->out->image.dtype = dtype;
    else
        i->out->dtype = dtype;
}

fv_dtype fv__compute_type(fv_dtype dtype) {
    if (dtype == FV_BOOL || dtype == FV_INT64 || dtype == FV_UINT64) return dtype;
    return is_small(dtype) ? FV_FLOAT32 : FV_FLOAT64;
}

/* ---------------------------------------------------------------- arithmetic */

fv_status fv__infer_arithmetic(fv_infer *i, fv_error *error) {
    bool image;
    FV_TRY(shape_output(i, &image, error));
    fv_dtype dtype = image && look(i, 0).small ? FV_FLOAT32 : FV_FLOAT64;
    set(i, dtype, dtype);
    return FV_OK;
}

fv_status fv__infer_integral(fv_infer *i, fv_error *error) {
    FV_TRY(fv__infer_arithmetic(i, error));
    survey s = look(i, 0);
    if (!s.image && s.integers && !s.wide_unsigned) set(i, FV_INT64, FV_INT64);
    return FV_OK;
}

/* ---------------------------------------------------------------- comparison */

/* The type in which all inputs, converted, keep their order. A uint64 saturated to int64 does, but for the largest int64. */
static fv_dtype comparing_type(const survey *s) {
    if (s->unsigned_only) return FV_UINT64;
    if (!s->image) return s->integers ? FV_INT64 : FV_FLOAT64;
    if (s->small && (s->float32 || !s->real)) return FV_FLOAT32;
    return s->integers && (s->wide_signed || s->wide_unsigned) ? FV_INT64 : FV_FLOAT64;
}

fv_status fv__infer_comparison(fv_infer *i, fv_error *error) {
    bool image;
    FV_TRY(shape_output(i, &image, error));
    survey s = look(i, 0);
    set(i, comparing_type(&s), FV_BOOL);
    return FV_OK;
}

fv_status fv__infer_test(fv_infer *i, fv_error *error) {
    bool image;
    FV_TRY(shape_output(i, &image, error));
    set(i, image && look(i, 0).small ? FV_FLOAT32 : FV_FLOAT64, FV_BOOL);
    return FV_OK;
}

/* ---------------------------------------------------------------- one of the inputs */

fv_status fv__infer_keep(fv_infer *i, fv_error *error) {
    bool image;
    FV_TRY(shape_output(i, &image, error));
    survey   s = look(i, 0);
    fv_dtype dtype = image             ? s.image->dtype
                     : !s.integers     ? FV_FLOAT64
                     : s.wide_unsigned ? FV_UINT64
                     : s.bools         ? FV_BOOL
                                       : FV_INT64;
    set(i, fv__compute_type(dtype), dtype);
    return FV_OK;
}

/* From the values that may become the result. */
static void select_type(fv_infer *i, const survey *s) {
    fv_dtype dtype;
    bool     image = i->out->kind == FV_KIND_IMAGE;
    if (s->image && !s->mixed && !(s->real && !fv_dtype_is_float(s->image->dtype)))
        dtype = s->image->dtype;
    else if (!s->image && s->bools)
        dtype = FV_BOOL;
    else if (image)
        dtype = s->small ? FV_FLOAT32 : FV_FLOAT64;
    else
        dtype = s->integers && !s->wide_unsigned ? FV_INT64 : FV_FLOAT64;
    set(i, fv__compute_type(dtype), dtype);
}

fv_status fv__infer_select(fv_infer *i, fv_error *error) {
    bool image;
    FV_TRY(shape_output(i, &image, error));
    survey s = look(i, 0);
    select_type(i, &s);
    return FV_OK;
}

fv_status fv__infer_where(fv_infer *i, fv_error *error) {
    bool     image;
    fv_dtype condition = i->in[0]->kind == FV_KIND_IMAGE ? i->in[0]->image.dtype : i->in[0]->dtype;
    FV_TRY(shape_output(i, &image, error));
    if (condition != FV_BOOL)
        return fv_fail(error, FV_ERROR_USAGE, "condition is %s; it must be bool, as a comparison gives it",
                       fv_dtype_name(condition));
    survey s = look(i, 1);
    select_type(i, &s);
    return FV_OK;
}

/* ---------------------------------------------------------------- bits */

/* The least integer type that holds both; false for uint64 with a signed one. */
static bool common_integer(fv_dtype a, fv_dtype b, fv_dtype *common) {
    static const fv_dtype signed_types[] = { FV_INT8, FV_INT16, FV_INT32, FV_INT64 };
    if (a == FV_BOOL || b == FV_BOOL || fv_dtype_is_signed(a) == fv_dtype_is_signed(b)) {
        *common = a == FV_BOOL ? b : b == FV_BOOL || fv_dtype_size(a) >= fv_dtype_size(b) ? a : b;
        return true;
    }
    size_t unsigned_size = fv_dtype_size(fv_dtype_is_signed(a) ? b : a),
           signed_size = fv_dtype_size(fv_dtype_is_signed(a) ? a : b);
    for (int k = 0; k < FV_COUNT(signed_types); k++)
        if (fv_dtype_size(signed_types[k]) >= signed_size && fv_dtype_size(signed_types[k]) > unsigned_size) {
            *common = signed_types[k];
            return true;
        }
    return false;
}

fv_status fv__infer_bits(fv_infer *i, fv_error *error) {
    bool image;
    FV_TRY(shape_output(i, &image, error));
    survey s = look(i, 0);
    if (!s.integers) return fv_fail(error, FV_ERROR_USAGE, "bool and integer images and numbers are possible, real ones are not");
    if (image ? s.bool_images : s.bools) {
        set(i, FV_BOOL, FV_BOOL);
        return FV_OK;
    }
    fv_dtype dtype = image ? s.image->dtype : s.wide_unsigned ? FV_UINT64 : FV_INT64;
    for (int k = 0; k < i->ninputs; k++)
        if (i->in[k]->kind == FV_KIND_IMAGE && !common_integer(dtype, i->in[k]->image.dtype, &dtype))
            return fv_fail(error, FV_ERROR_USAGE, "no integer type holds both %s and %s; convert one of the images",
                           fv_dtype_name(s.image->dtype), fv_dtype_name(i->in[k]->image.dtype));
    set(i, dtype == FV_UINT64 ? FV_UINT64 : FV_INT64, dtype);
    return FV_OK;
}
