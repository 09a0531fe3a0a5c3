/* Cubic B-splines over a grid of control points (op/control_grid.h): displacements of places, and control points from
 * displacements.
 *
 * Weights of control points are never negative and add up to one inside the grid, so that no displacement is larger than the
 * largest of the control points.
 */
#ifndef FV_BSPLINE_H
#define FV_BSPLINE_H

#include "base/isa.h"
#include "op/control_grid.h"

#define fv__bspline_weights FV_ISA_NAME(fv__bspline_weights)
#define fv__bspline_at FV_ISA_NAME(fv__bspline_at)
#define fv__bspline_row FV_ISA_NAME(fv__bspline_row)
#define fv__bspline_solve_bytes FV_ISA_NAME(fv__bspline_solve_bytes)
#define fv__bspline_solve FV_ISA_NAME(fv__bspline_solve)

/* The first of four control points along an axis of that many, their weights at a place, and how these change. */
int64_t fv__bspline_weights(double at, int64_t size, double weight[4], double slope[4]);
/* The displacement at a place of physical space, and (slope != NULL) how it changes there: slope[r * 3 + c] is that of r along
 * c. control: components slowest, x fastest. */
void fv__bspline_at(const fv_control_grid *g, const double *control, const double place[3], double moved[3], double slope[9]);
/* Displacements of n places of a row, base + (first + i) * step in control points. The bits are those of each place alone. line:
 * 3 * (FV_CONTROL_MOST) numbers to work in. */
void fv__bspline_row(const fv_control_grid *g, const double *control, const double base[3], const double step[3], int64_t first,
                     int64_t n, double *line, double *const moved[3]);

/* Where displacements must be known to find the control points, along an axis of so many: place i of as many. The splines go
 * through all of these, and a displacement that such splines can have is found as it is. */
static inline double fv__bspline_site(int64_t i, int64_t size) {
    if (size == 4) return 1 + (double)i / 3;
    return i == 0 ? 1 : i == 1 ? 1.5 : i == size - 2 ? (double)size - 2.5 : i == size - 1 ? (double)size - 2 : (double)i;
}
/* Turns displacements at the sites into control points, in place. */
int64_t fv__bspline_solve_bytes(const fv_control_grid *g);
void    fv__bspline_solve(const fv_control_grid *g, double *control, void *memory);

#endif
