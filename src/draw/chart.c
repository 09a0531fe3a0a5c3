/* Charts: axes, labels, curves, legend. */
#include "draw/chart.h"
#include <math.h>
#include <stdlib.h>

const unsigned fv__palette[FV_PALETTE] = { 0x0072b2, 0xe69f00, 0x009e73, 0xd55e00, 0xcc79a7, 0x56b4e9, 0x000000, 0xf0e442 };

enum { MOST_TICKS = 24, TICK = 4, MOST_LINES = 3 };

void fv__chart_init(fv_chart *c, fv_drawing *drawing, double x, double y, double width, double height, const char *title,
                    const char *label_x, const char *label_y) {
    *c = (fv_chart){ drawing, x, y, width, height, .title = title, .words = 10, .beside = 20, .grid = true };
    c->across.label = label_x;
    c->up.label = label_y;
    c->left = x + 58;
    c->top = y + 44;
    c->wide = width - 58 - 20;
    c->high = height - 44 - 44;
    c->legend = c->top + 14;
}

void fv__chart_range(fv_chart *c, double low_x, double high_x, double low_y, double high_y) {
    double step = fv__round_step(high_y - low_y, 6);
    c->across.low = low_x;
    c->across.high = high_x > low_x ? high_x : low_x + 1;
    c->up.low = low_y;
    c->up.high = low_y + step * ceil((high_y - low_y) / step - 1e-9);
    if (!(c->up.high > c->up.low)) c->up.high = c->up.low + 1;
}

static double place(const fv_axis *axis, double value) {
    if (!axis->log) return (value - axis->low) / (axis->high - axis->low);
    return value > 0 ? log(value / axis->low) / log(axis->high / axis->low) : 0;
}

double fv__chart_x(const fv_chart *c, double x) { return c->left + c->wide * place(&c->across, x); }
double fv__chart_y(const fv_chart *c, double y) { return c->top + c->high * (1 - place(&c->up, y)); }

/* ---------------------------------------------------------------- words at an axis */

typedef struct words {
    double ticks[MOST_TICKS + 2];
    char  *texts[MOST_TICKS + 2];
    int    count, power;
    double widest;
    char  *label;
} words;

static double width_of_names(const fv_axis *axis, double size) {
    double widest = 0;
    for (int i = 0; i < axis->nnames; i++) widest = fmax(widest, fv__text_width(axis->names[i], size));
    return widest;
}

static words words_of(const fv_axis *axis, int most, double size) {
    words w = { .power = fv__axis_power(axis) };
    most = (int)fmin(fmax(most, 2), MOST_TICKS);
    w.label = fv__axis_label(axis, w.power);
    if (axis->names) {
        w.widest = width_of_names(axis, size);
        return w;
    }
    if (axis->ticks)
        for (int i = 0; i < axis->nticks && w.count < MOST_TICKS; i++) w.ticks[w.count++] = axis->ticks[i];
    else
        w.count = fv__axis_ticks(axis, most, w.ticks);
    double step = w.count > 1 ? w.ticks[1] - w.ticks[0] : axis->high - axis->low;
    for (int i = 0; i < w.count; i++) {
        w.texts[i] = fv__axis_number(axis, w.ticks[i], w.power, step);
        w.widest = fmax(w.widest, fv__text_width(w.texts[i], size));
    }
    return w;
}

static void release(words *w) {
    for (int i = 0; i < w->count; i++) free(w->texts[i]);
    free(w->label);
}

/* ---------------------------------------------------------------- room */

/* Room for a name below the axis, and the distance of two lines. */
static double room_of_name(const fv_chart *c) { return c->wide / FV_MAX(c->across.nnames, 1) - c->words; }
static double line_step(const fv_chart *c) { return 1.15 * c->words; }

/* The end of the line that begins here: as many words as fit, at least one. */
static const char *line_end(const char *text, double size, double room) {
    const char *end = text + strcspn(text, " ");
    while (*end) {
        const char *next = end + 1 + strcspn(end + 1, " ");
        char       *line = fv__sprintf("%.*s", (int)(next - text), text);
        bool        fits = fv__text_width(line, size) <= room;
        free(line);
        if (!fits) break;
        end = next;
    }
    return end;
}

