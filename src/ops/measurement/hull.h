/* The convex hull of an object, exactly: from the first and last voxel of each of its rows, in whole numbers.
 *
 * As in scikit-image, a voxel is a small octahedron (in a plane, a diamond) whose corners are the middles of its faces. The
 * convex object is made of all voxels whose middle lies in the hull of these or on it. Its greatest diameter is that between two
 * such corners, its least one the smallest distance between two parallel lines (in space, planes) that hold all of them.
 */
#ifndef FV_HULL_H
#define FV_HULL_H

#include "base/base.h"
#include "base/isa.h"

typedef struct fv__hull {
    fv_bytes points;  /* of the object: corners of the hulls of its planes */
    size_t   enough;  /* bytes of these, before those that lie inside are left out */
    fv_bytes plane;   /* rows of the plane under way */
    int64_t  z, rows; /* of it; rows of all planes */
    int64_t  low[3], high[3];
} fv__hull;

typedef struct fv__hull_measures {
    int64_t voxels; /* of the convex object */
    double  feret_max, feret_min;
} fv__hull_measures;

#define fv__hull_start FV_ISA_NAME(fv__hull_start)
#define fv__hull_row FV_ISA_NAME(fv__hull_row)
#define fv__hull_finish FV_ISA_NAME(fv__hull_finish)
#define fv__hull_release FV_ISA_NAME(fv__hull_release)

void fv__hull_start(fv__hull *hull);
/* The row z, y reaches from first to last, both inside. Rows come in order, each once. */
fv_status fv__hull_row(fv__hull *hull, int64_t z, int64_t y, int64_t first, int64_t last, fv_error *error);
/* spacing: along z, y, x. plane: of a plane, where z is 0. */
fv_status fv__hull_finish(fv__hull *hull, const double spacing[3], bool plane, fv__hull_measures *measures, fv_error *error);
void      fv__hull_release(fv__hull *hull);

#endif
