/* Charts: a frame with axes, labels, curves and a legend, in a part of a drawing.
 *
 *     fv_chart c;
 *     fv_chart_init(&c, drawing, 0, 0, 400, 300, "Speed-up", "workers", "");
 *     fv_chart_range(&c, 1, 16, 0, 16);
 *     fv_chart_axes(&c);
 *     fv_chart_curve(&c, x, y, n, 0x1f77b4, true, "measured");
 */
#ifndef FV_CHART_H
#define FV_CHART_H

#include "drawing.h"

typedef struct fv_chart {
    fv_drawing *drawing;
    double      x, y, width, height;   /* of the whole chart */
    double      left, top, wide, high; /* of the field inside the axes */
    double      low_x, high_x, low_y, high_y;
    const char *title, *label_x, *label_y;
    double      legend; /* where its next line goes */
} fv_chart;

void fv_chart_init(fv_chart *chart, fv_drawing *drawing, double x, double y, double width, double height, const char *title,
                   const char *label_x, const char *label_y);
/* y starts at low_y and ends at a round number from high_y on. */
void fv_chart_range(fv_chart *chart, double low_x, double high_x, double low_y, double high_y);
/* Frame, grid, numbers. ticks: where x has them, or NULL for round numbers. */
void fv_chart_axes(fv_chart *chart, const double *ticks, int count);
/* Points joined by lines; marks: a dot on each. name NULL: not in the legend. */
void   fv_chart_curve(fv_chart *chart, const double *x, const double *y, int count, unsigned color, bool marks, const char *name);
void   fv_chart_legend(fv_chart *chart, unsigned color, const char *name);
double fv_chart_x(const fv_chart *chart, double x); /* place in the drawing */
double fv_chart_y(const fv_chart *chart, double y);
/* 1, 2 or 5 times a power of ten, so that at most `most` of them cover the range. */
double fv_chart_step(double range, int most);

#endif