/* How many lines the longest name takes if names are broken between their words; 0: a word or the lines are too long. */
static int lines_of_names(const fv_chart *c) {
    int most = 1;
    for (int i = 0; i < c->across.nnames; i++) {
        int lines = 0;
        for (const char *p = c->across.names[i]; *p; lines++) {
            const char *end = line_end(p, c->words, room_of_name(c));
            char       *line = fv__sprintf("%.*s", (int)(end - p), p);
            bool        fits = fv__text_width(line, c->words) <= room_of_name(c);
            free(line);
            if (!fits || lines == MOST_LINES) return 0;
            p = end + (*end == ' ');
        }
        most = FV_MAX(most, lines);
    }
    return most;
}

/* Names that do not fit side by side run upwards. */
static bool upright(const fv_chart *c) { return c->across.names && c->across.nnames > 1 && !lines_of_names(c); }

static double below(const fv_chart *c, const words *w) {
    double names = upright(c)                                ? fmin(w->widest, 0.35 * c->height)
                   : c->across.names && c->across.nnames > 1 ? c->words + (lines_of_names(c) - 1) * line_step(c)
                                                             : c->words;
    return TICK + 3 + names + (*w->label ? 1.7 * c->words : 0) + 0.6 * c->words;
}

static void make_room(fv_chart *c, const words *across, const words *up) {
    double numbers = fmin(up->widest, 0.3 * c->width), top = *c->title ? 3.4 * c->words : 1.2 * c->words;
    c->left = c->x + 0.6 * c->words + (*up->label ? 1.6 * c->words : 0) + numbers + TICK + 3;
    c->wide = fmax(c->x + c->width - c->beside - c->left, 10);
    c->top = c->y + top;
    c->high = fmax(c->height - top - below(c, across), 10);
    c->legend = c->top + 14;
}

/* ---------------------------------------------------------------- drawing */

static void draw_name(const fv_chart *c, int i, bool up, double room) {
    double x = fv__chart_x(c, i), bottom = c->top + c->high, y = bottom + TICK + 1 + c->words;
    if (up) {
        char *text = fv__text_fit(c->across.names[i], c->words, room);
        fv__draw_text_up(c->drawing, x + 0.35 * c->words, bottom + TICK + 3, c->words, FV_TEXT_RIGHT, FV_CHART_INK, text);
        free(text);
        return;
    }
    for (const char *p = c->across.names[i]; *p; y += line_step(c)) {
        const char *end = c->across.nnames > 1 ? line_end(p, c->words, room_of_name(c)) : p + strlen(p);
        char       *line = fv__sprintf("%.*s", (int)(end - p), p), *text = fv__text_fit(line, c->words, room);
        fv__draw_text(c->drawing, x, y, c->words, FV_TEXT_MIDDLE, FV_CHART_INK, "%s", text);
        free(text);
        free(line);
        p = end + (*end == ' ');
    }
}

/* Every name, or every second, third ... where they would touch. */
static void draw_names(const fv_chart *c) {
    bool   up = upright(c);
    double wide = c->wide / FV_MAX(c->across.nnames, 1);
    int    each = up ? FV_MAX((int)ceil(1.15 * c->words / wide), 1) : 1;
    for (int i = 0; i < c->across.nnames; i += each) draw_name(c, i, up, up ? 0.35 * c->height : wide);
}

static void draw_across(const fv_chart *c, const words *w) {
    double bottom = c->top + c->high;
    for (int i = 0; i < w->count; i++) {
        double x = fv__chart_x(c, w->ticks[i]);
        fv__draw_line(c->drawing, x, bottom, x, bottom + TICK, 0.8, FV_CHART_INK);
        fv__draw_text(c->drawing, x, bottom + TICK + 1 + c->words, c->words, FV_TEXT_MIDDLE, FV_CHART_INK, "%s", w->texts[i]);
    }
    if (c->across.names) draw_names(c);
    char *label = fv__text_fit(w->label, c->words, c->width);
    fv__draw_text(c->drawing, c->left + c->wide / 2, c->y + c->height - 0.6 * c->words, c->words, FV_TEXT_MIDDLE, FV_CHART_INK,
                  "%s", label);
    free(label);
}

