/* Crofton's formula: length of a curve in a plane, area of a surface in space, from counts of the lattice lines that meet it.
 *
 * A direction stands for all directions nearer to it than to the others, so its weight is its share of the circle or sphere; with
 * spacing these shares differ. In a plane with square pixels this is skimage.measure.perimeter_crofton with 4 directions.
 */
#ifndef FV_CROFTON_H
#define FV_CROFTON_H

#include "ops/measurement/windows.h"

typedef struct fv__crofton {
    int    count;
    double weight[FV__PAIRS];
} fv__crofton; /* of an exit in each direction */

#define fv__crofton_init FV_ISA_NAME(fv__crofton_init)
#define fv__crofton_measure FV_ISA_NAME(fv__crofton_measure)

void   fv__crofton_init(fv__crofton *crofton, const fv_image_type *labels);
double fv__crofton_measure(const fv__crofton *crofton, const fv__object *object); /* length or area */

#endif
