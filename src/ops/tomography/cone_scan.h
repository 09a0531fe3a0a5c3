/* What operators on cone beams share: whether the geometry sees the volume, the type of that, and projecting and spreading. */
#ifndef FV_CONE_SCAN_H
#define FV_CONE_SCAN_H

#include "kernels/cone_rays.h"
#include "ops/tomography/scan.h"

#define fv__cone_check FV_ISA_NAME(fv__cone_check)
#define fv__cone_volume FV_ISA_NAME(fv__cone_volume)
#define fv__cone_set FV_ISA_NAME(fv__cone_set)
#define fv__cone_turn FV_ISA_NAME(fv__cone_turn)
#define fv__cone_xray_need FV_ISA_NAME(fv__cone_xray_need)
#define fv__cone_xray_scratch FV_ISA_NAME(fv__cone_xray_scratch)
#define fv__cone_xray_run FV_ISA_NAME(fv__cone_xray_run)
#define fv__cone_spread_need FV_ISA_NAME(fv__cone_spread_need)
#define fv__cone_spread_scratch FV_ISA_NAME(fv__cone_spread_scratch)
#define fv__cone_spread_run FV_ISA_NAME(fv__cone_spread_run)

enum { FV_CONE_HEIGHT = 64 }; /* slices or detector rows of a slab */

/* Fails with a sentence where the source would touch the volume or the detector sees nothing of it. */
fv_status fv__cone_check(const fv_geometry *geometry, const fv_image_type *projections, const fv_image_type *volume,
                         fv_error *error);
/* The type of the volume that is reconstructed: float32, z y x, or y x from angle x. size: none, or slices, rows and columns (of
 * a single slice one number or two). Checks the geometry. */
fv_status fv__cone_volume(const fv_geometry *geometry, const fv_image_type *projections, const fv_numbers *size,
                          fv_image_type *out, fv_error *error);
/* Everything but cosines, sines and the rows that are held. Projections and volume of one slice have two axes each. */
void fv__cone_set(const fv_geometry *geometry, const fv_image_type *projections, const fv_image_type *volume, fv_cone *cone);
/* Fills cosine and sine. */
void fv__cone_turn(const fv_geometry *geometry, fv_cone *cone);

/* xray and backproject of a cone: what a pass needs, with input 0 and the geometry. mean: divided by what ones would give. */
void      fv__cone_xray_need(const fv_need *n, const fv_geometry *geometry, fv_region *in);
size_t    fv__cone_xray_scratch(const fv_need *n, const fv_geometry *geometry);
fv_status fv__cone_xray_run(fv_run *r, const fv_geometry *geometry, fv_error *error);
void      fv__cone_spread_need(const fv_need *n, const fv_geometry *geometry, fv_region *in);
size_t    fv__cone_spread_scratch(const fv_need *n, const fv_geometry *geometry, bool mean);
fv_status fv__cone_spread_run(fv_run *r, const fv_geometry *geometry, bool mean, fv_error *error);

#endif
