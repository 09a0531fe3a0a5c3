/* A plot as a drawing: ranges, legend, and every kind of mark. */
#include "tables/picture.h"
#include <math.h>
#include <stdlib.h>

#define INK FV_CHART_INK
#define WORDS 8.0             /* height of letters, points */
#define PIXELS (300.0 / 72.0) /* a PNG has 300 dots per inch */
enum { LEVELS = 6, STRIPES = 64, GRID_WIDE = 300, GRID_HIGH = 200 };

static bool is(const fv__mark *m, const char *what) { return !strcmp(m->what, what); }
static bool kind_is(const fv__picture *p, const char *kind) { return !strcmp(p->kind, kind); }

static unsigned color_of(int series) { return fv__palette[series % FV_PALETTE]; }

/* Colours come again after eight groups, with other marks and dashes. */
static double dash_of(int series) {
    static const double dashes[] = { 0, 4, 1.5, 8 };
    return dashes[series / FV_PALETTE % FV_COUNT(dashes)];
}

static void draw_marker(fv_drawing *d, double x, double y, double r, int series) {
    unsigned color = color_of(series);
    double   s = 0.9 * r, t = 1.2 * r;
    switch (series / FV_PALETTE % 4) {
    case 0: fv__draw_disc(d, x, y, r, color); break;
    case 1: fv__draw_box(d, x - s, y - s, 2 * s, 2 * s, color); break;
    case 2: fv__draw_path(d, (double[]){ x - t, y + s, x + t, y + s, x, y - t }, 3, 0, 0, color); break;
    default: fv__draw_path(d, (double[]){ x - t, y, x, y - t, x + t, y, x, y + t }, 4, 0, 0, color); break;
    }
}

/* ---------------------------------------------------------------- ranges */

static void take_in(fv_axis *axis, double value, bool *any) {
    if (!isfinite(value) || (axis->log && value <= 0)) return;
    if (!*any || value < axis->low) axis->low = value;
    if (!*any || value > axis->high) axis->high = value;
    *any = true;
}

/* A little more than the marks take, so that none lies on the frame. */
static void pad(fv_axis *axis, double share) {
    if (axis->log) {
        double factor = axis->high > axis->low ? pow(axis->high / axis->low, share) : 3;
        axis->low /= factor;
        axis->high *= factor;
        return;
    }
    double more = share * (axis->high - axis->low);
    if (!(more > 0)) more = axis->high ? 0.1 * fabs(axis->high) : 0.5;
    axis->low -= more;
    axis->high += more;
}

static void names_on(fv_axis *axis, const fv__names *names) {
    for (int i = 0; i < names->count; i++)
        if (!names->name[i]) names->name[i] = "";
    axis->low = -0.5;
    axis->high = names->count - 0.5;
    axis->names = names->name;
    axis->nnames = names->count;
}

static bool from_zero(const fv__picture *p) { return kind_is(p, "bar") || kind_is(p, "histogram"); }

static void find_across(fv__picture *p) {
    bool any = false;
    for (int64_t i = 0; i < p->count; i++) {
        const fv__mark *m = &p->marks[i];
        if (is(m, "bin")) {
            take_in(&p->across, m->from, &any);
            take_in(&p->across, m->to, &any);
        } else if (is(m, "cell")) {
            take_in(&p->across, m->x - m->from / 2, &any);
            take_in(&p->across, m->x + m->from / 2, &any);
        } else
            take_in(&p->across, m->x, &any);
    }
    if (!any) p->across.low = 0.1, p->across.high = 1;
    if (p->x_names.count)
        names_on(&p->across, &p->x_names);
    else if (!kind_is(p, "heatmap"))
        pad(&p->across, 0.03);
}

