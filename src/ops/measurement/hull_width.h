/* The least width of a convex solid: the smallest distance between two parallel planes that it fits between.
 *
 * Such planes touch the solid at a face and a corner, or at two edges. Whether two edges are opposite each other, so that
 * parallel planes through them hold the solid between them, is told by the corners of the faces at these edges alone.
 */
#ifndef FV_HULL_WIDTH_H
#define FV_HULL_WIDTH_H

#include "base/base.h"
#include "base/isa.h"

/* An edge between two faces that are not in one plane. */
typedef struct fv__hull_edge {
    double at[3], along[3];
    double beyond[2][3]; /* the third corners of both faces, from `at` */
    double normal[2][3]; /* outward, of both faces */
} fv__hull_edge;

typedef struct fv__hull_shape {
    const double (*corner)[3];
    const double (*normal)[3]; /* of faces, outward */
    const double (*on)[3];     /* a corner of each face */
    const fv__hull_edge *edge;
    int64_t              corners, faces, edges;
} fv__hull_shape;

#define fv__hull_width FV_ISA_NAME(fv__hull_width)

/* spacing: what a step along each axis is worth. */
fv_status fv__hull_width(const fv__hull_shape *shape, const double spacing[3], double *width, fv_error *error);

#endif
