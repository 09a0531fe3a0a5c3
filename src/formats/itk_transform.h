/* ITK's transforms, as .tfm and .h5 files hold them: a list of entries, each a kind with parameters and fixed parameters. The
 * linear ones are read whatever ITK calls them, several of them as the one that they are together; B-splines are read too, and
 * linear transforms that follow them. Written are AffineTransform and BSplineTransform. */
#ifndef FV_ITK_TRANSFORM_H
#define FV_ITK_TRANSFORM_H

#include "op/control_grid.h"
#include "op/format.h"

enum { FV_ITK_FIXED = 18 }; /* fixed parameters of a BSplineTransform of volumes */

typedef struct fv_itk_entry {
    char    kind[64];
    int     n; /* dimensions; 0: no transform was begun */
    int64_t nparameters;
    int     nfixed;
    double *parameter; /* malloc */
    double  fixed[FV_ITK_FIXED];
} fv_itk_entry;

/* What all entries are together. */
typedef struct fv_itk_transform {
    int             n;
    bool            bends;
    fv_control_grid grid;
    double          matrix[12];
    double         *control; /* of B-splines; malloc */
} fv_itk_transform;

void fv__itk_init(fv_itk_transform *t);
void fv__itk_release(fv_itk_transform *t);
/* "AffineTransform_double_3_3": begins an entry of that kind and its dimensions. */
fv_status fv__itk_begin(const char *path, const char *kind, fv_itk_entry *entry, fv_error *error);
void      fv__itk_end(fv_itk_entry *entry); /* frees its parameters */
/* Puts an entry behind what was read before: of several, the last is applied first. */
fv_status fv__itk_add(const char *path, const fv_itk_entry *entry, fv_itk_transform *t, fv_error *error);
/* The type of the image that the transform is, and what `fovea info` tells of it. */
fv_status fv__itk_type(const char *path, const fv_itk_transform *t, fv_image_type *type, fv_bytes *facts, fv_error *error);
void      fv__itk_store(const fv_itk_transform *t, const fv_image_type *type, const fv_block *block);

/* Of a type that is written: that it is one transform, with the memory of its only piece. */
fv_status fv__itk_layout(const fv_image_file *file, fv_file_layout *layout, fv_error *error);
/* The entry that a block of it is; fv__itk_end frees it. */
fv_status fv__itk_entry_of(const fv_image_type *type, const char *path, const fv_block *block, fv_itk_entry *entry,
                           fv_error *error);

#endif