static void find_up(fv__picture *p) {
    bool any = false;
    for (int64_t i = 0; i < p->count; i++) {
        const fv__mark *m = &p->marks[i];
        if (is(m, "cell")) {
            take_in(&p->up, m->y - m->to / 2, &any);
            take_in(&p->up, m->y + m->to / 2, &any);
            continue;
        }
        take_in(&p->up, m->y, &any);
        if (is(m, "bin")) continue;
        take_in(&p->up, m->from, &any);
        take_in(&p->up, m->to, &any);
    }
    if (!any) p->up.low = 0.1, p->up.high = 1;
    if (p->y_names.count) {
        names_on(&p->up, &p->y_names);
        return;
    }
    if (kind_is(p, "heatmap")) return;
    bool positive = any && p->up.low >= 0, negative = any && p->up.high <= 0;
    if (from_zero(p) && !p->up.log) p->up.low = fmin(p->up.low, 0), p->up.high = fmax(p->up.high, 0);
    pad(&p->up, from_zero(p) && p->up.log ? 0.1 : 0.04);
    if (from_zero(p) && !p->up.log && positive) p->up.low = 0;
    if (from_zero(p) && !p->up.log && negative) p->up.high = 0;
}

/* ---------------------------------------------------------------- legend */

static double legend_width(const fv__picture *p) {
    double widest = fv__text_width(p->by, WORDS);
    for (int s = 0; s < p->series.count; s++) widest = fmax(widest, 16 + fv__text_width(p->series.name[s], WORDS));
    return p->series.count ? fmin(widest, 0.33 * p->width) + 18 : 10;
}

static void draw_key(const fv__picture *p, fv_drawing *d, double x, double y, int s) {
    if (kind_is(p, "line"))
        fv__draw_path(d, (double[]){ x, y - 2.7, x + 12, y - 2.7 }, 2, 1.2, dash_of(s), color_of(s));
    else if (kind_is(p, "scatter"))
        draw_marker(d, x + 6, y - 2.7, 2.4, s);
    else
        fv__draw_box(d, x + 1, y - 6, 10, 6.5, color_of(s));
}

/* As many groups as there is room for; how many more there are. */
static void draw_legend(const fv__picture *p, const fv_chart *c) {
    double x = c->left + c->wide + 10, y = c->top + WORDS, step = 1.45 * WORDS, room = 0.33 * p->width;
    int    most = (int)((c->y + c->height - y) / step) - 1, count = p->series.count;
    if (!count) return;
    char *by = fv__text_fit(p->by, WORDS, room);
    fv__draw_text(c->drawing, x, y, WORDS, FV_TEXT_LEFT, INK, "%s", by);
    free(by);
    for (int s = 0; s < count; s++) {
        y += step;
        if (count > most && s == most - 1) {
            fv__draw_text(c->drawing, x, y, WORDS, FV_TEXT_LEFT, INK, "and %d more", count - s);
            return;
        }
        char *name = fv__text_fit(p->series.name[s], WORDS, room - 16);
        draw_key(p, c->drawing, x, y, s);
        fv__draw_text(c->drawing, x + 16, y, WORDS, FV_TEXT_LEFT, INK, "%s", name);
        free(name);
    }
}

/* ---------------------------------------------------------------- points and lines */

static void draw_points(const fv__picture *p, const fv_chart *c) {
    double radius = p->count > 1500 ? 1.1 : p->count > 300 ? 1.5 : 2.1;
    fv__draw_opacity(c->drawing, p->count > 100 ? 0.65 : 0.9);
    for (int64_t i = 0; i < p->count; i++) {
        const fv__mark *m = &p->marks[i];
        if (is(m, "point")) draw_marker(c->drawing, fv__chart_x(c, m->x), fv__chart_y(c, m->y), radius, m->series);
    }
    fv__draw_opacity(c->drawing, 1);
}

typedef struct boxes {
    double *numbers;
    int     count, room;
} boxes;

/* A box beside the last one makes that one wider. */
static void add_box(boxes *b, double x, double y, double wide, double high) {
    double *last = b->count ? &b->numbers[4 * (b->count - 1)] : NULL;
    if (last && last[1] == y && fabs(last[0] + last[2] - x) < 0.3 * wide) {
        last[2] = x + wide - last[0];
        return;
    }
    if (b->count == b->room) {
        b->room = 2 * b->room + 256;
        b->numbers = fv__realloc(b->numbers, (size_t)b->room * 4 * sizeof *b->numbers);
    }
    memcpy(&b->numbers[4 * b->count++], (double[]){ x, y, wide, high }, 4 * sizeof(double));
}

