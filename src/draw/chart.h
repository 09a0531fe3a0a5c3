/* Charts: a frame with axes, labels, curves and a legend, in a part of a drawing.
 *
 *     fv_chart c;
 *     fv__chart_init(&c, drawing, 0, 0, 400, 300, "Speed-up", "workers", "");
 *     fv__chart_range(&c, 1, 16, 0, 16);
 *     fv__chart_axes(&c);
 *     fv__chart_curve(&c, x, y, n, 0x0072b2, true, "measured");
 */
#ifndef FV_CHART_H
#define FV_CHART_H

#include "draw/drawing.h"

enum { FV_CHART_INK = 0x222222, FV_CHART_GRID = 0xdddddd, FV_PALETTE = 8 };
/* Okabe and Ito's colours, which people who see few colours tell apart too. */
extern const unsigned fv__palette[FV_PALETTE];

typedef struct fv_axis {
    double             low, high;
    bool               log;
    const char        *label, *unit; /* "" where there is none */
    const char *const *names;        /* of the places 0, 1, ... instead of numbers; NULL: numbers */
    int                nnames;
    const double      *ticks; /* where the numbers stand; NULL: at round ones */
    int                nticks;
} fv_axis;

typedef struct fv_chart {
    fv_drawing *drawing;
    double      x, y, width, height;   /* of the whole chart */
    double      left, top, wide, high; /* of the field inside the axes */
    fv_axis     across, up;
    const char *title;
    double      words;  /* height of letters */
    double      beside; /* kept free on the right */
    bool        grid;
    double      legend; /* where its next line goes */
} fv_chart;

void fv__chart_init(fv_chart *chart, fv_drawing *drawing, double x, double y, double width, double height, const char *title,
                    const char *label_x, const char *label_y);
/* y starts at low_y and ends at a round number from high_y on. */
void fv__chart_range(fv_chart *chart, double low_x, double high_x, double low_y, double high_y);
/* Makes room for numbers and names, and draws frame, numbers and labels. */
void fv__chart_axes(fv_chart *chart);
/* Points joined by lines; marks: a dot on each. name NULL: not in the legend. */
void fv__chart_curve(fv_chart *chart, const double *x, const double *y, int count, unsigned color, bool marks, const char *name);
void fv__chart_legend(fv_chart *chart, unsigned color, const char *name);
double fv__chart_x(const fv_chart *chart, double x); /* place in the drawing */
double fv__chart_y(const fv_chart *chart, double y);

/* ---- axes ---- */
/* 1, 2 or 5 times a power of ten, so that at most `most` of them cover the range. */
double fv__round_step(double range, int most);
/* Round numbers inside the axis, at most `most`; gives their count. */
int fv__axis_ticks(const fv_axis *axis, int most, double *ticks);
/* A power of ten by which the numbers of an axis are divided, so that they are short: 0 for most. */
int fv__axis_power(const fv_axis *axis);
/* The number at a tick, divided by 10^power, with as many digits as ticks that are a step apart need. The caller frees. */
char *fv__axis_number(const fv_axis *axis, double value, int power, double step);
/* Label with its unit and the power. The caller frees. */
char *fv__axis_label(const fv_axis *axis, int power);

#endif
