/* Charts of a report: what workers did, memory, residuals. */
#include "draw/chart.h"
#include "story/story_parts.h"
#include <math.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- timeline */

enum { LABELS = 150, LANE = 18, COLUMN = 3, SCALE = 16 };
static const char *const colors[FV_SPANS] = { "#e4e4e4", "#56b4e9", "#e69f00", "#009e73" };
static const int         stacked[FV_SPANS] = { FV_SPAN_COMPUTE, FV_SPAN_READ, FV_SPAN_WRITE, FV_SPAN_WAIT }; /* from below */

/* Heights of all spans of a column in whole pixels, one above the other. */
static void heights(const fv_timeline *t, int row, int column, int from[FV_SPANS], int to[FV_SPANS]) {
    double sum = 0;
    for (int k = 0; k < FV_SPANS; k++) {
        int s = stacked[k];
        from[s] = (int)lround(fmin(sum, 1) * (LANE - 3));
        sum += (double)t->spans[s][(size_t)row * (size_t)t->columns + (size_t)column];
        to[s] = (int)lround(fmin(sum, 1) * (LANE - 3));
    }
}

/* One path for each span of a row; columns of the same height become one box. */
static void put_row(fv_bytes *out, const fv_timeline *t, int row) {
    int from[FV_SPANS], to[FV_SPANS], bottom = (row + 1) * LANE - 1;
    for (int s = 0; s < FV_SPANS; s++) {
        int    begin = 0, low = 0, high = 0;
        size_t empty;
        fv__bytes_printf(out, "<path fill=\"%s\" d=\"", colors[s]);
        empty = out->size;
        for (int c = 0; c <= t->columns; c++) {
            if (c < t->columns) heights(t, row, c, from, to);
            if (c < t->columns && from[s] == low && to[s] == high) continue;
            if (high > low)
                fv__bytes_printf(out, "M%d %dh%dv%dh%dz", LABELS + begin * COLUMN, bottom - low, (c - begin) * COLUMN, low - high,
                                 (begin - c) * COLUMN);
            begin = c;
            low = from[s];
            high = to[s];
        }
        if (out->size == empty)
            out->size -= strlen("<path fill=\"#000000\" d=\"");
        else
            fv__bytes_printf(out, "\"/>\n");
    }
}

static void put_scale(fv_bytes *out, const fv_timeline *t) {
    double step = fv__round_step(t->seconds, 8);
    int    y = t->rows * LANE;
    char   words[FV_WORDS];
    for (double at = 0; at <= t->seconds * 1.0001; at += step) {
        double x = LABELS + at / t->seconds * t->columns * COLUMN;
        fv__bytes_printf(out, "<path d=\"M%.1f %dv4\" stroke=\"#444\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", x, y,
                         x, y + SCALE);
        fv__html_text(out, at > 0 ? fv__say_seconds(at, words) : "0");
        fv__bytes_printf(out, "</text>\n");
    }
}

void fv__put_timeline(fv_bytes *out, const fv_story *story, const fv_timeline *t) {
    static const char *const names[FV_SPANS] = { "wait", "read", "compute", "write" };
    int                      wide = LABELS + t->columns * COLUMN + 30, high = t->rows * LANE + SCALE + 8;
    fv__bytes_printf(out, "<p class=\"legend\">");
    for (int s = 0; s < FV_SPANS; s++)
        fv__bytes_printf(out, "<span><i style=\"background:%s\"></i>%s</span>", colors[s], names[s]);
    fv__bytes_printf(out,
                     "</p>\n<svg class=\"zoom\" role=\"img\" aria-label=\"what each worker did\" width=\"%d\" height=\"%d\""
                     " viewBox=\"0 0 %d %d\" font-size=\"11\">\n",
                     wide, high, wide, high);
    for (int r = 0; r < t->rows; r++) {
        fv__bytes_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LABELS - 8, r * LANE + 13);
        fv__html_text(out, t->names[r]);
        fv__bytes_printf(out, "</text>\n");
        put_row(out, t, r);
    }
    for (int a = 1; a < story->nattempts; a++)
        fv__bytes_printf(out, "<path d=\"M%.1f 0V%d\" stroke=\"#d55e00\" stroke-dasharray=\"4 3\"/>",
                         LABELS + story->attempts[a].offset / t->seconds * t->columns * COLUMN, t->rows * LANE);
    put_scale(out, t);
    fv__bytes_printf(out, "</svg>\n");
}

