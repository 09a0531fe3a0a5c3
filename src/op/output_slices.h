/* Outputs that are one file for each slice: "out/slice_{z}.tif".
 *
 * The word in braces is an axis of the image and becomes the number of the slice along it, from 0, with as many digits as the
 * last one has, and at least four, so that names sort. There may be several such words, all in the name of the file.
 *
 * While it is written, all files lie in the output's temporary folder, and in the end a list of them (name, inode, size, time).
 * Naming moves the files one by one, takes away those of the earlier list that are no part of it any more, and moves the list,
 * which stays beside the files under a hidden name: by it the output is known again. A folder of an interrupted naming has its
 * list still, and naming goes on. */
#ifndef FV_OUTPUT_SLICES_H
#define FV_OUTPUT_SLICES_H

#include "base/base.h"
#include <fovea/image.h>

/* Whether slices may be named after an axis of this name: z, t, c, n, angle, y or x. */
bool fv__slices_along(const char *axis);
/* Whether a path names such an output. */
bool fv__slices_named(const char *path);
/* The axes that its words name, in the order of the image; they are not all of them, nor the last. */
fv_status fv__slices_axes(const char *path, const fv_image_type *type, int axis[FV_MAX_DIMS], int *count, fv_error *error);
/* The file of the slice at these numbers, by axis of the image (caller frees): its name, without folders. */
char *fv__slices_name(const char *path, const fv_image_type *type, const int64_t *position);
/* Where the list lies, beside the files and in the temporary folder (caller frees). */
char *fv__slices_list(const char *path);
char *fv__slices_list_inside(const char *temporary);
/* Writes the list of these files of the temporary folder, durably. */
fv_status fv__slices_write_list(const char *temporary, char *const *names, int64_t count, fv_error *error);
/* Fails if a file that may be a slice of it lies there and none of its lists, in temporaries of it either, has it. */
fv_status fv__slices_check(const char *path, fv_error *error);
/* Whether all files of the list are there as they were made. */
bool fv__slices_there(const char *path);
/* Both steps of naming. All files are durable. */
fv_status fv__slices_give_names(const char *temporary, const char *path, fv_error *error);

#endif