/* Fields with many points, of one group: the more points, the darker. */
static void draw_fields_of(const fv__picture *p, const fv_chart *c, int series, double most) {
    boxes  level[LEVELS] = { { NULL, 0, 0 } };
    double wide = c->wide / 1.06 / (p->x_names.count ? p->x_names.count * 1.2 : GRID_WIDE), high = c->high / 1.08 / GRID_HIGH;
    for (int64_t i = 0; i < p->count; i++) {
        const fv__mark *m = &p->marks[i];
        if (!is(m, "field") || m->series != series) continue;
        int k = most > 1 ? (int)(LEVELS * log(m->value) / log(most)) : 0;
        k = k < LEVELS ? k : LEVELS - 1;
        add_box(&level[k], fv__chart_x(c, m->x) - wide / 2, fv__chart_y(c, m->y) - high / 2, wide, high);
    }
    for (int k = 0; k < LEVELS; k++) {
        fv__draw_opacity(c->drawing, 0.3 + 0.7 * k / (LEVELS - 1));
        if (level[k].count) fv__draw_boxes(c->drawing, level[k].numbers, level[k].count, color_of(series));
        free(level[k].numbers);
    }
    fv__draw_opacity(c->drawing, 1);
}

static void draw_fields(const fv__picture *p, const fv_chart *c) {
    double most = 1;
    for (int64_t i = 0; i < p->count; i++)
        if (is(&p->marks[i], "field")) most = fmax(most, p->marks[i].value);
    for (int s = 0; s < FV_MAX(p->series.count, 1); s++) draw_fields_of(p, c, s, most);
}

/* The spread at places that follow one another with several rows each: a band; of a place alone a bar. */
static void draw_spread(const fv__picture *p, const fv_chart *c, int64_t from, int64_t to, double *points) {
    unsigned color = color_of(p->marks[from].series);
    int      n = 0;
    if (to - from == 1) {
        double bar[] = { fv__chart_x(c, p->marks[from].x), fv__chart_y(c, p->marks[from].from), fv__chart_x(c, p->marks[from].x),
                         fv__chart_y(c, p->marks[from].to) };
        fv__draw_opacity(c->drawing, 0.4);
        fv__draw_path(c->drawing, bar, 2, 1.2, 0, color);
    } else {
        for (int64_t i = from; i < to; i++)
            points[n++] = fv__chart_x(c, p->marks[i].x), points[n++] = fv__chart_y(c, p->marks[i].to);
        for (int64_t i = to - 1; i >= from; i--)
            points[n++] = fv__chart_x(c, p->marks[i].x), points[n++] = fv__chart_y(c, p->marks[i].from);
        fv__draw_opacity(c->drawing, 0.13);
        fv__draw_path(c->drawing, points, n / 2, 0, 0, color);
    }
    fv__draw_opacity(c->drawing, 1);
}

/* Marks from..to are one line, with its spread where there are several rows at a place. */
static void draw_line(const fv__picture *p, const fv_chart *c, int64_t from, int64_t to) {
    int      count = (int)(to - from), series = p->marks[from].series;
    double  *points = fv__alloc((size_t)(4 * count + 4) * sizeof *points);
    unsigned color = color_of(series);
    for (int64_t first = from, end; first < to; first = end) {
        for (end = first; end < to && isfinite(p->marks[end].to);) end++;
        if (end > first) draw_spread(p, c, first, end, points);
        end = FV_MAX(end, first + 1);
    }
    for (int i = 0; i < count; i++) {
        points[2 * i] = fv__chart_x(c, p->marks[from + i].x);
        points[2 * i + 1] = fv__chart_y(c, p->marks[from + i].y);
        if (count <= 40) draw_marker(c->drawing, points[2 * i], points[2 * i + 1], 1.8, series);
    }
    if (count > 1) fv__draw_path(c->drawing, points, count, count > 500 ? 0.7 : 1.2, dash_of(series), color);
    free(points);
}

static void draw_lines(const fv__picture *p, const fv_chart *c) {
    for (int64_t from = 0, to; from < p->count; from = to) {
        for (to = from; to < p->count && p->marks[to].series == p->marks[from].series;) to++;
        draw_line(p, c, from, to);
    }
}