static void draw_up(const fv_chart *c, const words *w) {
    int each = FV_MAX((int)ceil(1.15 * c->words * c->up.nnames / c->high), 1);
    for (int i = 0; i < (c->up.names ? c->up.nnames : w->count); i++) {
        double y = fv__chart_y(c, c->up.names ? i : w->ticks[i]);
        if (!c->up.names && c->grid) fv__draw_line(c->drawing, c->left, y, c->left + c->wide, y, 0.6, FV_CHART_GRID);
        if (!c->up.names) fv__draw_line(c->drawing, c->left - TICK, y, c->left, y, 0.8, FV_CHART_INK);
        char *text = c->up.names ? fv__text_fit(c->up.names[i], c->words, 0.3 * c->width) : NULL;
        if (!c->up.names || i % each == 0)
            fv__draw_text(c->drawing, c->left - TICK - 3, y + 0.35 * c->words, c->words, FV_TEXT_RIGHT, FV_CHART_INK, "%s",
                          text ? text : w->texts[i]);
        free(text);
    }
    char *label = fv__text_fit(w->label, c->words, c->height);
    fv__draw_text_up(c->drawing, c->x + 1.5 * c->words, c->top + c->high / 2, c->words, FV_TEXT_MIDDLE, FV_CHART_INK, label);
    free(label);
}

void fv__chart_axes(fv_chart *c) {
    words up = words_of(&c->up, (int)(c->high / (2.2 * c->words)), c->words), across = words_of(&c->across, 6, c->words);
    make_room(c, &across, &up);
    int most = (int)(c->wide / (across.widest + 1.5 * c->words)); /* as many as fit side by side */
    release(&across);
    release(&up);
    across = words_of(&c->across, most < 8 ? most : 8, c->words);
    up = words_of(&c->up, (int)fmin(c->high / (2.2 * c->words), 7), c->words);
    make_room(c, &across, &up);
    if (*c->title) {
        char *title = fv__text_fit(c->title, 1.2 * c->words, c->width - c->words);
        fv__draw_text(c->drawing, c->x + c->width / 2, c->y + 1.9 * c->words, 1.2 * c->words, FV_TEXT_MIDDLE, 0, "%s", title);
        free(title);
    }
    draw_up(c, &up);
    draw_across(c, &across);
    double frame[] = { c->left, c->top, c->left, c->top + c->high, c->left + c->wide, c->top + c->high };
    fv__draw_path(c->drawing, frame, 3, 0.8, 0, FV_CHART_INK);
    release(&across);
    release(&up);
}

void fv__chart_legend(fv_chart *c, unsigned color, const char *name) {
    double x = c->left + 12;
    fv__draw_box(c->drawing, x, c->legend - 7, 10, 7, color);
    fv__draw_text(c->drawing, x + 16, c->legend, c->words, FV_TEXT_LEFT, FV_CHART_INK, "%s", name);
    c->legend += 15;
}

void fv__chart_curve(fv_chart *c, const double *x, const double *y, int count, unsigned color, bool marks, const char *name) {
    double *points = fv__alloc((size_t)(2 * count + 2) * sizeof *points);
    for (int i = 0; i < count; i++) {
        points[2 * i] = fv__chart_x(c, x[i]);
        points[2 * i + 1] = fv__chart_y(c, y[i]);
        if (marks) fv__draw_disc(c->drawing, points[2 * i], points[2 * i + 1], 3, color);
    }
    if (count > 1) fv__draw_path(c->drawing, points, count, marks ? 1.8 : 1, 0, color);
    free(points);
    if (name) fv__chart_legend(c, color, name);
}
