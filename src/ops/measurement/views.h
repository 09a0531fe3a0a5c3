/* How intensity images lie over labels: axes are matched by name. Along the axes of the labels that it lacks, or where it is one
 * voxel long, an image is repeated. An axis c that only the image has gives columns for each channel, with names that end in _c0,
 * _c1 ...; any other one gives rows for each of its voxels, numbered in a column of its name. Images of the shape of the labels
 * are taken voxel by voxel, unless their axes have the same names in another order. */
#ifndef FV_VIEWS_H
#define FV_VIEWS_H

#include "ops/measurement/object.h"

/* A channel of an image, or an image without channels. */
typedef struct fv__view {
    int     input;
    int     along[FV_MAX_DIMS]; /* by axis of the labels: axis of the image, -1: repeated */
    int     row[FV_MAX_DIMS];   /* by axis of the rows: likewise */
    int     channel_axis;       /* -1: none */
    int64_t channel;
    char    suffix[32]; /* of the columns' names */
} fv__view;

typedef struct fv__views {
    int      count;
    fv__view view[FV__CHANNELS];
    int      naxes; /* of the rows: those that images have and labels lack */
    char     axis[FV_MAX_DIMS][8];
    int64_t  length[FV_MAX_DIMS];
    int64_t  rows; /* of each label: the product of the lengths */
} fv__views;

#define fv__views_init FV_ISA_NAME(fv__views_init)
#define fv__views_apart FV_ISA_NAME(fv__views_apart)
#define fv__views_need FV_ISA_NAME(fv__views_need)
#define fv__view_row FV_ISA_NAME(fv__view_row)
#define fv__view_in_place FV_ISA_NAME(fv__view_in_place)

/* in: labels and images, those that are not given have kind FV_KIND_NONE; inputs: their names. */
fv_status fv__views_init(fv__views *views, const fv_type *const *in, const fv_input *inputs, fv_error *error);
/* Labels are taken apart along this axis, which the type of in[0] above lacks: rows are numbered by its index. */
fv_status fv__views_apart(fv__views *views, const char *axis, int64_t length, fv_error *error);
/* The parts of the images that a chunk of the labels needs, by input. */
void fv__views_need(const fv__views *views, const fv_type *const *in, const fv_region *chunk, fv_region *regions);
/* Whether rows of the image are read where they lie. */
bool fv__view_in_place(const fv__view *view, const fv_type *const *in);
/* n values over the row of labels that begins at `position`, for the row of the table of that number: where they lie, or in
 * `room`. */
const void *fv__view_row(const fv__views *views, int view, const fv_block *image, const int64_t *position, int ndim, int64_t row,
                         int64_t n, void *room);

#endif