/* ---------------------------------------------------------------- bins, bars, boxes, violins */

static double ground(const fv_chart *c) { return c->up.log ? c->top + c->high : fv__chart_y(c, 0); }

static void draw_bins(const fv__picture *p, const fv_chart *c) {
    bool several = p->series.count > 1;
    for (int64_t from = 0, to; from < p->count; from = to) {
        for (to = from; to < p->count && p->marks[to].series == p->marks[from].series;) to++;
        unsigned color = color_of(p->marks[from].series);
        double  *steps = fv__alloc((size_t)(to - from + 1) * 4 * sizeof *steps);
        boxes    all = { NULL, 0, 0 };
        int      n = 0;
        double   gap = to - from <= 80 ? 0.5 : 0;
        for (int64_t i = from; i < to; i++) {
            const fv__mark *m = &p->marks[i];
            double left = fv__chart_x(c, m->from), right = fv__chart_x(c, m->to), y = fmin(fv__chart_y(c, m->y), ground(c));
            if (m->y > 0 && !several) add_box(&all, left + gap / 2, y, fmax(right - left - gap, 0.2), ground(c) - y);
            if (m->y > 0 && several) add_box(&all, left, y, right - left, ground(c) - y);
            memcpy(&steps[n], (double[]){ left, m->y > 0 ? y : ground(c), right, m->y > 0 ? y : ground(c) }, 4 * sizeof *steps);
            n += 4;
        }
        fv__draw_opacity(c->drawing, several ? 0.25 : 1);
        if (all.count) fv__draw_boxes(c->drawing, all.numbers, all.count, color);
        fv__draw_opacity(c->drawing, 1);
        if (several) fv__draw_path(c->drawing, steps, n / 2, 1, dash_of(p->marks[from].series), color);
        free(all.numbers);
        free(steps);
    }
}

/* Where a mark of a place stands: the middle of its group's share, and half of how wide it may be. */
static double place_of(const fv__picture *p, const fv_chart *c, const fv__mark *m, double *half) {
    int    groups = FV_MAX(p->series.count, 1);
    double share = 0.8 / groups, middle = m->x - 0.4 + share * (m->series + 0.5);
    *half = 0.45 * share * c->wide / (c->across.high - c->across.low);
    return fv__chart_x(c, middle);
}

/* A line between two values with short ends. */
static void draw_range(const fv_chart *c, double x, double from, double to, double half) {
    double low = fv__chart_y(c, from), high = fv__chart_y(c, to), end = fmin(0.5 * half, 4);
    if (c->up.log && from <= 0) low = c->top + c->high;
    fv__draw_line(c->drawing, x, low, x, high, 0.8, INK);
    fv__draw_line(c->drawing, x - end, low, x + end, low, 0.8, INK);
    fv__draw_line(c->drawing, x - end, high, x + end, high, 0.8, INK);
}

static void draw_bar(const fv__picture *p, const fv_chart *c, const fv__mark *m) {
    double half, x = place_of(p, c, m, &half), y = fv__chart_y(c, m->y), base = ground(c);
    if (c->up.log && m->y <= 0) return;
    fv__draw_box(c->drawing, x - half, fmin(y, base), 2 * half, fabs(base - y), color_of(m->series));
    if (isfinite(m->to)) draw_range(c, x, m->from, m->to, half);
}

static void draw_box(const fv__picture *p, const fv_chart *c, const fv__mark *m) {
    double half, x = place_of(p, c, m, &half), low = fv__chart_y(c, m->from), high = fv__chart_y(c, m->to);
    double middle = fv__chart_y(c, m->y),
           frame[] = { x - half, low, x + half, low, x + half, high, x - half, high, x - half, low };
    if (kind_is(p, "violin")) {
        fv__draw_box(c->drawing, x - 1.3, high, 2.6, fmax(low - high, 0.1), INK);
        fv__draw_disc(c->drawing, x, middle, 2, 0xffffff);
        return;
    }
    fv__draw_path(c->drawing, frame, 5, 0, 0, 0xffffff);
    fv__draw_opacity(c->drawing, 0.55);
    fv__draw_path(c->drawing, frame, 5, 0, 0, color_of(m->series));
    fv__draw_opacity(c->drawing, 1);
    fv__draw_path(c->drawing, frame, 5, 0.8, 0, INK);
    fv__draw_line(c->drawing, x - half, middle, x + half, middle, 1.6, INK);
}

