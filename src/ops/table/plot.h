/* What the kinds of plots share: the columns that are drawn, what all rows together hold, and the marks that a picture is made
 * of.
 *
 * The rows are read twice: once to learn groups, names and ranges, and once to make marks. There are few marks however many rows
 * there are, so a picture of a large table is small. */
#ifndef FV_PLOT_H
#define FV_PLOT_H

#include "op/table_rows.h"

typedef enum fv__plot_kind {
    FV__PLOT_AUTO,
    FV__PLOT_SCATTER,
    FV__PLOT_LINE,
    FV__PLOT_HISTOGRAM,
    FV__PLOT_BOX,
    FV__PLOT_VIOLIN,
    FV__PLOT_HEATMAP,
    FV__PLOT_BAR,
    FV__PLOT_BINS, /* a histogram whose rows are bins already */
} fv__plot_kind;

typedef struct fv__plot_name {
    const char *text;
    double      number; /* of a column of numbers, by which it is sorted */
} fv__plot_name;

typedef struct fv__plot_names { /* the different values of a column, in order */
    int            count, most;
    fv__plot_name *name;
    bool           overflow; /* there were more */
} fv__plot_names;

typedef struct fv__plot {
    fv__plot_kind        kind;
    const fv_table_type *type;
    fv_results          *rows;
    int                  x, y, by, value; /* columns; -1: none */
    int                  low, high;       /* of bins */
    bool                 log_x, log_y;
    bool                 named_x, named_y; /* places are names and not numbers */
    int64_t              bins;             /* 0: as many as suit */
    /* What all rows hold. */
    fv__plot_names groups, across, up;
    double         low_x, high_x, low_y, high_y;
    int64_t        nrows, dropped; /* dropped: without a number, or without one that has a logarithm */
    fv_arena       arena;
    fv_row_writer  marks;
} fv__plot;

typedef struct fv__plot_row {
    int    group, at_x, at_y; /* which name */
    double x, y, value;
} fv__plot_row;

/* Columns of the table of marks. */
enum { FV__MARK, FV__SERIES, FV__X, FV__Y, FV__FROM, FV__TO, FV__VALUE, FV__X_NAME, FV__Y_NAME, FV__MARK_COLUMNS };

typedef struct fv__plot_mark {
    const char *mark;
    int         group; /* -1: none */
    double      x, y, from, to, value;
    int         at_x, at_y; /* names; -1: none */
} fv__plot_mark;

#define fv__plot_survey FV_ISA_NAME(fv__plot_survey)
#define fv__plot_release FV_ISA_NAME(fv__plot_release)
#define fv__plot_each FV_ISA_NAME(fv__plot_each)
#define fv__plot_put FV_ISA_NAME(fv__plot_put)
#define fv__plot_points FV_ISA_NAME(fv__plot_points)
#define fv__plot_lines FV_ISA_NAME(fv__plot_lines)
#define fv__plot_histogram FV_ISA_NAME(fv__plot_histogram)
#define fv__plot_bins FV_ISA_NAME(fv__plot_bins)
#define fv__plot_heatmap FV_ISA_NAME(fv__plot_heatmap)
#define fv__plot_boxes FV_ISA_NAME(fv__plot_boxes)
#define fv__plot_bars FV_ISA_NAME(fv__plot_bars)

/* Reads all rows and fills in what they hold. */
fv_status fv__plot_survey(fv__plot *plot, fv_error *error);
void      fv__plot_release(fv__plot *plot);
/* Every row that can be drawn, after the survey. */
typedef fv_status (*fv__plot_visit)(void *context, const fv__plot_row *row, fv_error *error);
fv_status fv__plot_each(fv__plot *plot, fv__plot_visit visit, void *context, fv_error *error);
fv_status fv__plot_put(fv__plot *plot, const fv__plot_mark *mark, fv_error *error);

/* One for each kind. */
fv_status fv__plot_points(fv__plot *plot, fv_error *error);
fv_status fv__plot_lines(fv__plot *plot, fv_error *error);
fv_status fv__plot_histogram(fv__plot *plot, fv_error *error);
fv_status fv__plot_bins(fv__plot *plot, fv_error *error);
fv_status fv__plot_heatmap(fv__plot *plot, fv_error *error);
fv_status fv__plot_boxes(fv__plot *plot, fv_error *error); /* and violins */
fv_status fv__plot_bars(fv__plot *plot, fv_error *error);

#endif
