/* The properties that measure knows: their names, what must be counted for them, their columns and values. */
#ifndef FV_PROPERTIES_H
#define FV_PROPERTIES_H

#include "ops/measurement/crofton.h"
#include "ops/measurement/views.h"

enum { FV__PROPERTIES = 24 };
/* Those that other operators compute: see delegated.c. */
/* What the surface of an object is computed with. */
typedef struct fv__surfaces {
    fv__crofton crofton;
    double      mesh[256]; /* area of the triangles in a window, by configuration */
} fv__surfaces;

#define FV__FURTHER_PROPERTIES "convex_volume, solidity, feret_max, feret_min, median, percentile_N"

/* What was asked for, in order. */
typedef struct fv__properties {
    int count, which[FV__PROPERTIES];
    int nintensities;
} fv__properties;

#define fv__properties_parse FV_ISA_NAME(fv__properties_parse)
#define fv__properties_plan FV_ISA_NAME(fv__properties_plan)
#define fv__properties_table FV_ISA_NAME(fv__properties_table)
#define fv__property_name FV_ISA_NAME(fv__property_name)
#define fv__property_columns FV_ISA_NAME(fv__property_columns)
#define fv__properties_row FV_ISA_NAME(fv__properties_row)

/* From names apart by blanks or commas, "all", or "" for the default. */
fv_status       fv__properties_parse(fv__properties *p, const char *text, const fv_image_type *labels, const fv__views *views,
                                     fv_error *error);
fv__object_plan fv__properties_plan(const fv__properties *p, const fv_type *const *in, const fv__views *views);
fv_status   fv__properties_table(const fv__properties *p, const fv_type *const *in, const fv__views *views, fv_table_type *table,
                                 fv_error *error);
const char *fv__property_name(int which);
/* The columns of one property, given its place in p, behind those that the table has. */
fv_status fv__property_columns(const fv__properties *p, int place, const fv_type *const *in, const fv__views *views,
                               fv_table_type *table, fv_error *error);
/* row: number of the row among those of the label. */
void fv__properties_row(const fv__properties *p, const fv__object_plan *plan, const fv_image_type *labels, const fv__views *views,
                        int64_t row, const fv__surfaces *surfaces, fv__object *object, fv_cell *cells);

#endif
