/* Charts: axes, labels, curves, legend. */
#include "chart.h"
#include <math.h>
#include <stddef.h>

#define INK 0x333333
#define GRID 0xdddddd
enum { TITLE = 13, WORDS = 10 };

void fv_chart_init(fv_chart *c, fv_drawing *drawing, double x, double y, double width, double height, const char *title,
                   const char *label_x, const char *label_y) {
    *c = (fv_chart){ drawing, x, y, width, height, .title = title, .label_x = label_x, .label_y = label_y };
    c->left = x + 58;
    c->top = y + 44;
    c->wide = width - 58 - 20;
    c->high = height - 44 - 44;
    c->legend = c->top + 14;
}

double fv_chart_step(double range, int most) {
    if (!(range > 0) || most < 1) return 1;
    double power = pow(10, floor(log10(range / most)));
    for (int i = 0; i < 4; i++) {
        static const double multiples[] = { 1, 2, 5, 10 };
        if (range / (power * multiples[i]) <= most + 1e-9) return power * multiples[i];
    }
    return 10 * power;
}

void fv_chart_range(fv_chart *c, double low_x, double high_x, double low_y, double high_y) {
    double step = fv_chart_step(high_y - low_y, 6);
    c->low_x = low_x;
    c->high_x = high_x > low_x ? high_x : low_x + 1;
    c->low_y = low_y;
    c->high_y = low_y + step * ceil((high_y - low_y) / step - 1e-9);
    if (!(c->high_y > c->low_y)) c->high_y = c->low_y + 1;
}

double fv_chart_x(const fv_chart *c, double x) { return c->left + c->wide * (x - c->low_x) / (c->high_x - c->low_x); }
double fv_chart_y(const fv_chart *c, double y) { return c->top + c->high * (1 - (y - c->low_y) / (c->high_y - c->low_y)); }

static void tick_x(fv_chart *c, double value) {
    double x = fv_chart_x(c, value), bottom = c->top + c->high;
    fv_draw_line(c->drawing, x, bottom, x, bottom + 4, 1, INK);
    fv_draw_text(c->drawing, x, bottom + 16, WORDS, FV_TEXT_MIDDLE, INK, "%g", value);
}

void fv_chart_axes(fv_chart *c, const double *ticks, int count) {
    double step_y = fv_chart_step(c->high_y - c->low_y, 6), step_x = fv_chart_step(c->high_x - c->low_x, 8);
    fv_draw_text(c->drawing, c->x + c->width / 2, c->y + 20, TITLE, FV_TEXT_MIDDLE, 0, "%s", c->title);
    fv_draw_text(c->drawing, c->left + c->wide / 2, c->y + c->height - 8, WORDS, FV_TEXT_MIDDLE, INK, "%s", c->label_x);
    fv_draw_text(c->drawing, c->left - 50, c->top - 10, WORDS, FV_TEXT_LEFT, INK, "%s", c->label_y);
    for (int k = 0; c->low_y + k * step_y <= c->high_y + 1e-9 * step_y; k++) {
        double value = c->low_y + k * step_y, y = fv_chart_y(c, value);
        fv_draw_line(c->drawing, c->left, y, c->left + c->wide, y, 0.7, GRID);
        fv_draw_text(c->drawing, c->left - 7, y + 3.5, WORDS, FV_TEXT_RIGHT, INK, "%g", fabs(value) < 1e-12 ? 0 : value);
    }
    fv_draw_line(c->drawing, c->left, c->top, c->left, c->top + c->high, 1, INK);
    fv_draw_line(c->drawing, c->left, c->top + c->high, c->left + c->wide, c->top + c->high, 1, INK);
    for (int i = 0; ticks && i < count; i++) tick_x(c, ticks[i]);
    for (int k = 0; !ticks && c->low_x + k * step_x <= c->high_x + 1e-9 * step_x; k++) tick_x(c, c->low_x + k * step_x);
}

void fv_chart_legend(fv_chart *c, unsigned color, const char *name) {
    double x = c->left + 12;
    fv_draw_box(c->drawing, x, c->legend - 7, 10, 7, color);
    fv_draw_text(c->drawing, x + 16, c->legend, WORDS, FV_TEXT_LEFT, INK, "%s", name);
    c->legend += 15;
}

void fv_chart_curve(fv_chart *c, const double *x, const double *y, int count, unsigned color, bool marks, const char *name) {
    for (int i = 0; i < count; i++) {
        double px = fv_chart_x(c, x[i]), py = fv_chart_y(c, y[i]);
        if (i > 0 && marks) fv_draw_line(c->drawing, fv_chart_x(c, x[i - 1]), fv_chart_y(c, y[i - 1]), px, py, 1.8, color);
        if (i > 0 && !marks) fv_draw_line(c->drawing, fv_chart_x(c, x[i - 1]), fv_chart_y(c, y[i - 1]), px, py, 1, color);
        if (marks) fv_draw_disc(c->drawing, px, py, 3, color);
    }
    if (name) fv_chart_legend(c, color, name);
}