/* ---------------------------------------------------------------- memory */

void fv__put_memory(fv_bytes *out, const fv_story *story, const fv_timeline *t) {
    const char *text = fv__story_fact(story, "memory");
    double      unit = 1024 * 1024, bound = text ? atof(text) / unit : 0, most = 0;
    double     *x = fv__alloc(3 * (size_t)t->columns * sizeof *x), *planned = x + t->columns, *resident = planned + t->columns;
    for (int c = 0; c < t->columns; c++) {
        x[c] = (c + 0.5) * t->seconds / t->columns;
        planned[c] = t->planned[c] / unit;
        resident[c] = t->resident[c] / unit;
        most = fmax(most, fmax(planned[c], resident[c]));
    }
    bool        shown = bound > 0 && bound < 20 * most; /* a bound far above would leave nothing to see below it */
    fv_drawing *drawing = fv__drawing_new(640, 220, 2);
    fv_chart    chart;
    fv__chart_init(&chart, drawing, 0, 0, 640, 220, "", "seconds", "memory, MiB");
    fv__chart_range(&chart, 0, t->seconds, 0, fmax(1.05 * (shown ? fmax(bound, most) : most), 1));
    fv__chart_axes(&chart);
    fv__chart_curve(&chart, x, resident, t->columns, fv__palette[0], false, "taken by the program");
    fv__chart_curve(&chart, x, planned, t->columns, fv__palette[1], false, "planned for the tasks that ran");
    if (shown) {
        double y = fv__chart_y(&chart, bound);
        fv__draw_dashes(drawing, chart.left, y, chart.left + chart.wide, y, 1.2, fv__palette[3]);
        fv__chart_legend(&chart, fv__palette[3], "bound");
    }
    fv__drawing_svg(drawing, out);
    fv__drawing_free(drawing);
    free(x);
}

/* ---------------------------------------------------------------- residuals */

enum { MOST_CALLS = 12 };

static bool same_call(const fv_residual *a, const fv_residual *b) {
    return a->item == b->item && a->line == b->line && fv__hash_equal(a->call, b->call);
}

static void put_call(fv_bytes *out, const fv_residual *r, int count) {
    double *x = fv__alloc(4 * (size_t)count * sizeof *x), *y = x + count, *least = y + count, *most = least + count, high = 0;
    for (int i = 0; i < count; i++) {
        x[i] = (double)r[i].iteration;
        y[i] = r[i].residual;
        least[i] = r[i].least;
        most[i] = r[i].most;
        high = fmax(high, most[i]);
    }
    fv_drawing *drawing = fv__drawing_new(420, 240, 2);
    fv_chart    chart;
    fv__chart_init(&chart, drawing, 0, 0, 420, 240, "", "iteration", "residual");
    fv__chart_range(&chart, x[0], fmax(x[count - 1], x[0] + 1), 0, fmax(high, 1e-6));
    fv__chart_axes(&chart);
    fv__chart_curve(&chart, x, most, count, fv__palette[1], false, "worst slice");
    fv__chart_curve(&chart, x, y, count, fv__palette[0], count < 40, "all slices");
    fv__chart_curve(&chart, x, least, count, fv__palette[2], false, "best slice");
    fv__bytes_printf(out, "<figure><figcaption>");
    fv__html_printf(out, "%s, line %lld, item %lld: %.4g after %lld iterations", r->op, (long long)r->line, (long long)r->item,
                    y[count - 1], (long long)r[count - 1].iteration);
    fv__bytes_printf(out, "</figcaption>");
    fv__drawing_svg(drawing, out);
    fv__bytes_printf(out, "</figure>\n");
    fv__drawing_free(drawing);
    free(x);
}

void fv__put_residuals(fv_bytes *out, const fv_residual *all, int64_t count) {
    int calls = 0;
    for (int64_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && same_call(&all[i], &all[next]); next++) continue;
        if (calls++ < MOST_CALLS) put_call(out, &all[i], (int)FV_MIN(next - i, 1 << 20));
    }
    if (calls > MOST_CALLS) fv__bytes_printf(out, "<p>%d more are in the record.</p>\n", calls - MOST_CALLS);
}