static void draw_violin(const fv__picture *p, const fv_chart *c, int64_t from, int64_t to) {
    int     count = (int)(to - from);
    double *outline = fv__alloc((size_t)(4 * count + 2) * sizeof *outline), half;
    double  x = place_of(p, c, &p->marks[from], &half);
    for (int i = 0; i < count; i++) {
        const fv__mark *m = &p->marks[from + i];
        double          y = fv__chart_y(c, m->y), wide = half * m->value;
        memcpy(&outline[2 * i], (double[]){ x - wide, y }, 2 * sizeof y);
        memcpy(&outline[4 * count - 2 - 2 * i], (double[]){ x + wide, y }, 2 * sizeof y);
    }
    memcpy(&outline[4 * count], outline, 2 * sizeof *outline);
    fv__draw_opacity(c->drawing, 0.55);
    fv__draw_path(c->drawing, outline, 2 * count, 0, 0, color_of(p->marks[from].series));
    fv__draw_opacity(c->drawing, 1);
    fv__draw_path(c->drawing, outline, 2 * count + 1, 0.8, 0, color_of(p->marks[from].series));
    free(outline);
}

static void draw_places(const fv__picture *p, const fv_chart *c) {
    double half;
    if (!c->up.log && c->up.low < 0) fv__draw_line(c->drawing, c->left, ground(c), c->left + c->wide, ground(c), 0.5, 0x999999);
    for (int64_t i = 0, to; i < p->count; i = to) {
        const fv__mark *m = &p->marks[i];
        to = i + 1;
        if (is(m, "bar")) draw_bar(p, c, m);
        if (is(m, "box")) draw_box(p, c, m);
        if (is(m, "whisker")) {
            double x = place_of(p, c, m, &half);
            draw_range(c, x, m->from, m->to, half);
        }
        if (is(m, "point")) {
            double x = place_of(p, c, m, &half);
            draw_marker(c->drawing, x, fv__chart_y(c, m->y), 1.2, m->series);
        }
        if (!is(m, "density")) continue;
        while (to < p->count && is(&p->marks[to], "density") && p->marks[to].x == m->x && p->marks[to].series == m->series) to++;
        draw_violin(p, c, i, to);
    }
}

/* ---------------------------------------------------------------- heat map */

/* viridis, which grows lighter evenly for everybody. */
static unsigned viridis(double share) {
    static const unsigned colors[] = { 0x440154, 0x482878, 0x3e4989, 0x31688e, 0x26828e,
                                       0x1f9e89, 0x35b779, 0x6ece58, 0xb5de2b, 0xfde725 };
    double                at = fmin(fmax(share, 0), 1) * (FV_COUNT(colors) - 1);
    int                   k = FV_MIN((int)at, FV_COUNT(colors) - 2);
    unsigned              mixed = 0;
    for (int shift = 16; shift >= 0; shift -= 8) {
        double low = colors[k] >> shift & 255, high = colors[k + 1] >> shift & 255;
        mixed |= (unsigned)lround(low + (at - k) * (high - low)) << shift;
    }
    return mixed;
}

static void find_colors(fv__picture *p) {
    bool any = false;
    for (int64_t i = 0; i < p->count; i++) take_in(&p->colors, p->marks[i].value, &any);
    if (!any) p->colors.high = 1;
    if (!(p->colors.high > p->colors.low)) p->colors.high = p->colors.low + 1;
}

static void draw_cells(const fv__picture *p, const fv_chart *c) {
    for (int64_t i = 0; i < p->count; i++) {
        const fv__mark *m = &p->marks[i];
        double          left = fv__chart_x(c, m->x - m->from / 2), right = fv__chart_x(c, m->x + m->from / 2);
        double          top = fv__chart_y(c, m->y + m->to / 2), bottom = fv__chart_y(c, m->y - m->to / 2);
        /* Neighbours overlap a little, so that no white line shows between them. */
        fv__draw_box(c->drawing, left, top, fmin(right + 0.25, c->left + c->wide) - left,
                     fmin(bottom + 0.25, c->top + c->high) - top,
                     viridis((m->value - p->colors.low) / (p->colors.high - p->colors.low)));
    }
}

