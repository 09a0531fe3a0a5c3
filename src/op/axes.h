/* Axes of an image type by name: finding, dropping, appending. */
#ifndef FV_AXES_H
#define FV_AXES_H

#include "base/base.h"
#include <fovea/image.h>

/* Of a file without names of axes (NPY): y x 3 and z y x 3 of 8 bits, as programs keep colours, get these names. */
void fv__axes_guess_colour(fv_image_type *type);
/* Index of the axis of that name, -1 if there is none. */
int fv__axis_find(const fv_image_type *type, const char *name);
/* Takes an axis out. Of a spatial one the affine matrix keeps its column: what is left lies at 0 along it, so move it there first
 * (fv__place_move). */
void fv__axis_drop(fv_image_type *type, int axis);
/* Puts an axis after the last one; there must be room. */
void fv__axis_append(fv_image_type *type, const char *name, int64_t size);
/* Puts an axis before that of a number; there must be room. */
void fv__axis_insert(fv_image_type *type, int axis, const char *name, int64_t size);

/* The axes that words with blanks between them name, in the order of the words; without words (NULL or ""): the spatial ones, in
 * order. Each at most once; there is at least one. */
fv_status fv__axes_pick(const fv_image_type *type, const char *words, int axis[FV_MAX_DIMS], int *count, fv_error *error);

/* Names all axes from words with blanks between them, slowest first: "angle z x". One word per axis, each at most 7 letters long
 * and used once. An affine matrix
 * goes if x, y or z then mean another axis than before. */
fv_status fv__axes_name(fv_image_type *type, const char *words, fv_error *error);

#endif
