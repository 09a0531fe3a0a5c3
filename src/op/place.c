/* Where the voxels of an image lie. */
#include "op/place.h"
#include "op/axes.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = { "x", "y", "z" };

/* Column of the matrix that belongs to an axis; -1: none does. */
static int column_of(const fv_image_type *type, int axis) {
    for (int column = 0; column < 3; column++)
        if (!strcmp(type->axis[axis], names[column])) return column;
    return -1;
}

void fv__place_move(fv_image_type *type, int axis, double start, double step) {
    int column = column_of(type, axis);
    for (int row = 0; row < 3 && column >= 0 && type->has_affine; row++) {
        type->affine[row * 4 + 3] += type->affine[row * 4 + column] * start;
        type->affine[row * 4 + column] *= step;
    }
}

void fv__place_step(fv_image_type *type, int axis, double start, double step) {
    double lowest = step > 0 ? start : start + (double)(type->shape[axis] - 1) * step;
    type->origin[axis] += type->spacing[axis] * lowest;
    type->spacing[axis] *= fabs(step);
    fv__place_move(type, axis, start, step);
}

bool fv__place_known(const fv_image_type *type) {
    bool known = type->has_affine;
    for (int d = 0; d < type->ndim; d++) known = known || type->spacing[d] != 1 || type->origin[d] != 0 || *type->unit[d];
    return known;
}

static bool same_axes(const fv_image_type *a, const fv_image_type *b) {
    for (int d = 0; d < a->ndim; d++)
        if (d >= b->ndim || strcmp(a->axis[d], b->axis[d])) return false;
    return a->ndim == b->ndim;
}

/* How far the corner of that number lies apart in the two worlds, and the least edge of a voxel. */
static double apart(const fv_image_type *a, const fv_image_type *b, int corner) {
    double sum = 0;
    for (int row = 0; row < 3; row++) {
        double difference = a->affine[row * 4 + 3] - b->affine[row * 4 + 3];
        for (int column = 0; column < 3; column++) {
            int d = fv__axis_find(a, names[column]);
            if (d >= 0 && corner >> column & 1)
                difference += (a->affine[row * 4 + column] - b->affine[row * 4 + column]) * (double)(a->shape[d] - 1);
        }
        sum += difference * difference;
    }
    return sqrt(sum);
}

static double least_edge(const fv_image_type *type) {
    double least = INFINITY;
    for (int column = 0; column < 3; column++) {
        const double *m = type->affine + column;
        if (fv__axis_find(type, names[column]) >= 0) least = FV_MIN(least, sqrt(m[0] * m[0] + m[4] * m[4] + m[8] * m[8]));
    }
    return least;
}

bool fv__place_same(const fv_image_type *a, const fv_image_type *b) {
    const double near = 0.01;
    if (!same_axes(a, b) || a->has_affine != b->has_affine) return false;
    for (int d = 0; d < a->ndim; d++) {
        double length = (double)a->shape[d] * fabs(a->spacing[d] - b->spacing[d]);
        if (strcmp(a->unit[d], b->unit[d]) || !(length <= near * fabs(a->spacing[d]))) return false;
        if (!a->has_affine && !(fabs(a->origin[d] - b->origin[d]) <= near * fabs(a->spacing[d]))) return false;
    }
    for (int corner = 0; corner < 8 && a->has_affine; corner++)
        if (!(apart(a, b, corner) <= near * least_edge(a))) return false;
    return true;
}

void fv__place_take(fv_image_type *type, const fv_image_type *from) {
    if (!same_axes(type, from)) return;
    memcpy(type->spacing, from->spacing, sizeof type->spacing);
    memcpy(type->origin, from->origin, sizeof type->origin);
    memcpy(type->unit, from->unit, sizeof type->unit);
    memcpy(type->affine, from->affine, sizeof type->affine);
    type->has_affine = from->has_affine;
    type->affine_code = from->affine_code;
}

void fv__place_take_behind(fv_image_type *type, const fv_image_type *from) {
    for (int d = 0; d < from->ndim; d++) {
        memcpy(type->unit[d + 1], from->unit[d], sizeof from->unit[d]);
        type->spacing[d + 1] = from->spacing[d];
        type->origin[d + 1] = from->origin[d];
    }
    memcpy(type->affine, from->affine, sizeof type->affine);
    type->has_affine = from->has_affine;
    type->affine_code = from->affine_code;
}

void fv__place_say(const fv_image_type *type, fv_bytes *out) {
    for (int d = 0; d < type->ndim; d++)
        fv__bytes_printf(out, "%s%s %g%s%s", d ? ", " : "spacing ", type->axis[d], type->spacing[d], *type->unit[d] ? " " : "",
                         type->unit[d]);
    for (int i = 0; i < 12 && type->has_affine; i++)
        fv__bytes_printf(out, "%s%g", i == 0 ? ", matrix " : i % 4 ? " " : "; ", type->affine[i]);
    for (int d = 0; d < type->ndim && !type->has_affine; d++)
        fv__bytes_printf(out, "%s%s %g", d ? ", " : ", origin ", type->axis[d], type->origin[d]);
}

void fv__place_forget_world(fv_image_type *type) {
    type->has_affine = false;
    type->affine_code = 0;
    memset(type->affine, 0, sizeof type->affine);
}

double fv__place_finest(const fv_image_type *type) {
    int    axis[FV_MAX_DIMS], n = fv_image_type_spatial(type, axis);
    double least = INFINITY;
    for (int k = 0; k < n; k++) least = FV_MIN(least, fabs(type->spacing[axis[k]]));
    return least;
}

void fv__place_factors(const fv_image_type *type, double spacing, int64_t *factor) {
    int axis[FV_MAX_DIMS], n = fv_image_type_spatial(type, axis);
    for (int k = 0; k < n; k++) {
        double wanted = floor(spacing / fabs(type->spacing[axis[k]]) + 0.5), most = (double)(type->shape[axis[k]] / 8);
        factor[k] = (int64_t)FV_MAX(FV_MIN(wanted, most), 1);
    }
}

void fv__unit_name(const char *word, char unit[16]) {
    static const char *const words[][2] = {
        { "micron", "micrometer" },
        { "microns", "micrometer" },
        { "micrometers", "micrometer" },
        { "um", "micrometer" },
        { "\xc2\xb5m", "micrometer" },
        { "\xce\xbcm", "micrometer" },
        { "\\u00B5m", "micrometer" },
        { "\xb5m", "micrometer" },
        { "nm", "nanometer" },
        { "nanometers", "nanometer" },
        { "pm", "picometer" },
        { "mm", "millimeter" },
        { "millimeters", "millimeter" },
        { "cm", "centimeter" },
        { "m", "meter" },
        { "sec", "second" },
        { "seconds", "second" },
        { "s", "second" },
        { "ms", "millisecond" },
        { "\xc3\x85", "angstrom" },
        { "in", "inch" },
    };
    unit[0] = 0;
    if (!word || !strncmp(word, "pixel", 5) || strlen(word) >= 16) return;
    snprintf(unit, 16, "%s", word);
    for (int i = 0; i < FV_COUNT(words); i++)
        if (!strcmp(words[i][0], word)) snprintf(unit, 16, "%s", words[i][1]);
}