static double color_bar_width(const fv__picture *p) {
    double ticks[16], widest = 0;
    int    count = fv__axis_ticks(&p->colors, 5, ticks), power = fv__axis_power(&p->colors);
    for (int i = 0; i < count; i++) {
        char *text = fv__axis_number(&p->colors, ticks[i], power, count > 1 ? ticks[1] - ticks[0] : 1);
        widest = fmax(widest, fv__text_width(text, WORDS));
        free(text);
    }
    return 12 + 9 + 7 + widest + 1.9 * WORDS;
}

static void draw_color_bar(const fv__picture *p, const fv_chart *c) {
    double ticks[16], x = c->left + c->wide + 12, bottom = c->top + c->high;
    int    count = fv__axis_ticks(&p->colors, 5, ticks), power = fv__axis_power(&p->colors);
    char  *label = fv__axis_label(&p->colors, power);
    for (int k = 0; k < STRIPES; k++) {
        double top = bottom - c->high * (k + 1) / STRIPES;
        fv__draw_box(c->drawing, x, top, 9, c->high / STRIPES + (k ? 0.3 : 0), viridis((k + 0.5) / STRIPES));
    }
    for (int i = 0; i < count; i++) {
        double y = bottom - c->high * (ticks[i] - p->colors.low) / (p->colors.high - p->colors.low);
        char  *text = fv__axis_number(&p->colors, ticks[i], power, count > 1 ? ticks[1] - ticks[0] : 1);
        fv__draw_line(c->drawing, x + 9, y, x + 11.5, y, 0.8, INK);
        fv__draw_text(c->drawing, x + 14, y + 0.35 * WORDS, WORDS, FV_TEXT_LEFT, INK, "%s", text);
        free(text);
    }
    fv__draw_text_up(c->drawing, c->x + c->width - 0.6 * WORDS, c->top + c->high / 2, WORDS, FV_TEXT_MIDDLE, INK, label);
    free(label);
}

/* ---------------------------------------------------------------- the whole */

static void draw_notes(const fv__picture *p, const fv_chart *c) {
    if (!p->count)
        fv__draw_text(c->drawing, c->left + c->wide / 2, c->top + c->high / 2, WORDS, FV_TEXT_MIDDLE, 0x666666,
                      "no rows to draw");
    if (p->dropped > 0)
        fv__draw_text(c->drawing, c->left + c->wide, c->top - 3, 6, FV_TEXT_RIGHT, 0x666666,
                      "%.0f row%s without a number %s not shown", p->dropped, p->dropped == 1 ? "" : "s",
                      p->dropped == 1 ? "is" : "are");
}

static void draw_marks(const fv__picture *p, const fv_chart *c) {
    if (kind_is(p, "heatmap"))
        draw_cells(p, c);
    else if (kind_is(p, "histogram"))
        draw_bins(p, c);
    else if (kind_is(p, "line"))
        draw_lines(p, c);
    else if (kind_is(p, "scatter")) {
        draw_fields(p, c);
        draw_points(p, c);
    } else
        draw_places(p, c);
}

fv_drawing *fv__picture_draw(fv__picture *p) {
    fv_drawing *d = fv__drawing_new(p->width, p->height, PIXELS);
    fv_chart    c;
    bool        colors = kind_is(p, "heatmap") && p->count;
    fv__chart_init(&c, d, 0, 0, p->width, p->height, p->title, "", "");
    find_across(p);
    find_up(p);
    if (colors) find_colors(p);
    c.across = p->across;
    c.up = p->up;
    c.words = WORDS;
    c.grid = false;
    c.beside = colors ? color_bar_width(p) : legend_width(p);
    fv__chart_axes(&c);
    draw_marks(p, &c);
    draw_notes(p, &c);
    if (colors)
        draw_color_bar(p, &c);
    else
        draw_legend(p, &c);
    return d;
}
