/* Transforms of either kind, linear or B-splines, as operators of registration use them: where one leads to, and B-splines that
 * lead to the same. */
#ifndef FV_WAYS_H
#define FV_WAYS_H

#include "base/isa.h"
#include "kernels/bspline.h"
#include "op/op.h"
#include "op/scratch.h"

typedef struct fv_way {
    bool            bends;  /* by B-splines */
    int             n;      /* dimensions */
    fv_transform    linear; /* before: that of B-splines too */
    fv_control_grid grid;
    double          matrix[12];
    double         *control; /* of B-splines */
} fv_way;

#define fv__way_find FV_ISA_NAME(fv__way_find)
#define fv__way_lay_out FV_ISA_NAME(fv__way_lay_out)
#define fv__way_load FV_ISA_NAME(fv__way_load)
#define fv__way_to FV_ISA_NAME(fv__way_to)
#define fv__way_sample FV_ISA_NAME(fv__way_sample)
#define fv__ways_over FV_ISA_NAME(fv__ways_over)
#define fv__ways_need FV_ISA_NAME(fv__ways_need)
#define fv__ways_slab FV_ISA_NAME(fv__ways_slab)

/* The transform that a type is; an error that names it if it is none. */
fv_status fv__way_find(const fv_image_type *type, const char *name, fv_way *way, fv_error *error);
/* Memory for its control points. */
void fv__way_lay_out(fv_way *way, fv_scratch *pieces);
/* That at a place of the axes before the transforms of `out` (its own type), out of a block that holds it. */
void fv__way_load(fv_way *way, const fv_image_type *type, const fv_block *block, const fv_image_type *out, const int64_t *before);
/* Where a place leads to, and (slope != NULL) how that changes: slope[r * 3 + c] is that of r along c. */
void fv__way_to(const fv_way *way, const double place[3], double to[3], double slope[9]);

/* The control points of B-splines that lead each of their sites to where find says it goes. memory: of fv__bspline_solve_bytes.
 */
typedef fv_status fv_way_find_to(const void *context, const double place[3], double to[3], fv_error *error);
fv_status fv__way_sample(const fv_control_grid *grid, fv_way_find_to *find, const void *context, void *memory, double *control,
                         fv_error *error);

/* For operators that make transforms of transforms, their first inputs. The type of B-splines over an image (NULL: over the same
 * region as those of from) with this distance of control points (0: half that of from), for all places of the axes before. */
fv_status fv__ways_over(const fv_image_type *from, const char *name, const fv_image_type *onto, double distance,
                        fv_image_type *type, fv_error *error);
void      fv__ways_need(const fv_need *n, int transforms, fv_region *in);
void      fv__ways_slab(const fv_need *n, int64_t *chunk);

#endif
