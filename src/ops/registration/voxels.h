/* The images of a registration: what of them is read for one transform, what is known of their values, and these as they are
 * compared. */
#ifndef FV_VOXELS_H
#define FV_VOXELS_H

#include "base/isa.h"
#include "op/op.h"
#include "op/physical.h"

#define fv__voxels_part FV_ISA_NAME(fv__voxels_part)
#define fv__voxels_count FV_ISA_NAME(fv__voxels_count)
#define fv__voxels_visit FV_ISA_NAME(fv__voxels_visit)
#define fv__voxels_summarize FV_ISA_NAME(fv__voxels_summarize)
#define fv__voxels_scale FV_ISA_NAME(fv__voxels_scale)
#define fv__voxels_keep FV_ISA_NAME(fv__voxels_keep)

/* All of an input's voxels at those places of the result's first `before` axes that n->region has. */
void fv__voxels_part(const fv_need *n, int input, int before, fv_region *in);
/* Voxels at one place of the axes that are not spatial. */
int64_t fv__voxels_count(const fv_image_type *type, const fv_physical *place);

/* Calls visit with each row of an image's part at a place of its other axes: n values, that of voxel `at`, and along which of x,
 * y, z they lie (3: along an axis that is not spatial, and there is one). row: room for the longest. */
typedef void fv_row_visit(void *context, const float *row, int64_t n, const int64_t at[3], int along);
void fv__voxels_visit(const fv_block *block, const fv_physical *place, const fv_region *part, float *row, fv_row_visit *visit,
                      void *context);

typedef struct fv_voxel_summary {
    double sum, squares, low, high, moment[3];
    bool   finite;
} fv_voxel_summary;
/* What is known of the values; an error if they are not finite, or all the same. */
fv_status fv__voxels_summarize(const fv_block *block, const fv_physical *place, const fv_region *part, float *row,
                               const char *name, fv_voxel_summary *summary, fv_error *error);

/* value becomes (value - offset) * share: its mean is 0 and its variance 1. */
typedef struct fv_voxel_scale {
    double offset, share;
} fv_voxel_scale;
fv_voxel_scale fv__voxels_scale(const fv_voxel_summary *summary, int64_t voxels);
/* The scaled values as an image of size x, y, z, x fastest. */
void fv__voxels_keep(const fv_block *block, const fv_physical *place, const fv_region *part, float *row,
                     const fv_voxel_scale *scale, const int64_t size[3], float *to);

#endif
