/* What the operators of tomography share: which axes projections have, whether a geometry fits them, and bundles of 16 slices. */
#ifndef FV_SCAN_H
#define FV_SCAN_H

#include "kernels/beam.h"
#include "op/op.h"

#define fv__angles_check FV_ISA_NAME(fv__angles_check)
#define fv__scan_find FV_ISA_NAME(fv__scan_find)
#define fv__scan_volume FV_ISA_NAME(fv__scan_volume)
#define fv__scan_weigh FV_ISA_NAME(fv__scan_weigh)
#define fv__scan_need FV_ISA_NAME(fv__scan_need)
#define fv__scan_pack FV_ISA_NAME(fv__scan_pack)
#define fv__scan_slices FV_ISA_NAME(fv__scan_slices)
#define fv__first_bad FV_ISA_NAME(fv__first_bad)
#define fv__bundle_pack FV_ISA_NAME(fv__bundle_pack)
#define fv__bundle_unpack FV_ISA_NAME(fv__bundle_unpack)

/* Projections: axes angle z x or z angle x, or angle x of a single slice. */
typedef struct fv_scan {
    int     angle, row, column; /* index of these axes; row -1: a single slice */
    int64_t nangles, nrows, ncolumns;
    bool    half;   /* a half acquisition: a whole turn, the axis far from the middle of the detector */
    int64_t field;  /* columns that see all of what turns through the beam: of a half acquisition more than the detector has */
    int64_t before; /* those before the detector's first */
    const float *weights; /* of columns, where packed rows are to have all columns of the field; NULL: they have the detector's */
} fv_scan;

/* Whether the angles of a geometry can be meant. */
fv_status fv__angles_check(const fv_list *angles, bool radians, fv_error *error);
/* Fails with a sentence where the geometry does not fit the projections. */
fv_status fv__scan_find(const fv_image_type *projections, const fv_geometry *geometry, fv_scan *scan, fv_error *error);
/* The type of the reconstruction: float32, z y x or y x. size: none, one or two numbers of voxels; none: the width of the field.
 */
fv_status fv__scan_volume(const fv_image_type *projections, const fv_scan *scan, fv_numbers *size, fv_image_type *out,
                          fv_error *error);
/* What the columns of a half acquisition count, so that a ray and the one that comes from its other end count as two together:
 * measured on one side only they count twice, with a smooth change over what is measured on both. ncolumns numbers. */
void fv__scan_weigh(const fv_scan *scan, const fv_geometry *geometry, float *weights);
/* The projections that a region of the volume needs: its detector rows, at every angle. */
fv_region fv__scan_need(const fv_scan *scan, const fv_image_type *projections, const fv_region *volume);
/* Slices of a region whose slice axis is `row`: first and how many; one where there is no such axis (-1). */
void fv__scan_slices(const fv_region *region, int row, int64_t *first, int64_t *count);

/* The first of n values that is not finite; -1: none. */
int64_t fv__first_bad(const float *row, int64_t n);

/* Bytes of scratch for the next two. */
static inline int64_t fv__bundle_rows_bytes(int64_t longest) { return longest * FV_BEAM_LANES * (int64_t)sizeof(float); }
/* Rows of up to 16 slices side by side: [angles][columns + 4][16] (with weights those of the field), the border and missing
 * slices zero. Fails at a value that is not finite. */
fv_status fv__scan_pack(const fv_scan *scan, const fv_block *projections, int64_t first, int64_t count, float *rows,
                        float *sinogram, fv_error *error);
/* The same for whole slices of a volume: [rows + 4][width + 4][16]. what: its name in the message. */
fv_status fv__bundle_pack(const fv_beam *beam, const fv_block *volume, int64_t first, int64_t count, const char *what,
                          float *rows, float *image, fv_error *error);
/* Voxels from[n][16] to a line of n voxels of each slice; at: address of the first of slice `first`, stride between slices. */
void fv__bundle_unpack(const float *from, int64_t n, int64_t slices, float *at, int64_t stride);

#endif
