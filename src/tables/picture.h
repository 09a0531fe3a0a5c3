/* A plot: the marks that plot() has made of a table, and what it says about them. */
#ifndef FV_PICTURE_H
#define FV_PICTURE_H

#include "draw/chart.h"
#include "op/format.h"

typedef struct fv__mark {
    const char *what; /* "point", "bin" ... */
    int         series;
    double      x, y, from, to, value;
} fv__mark;

typedef struct fv__names { /* by number; NULL: none was told */
    const char **name;
    int          count;
} fv__names;

typedef struct fv__picture {
    const char *kind, *title, *by;
    fv_axis     across, up, colors;
    double      width, height; /* points */
    fv__mark   *marks;
    int64_t     count, room;
    fv__names   series, x_names, y_names;
    double      dropped; /* rows that could not be drawn */
    fv_arena    arena;
} fv__picture;

/* The caller frees. */
fv_drawing *fv__picture_draw(fv__picture *picture);

#endif
