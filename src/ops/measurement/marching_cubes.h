/* The triangles that separate the corners of a cube that are inside from those outside, for each of the 256 ways in which they
 * can be (W. E. Lorensen and H. E. Cline, Marching cubes, SIGGRAPH 1987).
 *
 * The table is not written down but follows from one rule: on each face of the cube, every run of inside corners is cut off by a
 * line of its own. Both cubes at a face see the same lines there, so the surface has no holes, whatever the image. The lines of
 * all faces form rings around the inside corners; a ring of n points becomes n - 2 triangles.
 *
 * Corner c lies at x = c & 1, y = c >> 1 & 1, z = c >> 2 of the cube. Edge e joins corners first[e] and second[e].
 */
#ifndef FV_MARCHING_CUBES_H
#define FV_MARCHING_CUBES_H

#include "base/isa.h"
#include <stdint.h>

enum { FV__CUBE_EDGES = 12, FV__CUBE_TRIANGLES = 5 };

typedef struct fv__marching_cubes {
    uint8_t first[FV__CUBE_EDGES], second[FV__CUBE_EDGES];
    uint8_t count[256];                            /* triangles */
    uint8_t edge[256][3 * FV__CUBE_TRIANGLES + 1]; /* their corners; counterclockwise, seen from outside */
} fv__marching_cubes;

#define fv__marching_cubes_areas FV_ISA_NAME(fv__marching_cubes_areas)
#define fv__marching_cubes_init FV_ISA_NAME(fv__marching_cubes_init)

void fv__marching_cubes_init(fv__marching_cubes *table);
/* The area of the triangles of each way, between the middles of edges; spacing: along z, y, x. */
void fv__marching_cubes_areas(const double spacing[3], double area[256]);

#endif
