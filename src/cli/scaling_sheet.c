/* A scaling study as CSV and as pictures. */
#include "scaling_sheet.h"
#include "chart.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define STRONG 0x1f77b4
#define WEAK 0xd95f02
#define IDEAL 0x999999
#define MODEL 0x2ca02c
static const unsigned colors[] = { 0x4c78a8, 0xf58518, 0x54a24b, 0xb279a2, 0xe45756, 0x72b7b2, 0xeeca3b, 0x9d755d };
enum { COLORS = sizeof colors / sizeof colors[0], LANES = 32 };

/* ---------------------------------------------------------------- CSV */

static const char *kind(const fv_scale_row *row) { return row->weak ? "weak" : "strong"; }

static void write_rows(FILE *file, const fv_scaling *s) {
    fprintf(file, "kind,workers,size,tasks,seconds,least,most,speedup,efficiency,read,compute,write,merge,memory\n");
    for (int i = 0; i < s->nrows; i++) {
        const fv_scale_row *r = &s->rows[i];
        fprintf(file, "%s,%d,%.0f,%lld,%.6f,%.6f,%.6f,%.4f,%.4f,%.6f,%.6f,%.6f,%.6f,%lld\n", kind(r), r->workers, r->size,
                (long long)r->tasks, r->seconds, r->least, r->most, r->speedup, r->efficiency, r->work[FV_COST_READ],
                r->work[FV_COST_COMPUTE], r->work[FV_COST_WRITE], r->work[FV_COST_MERGE], (long long)r->memory);
    }
}

static void write_stages(FILE *file, const fv_scaling *s) {
    fprintf(file, "kind,workers,stage,seconds\n");
    for (int i = 0; i < s->nrows; i++)
        for (int k = 0; k < s->nstages; k++)
            fprintf(file, "%s,%d,%d,%.6f\n", kind(&s->rows[i]), s->rows[i].workers, k + 1, s->rows[i].stages[k]);
}

static void write_timeline(FILE *file, const fv_scaling *s) {
    fprintf(file, "kind,workers,worker,stage,start,seconds\n");
    for (int64_t i = 0; i < s->ntasks; i++) {
        const fv_scale_task *t = &s->tasks[i];
        fprintf(file, "%s,%d,%d,%d,%.6f,%.6f\n", kind(&s->rows[t->row]), s->rows[t->row].workers, t->worker, t->stage + 1,
                t->start, t->seconds);
    }
}

/* ---------------------------------------------------------------- pictures */

typedef struct rows { /* those of one kind */
    double x[64], seconds[64], speedup[64], efficiency[64], least[64], most[64];
    int    count;
} rows;

static rows take(const fv_scaling *s, bool weak) {
    rows r = { .count = 0 };
    for (int i = 0; i < s->nrows && r.count < 64; i++) {
        const fv_scale_row *row = &s->rows[i];
        if (row->weak != weak) continue;
        int n = r.count++;
        r.x[n] = row->workers;
        r.seconds[n] = row->seconds;
        r.speedup[n] = row->speedup;
        r.efficiency[n] = row->efficiency;
        r.least[n] = row->least;
        r.most[n] = row->most;
    }
    return r;
}

static double largest(const double *values, int count, double least) {
    for (int i = 0; i < count; i++)
        if (values[i] > least) least = values[i];
    return least;
}

static double model(const fv_scaling *s, double workers) { return s->serial_seconds * (s->serial + (1 - s->serial) / workers); }

enum { MODEL_POINTS = 61 };

static void model_curve(const fv_scaling *s, double most, bool speedup, double *x, double *y) {
    for (int i = 0; i < MODEL_POINTS; i++) {
        x[i] = 1 + (most - 1) * i / (MODEL_POINTS - 1);
        y[i] = speedup ? model(s, 1) / model(s, x[i]) : model(s, x[i]);
    }
}

static void range_bars(fv_chart *c, const rows *r, unsigned color) {
    for (int i = 0; i < r->count; i++) {
        double x = fv_chart_x(c, r->x[i]), top = fv_chart_y(c, r->most[i]), bottom = fv_chart_y(c, r->least[i]);
        fv_draw_line(c->drawing, x, top, x, bottom, 1, color);
        fv_draw_line(c->drawing, x - 3, top, x + 3, top, 1, color);
        fv_draw_line(c->drawing, x - 3, bottom, x + 3, bottom, 1, color);
    }
}

static void time_chart(const fv_scaling *s, fv_chart *c, const rows *strong, const rows *weak, double most) {
    double      x[MODEL_POINTS], y[MODEL_POINTS];
    const rows *any = strong->count ? strong : weak;
    fv_chart_range(c, 1, most, 0, 1.25 * largest(weak->most, weak->count, largest(strong->most, strong->count, 0)));
    fv_chart_axes(c, any->x, any->count);
    if (s->fitted) {
        char name[64];
        model_curve(s, most, false, x, y);
        snprintf(name, sizeof name, "Amdahl, serial part %.1f %%", 100 * s->serial);
        fv_chart_curve(c, x, y, MODEL_POINTS, MODEL, false, name);
    }
    range_bars(c, strong, STRONG);
    range_bars(c, weak, WEAK);
    if (strong->count) fv_chart_curve(c, strong->x, strong->seconds, strong->count, STRONG, true, "strong: the same work");
    if (weak->count) fv_chart_curve(c, weak->x, weak->seconds, weak->count, WEAK, true, "weak: work grows with workers");
}

static void speedup_chart(const fv_scaling *s, fv_chart *c, const rows *strong, const rows *weak, double most) {
    double      x[MODEL_POINTS], y[MODEL_POINTS];
    const rows *any = strong->count ? strong : weak;
    fv_chart_range(c, 1, most, 0, 1.15 * most);
    fv_chart_axes(c, any->x, any->count);
    fv_draw_dashes(c->drawing, fv_chart_x(c, 1), fv_chart_y(c, 1), fv_chart_x(c, most), fv_chart_y(c, most), 1, IDEAL);
    fv_chart_legend(c, IDEAL, "ideal");
    if (s->fitted) {
        model_curve(s, most, true, x, y);
        fv_chart_curve(c, x, y, MODEL_POINTS, MODEL, false, "Amdahl");
    }
    if (strong->count) fv_chart_curve(c, strong->x, strong->speedup, strong->count, STRONG, true, "strong: T1 / TN");
    if (weak->count) fv_chart_curve(c, weak->x, weak->speedup, weak->count, WEAK, true, "weak: N T1 / TN");
}

static void efficiency_chart(fv_chart *c, const rows *strong, const rows *weak, double most) {
    const rows *any = strong->count ? strong : weak;
    double      top = largest(weak->efficiency, weak->count, largest(strong->efficiency, strong->count, 1));
    fv_chart_range(c, 1, most, 0, 1.35 * top);
    fv_chart_axes(c, any->x, any->count);
    fv_draw_dashes(c->drawing, fv_chart_x(c, 1), fv_chart_y(c, 1), fv_chart_x(c, most), fv_chart_y(c, 1), 1, IDEAL);
    fv_chart_legend(c, IDEAL, "ideal");
    if (strong->count) fv_chart_curve(c, strong->x, strong->efficiency, strong->count, STRONG, true, "strong: T1 / (N TN)");
    if (weak->count) fv_chart_curve(c, weak->x, weak->efficiency, weak->count, WEAK, true, "weak: T1 / TN");
}

/* What workers did, one bar for each row: read, compute, write, merge. */
static void work_chart(const fv_scaling *s, fv_chart *c) {
    double most = 0;
    for (int i = 0; i < s->nrows; i++) {
        double sum = 0;
        for (int k = 0; k < FV_COSTS; k++) sum += s->rows[i].work[k];
        if (sum > most) most = sum;
    }
    fv_chart_range(c, 0, s->nrows, 0, 1.4 * most);
    fv_chart_axes(c, &most, 0); /* bars have names instead of numbers */
    for (int i = 0; i < s->nrows; i++) {
        double left = fv_chart_x(c, i + 0.2), right = fv_chart_x(c, i + 0.8), sum = 0;
        for (int k = 0; k < FV_COSTS; k++) {
            double from = fv_chart_y(c, sum), to = fv_chart_y(c, sum + s->rows[i].work[k]);
            fv_draw_box(c->drawing, left, to, right - left, from - to, colors[k]);
            sum += s->rows[i].work[k];
        }
        fv_draw_text(c->drawing, (left + right) / 2, c->top + c->high + 14, 9, FV_TEXT_MIDDLE, 0x333333, "%s %d",
                     s->nrows > 8 ? (s->rows[i].weak ? "w" : "s") : kind(&s->rows[i]), s->rows[i].workers);
    }
    for (int k = 0; k < FV_COSTS; k++) fv_chart_legend(c, colors[k], fv_cost_name((fv_cost)k));
}

static fv_drawing *draw_scaling(const fv_scaling *s, const char *title) {
    fv_drawing *d = fv_drawing_new(900, 700);
    rows        strong = take(s, false), weak = take(s, true);
    double      most = largest(weak.x, weak.count, largest(strong.x, strong.count, 1));
    fv_chart    c;
    fv_draw_text(d, 450, 24, 15, FV_TEXT_MIDDLE, 0, "%s", title);
    if (isnan(s->noise))
        fv_draw_text(d, 450, 42, 10, FV_TEXT_MIDDLE, 0x666666, "one run each, so the noise is unknown");
    else
        fv_draw_text(d, 450, 42, 10, FV_TEXT_MIDDLE, 0x666666,
                     "median of %d runs, bars from the fastest to the slowest; noise %.0f %%", s->repeats, 100 * s->noise);
    fv_chart_init(&c, d, 0, 50, 450, 320, "Time to completion", "workers", "seconds");
    time_chart(s, &c, &strong, &weak, most);
    fv_chart_init(&c, d, 450, 50, 450, 320, "Speed-up", "workers", "times one worker");
    speedup_chart(s, &c, &strong, &weak, most);
    fv_chart_init(&c, d, 0, 375, 450, 320, "Efficiency", "workers", "of ideal");
    efficiency_chart(&c, &strong, &weak, most);
    fv_chart_init(&c, d, 450, 375, 450, 320, "What workers did", "study and workers", "seconds of all workers");
    work_chart(s, &c);
    return d;
}

/* Tasks of the row with most workers, a lane for each. */
static fv_drawing *draw_timeline(const fv_scaling *s, const char *title) {
    int    row = 0, lanes = 1, stages = 0;
    double end = 0;
    for (int i = 0; i < s->nrows; i++)
        if (s->rows[i].workers > s->rows[row].workers) row = i;
    for (int64_t i = 0; i < s->ntasks; i++) {
        const fv_scale_task *t = &s->tasks[i];
        if (t->row != row) continue;
        if (t->worker >= lanes) lanes = t->worker + 1;
        if (t->stage >= stages) stages = t->stage + 1;
        if (t->start + t->seconds > end) end = t->start + t->seconds;
    }
    if (lanes > LANES) lanes = LANES;
    fv_drawing *d = fv_drawing_new(900, 120 + 24 * lanes + 20 * ((stages + 7) / 8));
    fv_chart    c;
    char        heading[256];
    snprintf(heading, sizeof heading, "%s: %s scaling, %d workers", title, kind(&s->rows[row]), s->rows[row].workers);
    fv_chart_init(&c, d, 0, 0, 900, d->height - 20 * ((stages + 7) / 8), heading, "seconds since the first task", "");
    c.low_x = 0;
    c.high_x = end > 0 ? end : 1;
    c.high_y = lanes;
    double step = fv_chart_step(c.high_x, 10);
    fv_draw_text(d, 450, 20, 13, FV_TEXT_MIDDLE, 0, "%s", heading);
    for (int lane = 0; lane < lanes; lane++) {
        double y = c.top + c.high * (lane + 0.5) / lanes;
        fv_draw_text(d, c.left - 8, y + 4, 10, FV_TEXT_RIGHT, 0x333333, "%d", lane + 1);
        fv_draw_line(d, c.left, y, c.left + c.wide, y, 0.5, 0xdddddd);
    }
    for (int64_t i = 0; i < s->ntasks; i++) {
        const fv_scale_task *t = &s->tasks[i];
        if (t->row != row || t->worker < 0 || t->worker >= lanes) continue;
        double x = fv_chart_x(&c, t->start), width = fv_chart_x(&c, t->start + t->seconds) - x;
        fv_draw_box(d, x, c.top + c.high * (t->worker + 0.15) / lanes, width > 0.6 ? width - 0.3 : 0.3, 0.7 * c.high / lanes,
                    colors[t->stage % COLORS]);
    }
    fv_draw_line(d, c.left, c.top + c.high, c.left + c.wide, c.top + c.high, 1, 0x333333);
    for (double x = 0; x <= c.high_x * (1 + 1e-9); x += step) {
        fv_draw_line(d, fv_chart_x(&c, x), c.top + c.high, fv_chart_x(&c, x), c.top + c.high + 4, 1, 0x333333);
        fv_draw_text(d, fv_chart_x(&c, x), c.top + c.high + 16, 10, FV_TEXT_MIDDLE, 0x333333, "%g", x);
    }
    fv_draw_text(d, c.left + c.wide / 2, c.top + c.high + 34, 10, FV_TEXT_MIDDLE, 0x333333, "%s", c.label_x);
    fv_draw_text(d, 8, c.top - 8, 10, FV_TEXT_LEFT, 0x333333, "thread, process or rank");
    for (int k = 0; k < stages; k++) {
        double x = 60 + 100 * (k % 8), y = d->height - 20 * ((stages + 7) / 8) + 20 * (k / 8) + 8;
        fv_draw_box(d, x, y - 7, 10, 7, colors[k % COLORS]);
        fv_draw_text(d, x + 15, y, 10, FV_TEXT_LEFT, 0x333333, "stage %d", k + 1);
    }
    return d;
}

/* ---------------------------------------------------------------- files */

static bool write_table(const char *path, const fv_scaling *s, void (*write)(FILE *file, const fv_scaling *s)) {
    FILE *file = fopen(path, "w");
    if (!file) return false;
    write(file, s);
    bool good = !ferror(file);
    return fclose(file) == 0 && good;
}

bool fv_scaling_sheet(const fv_scaling *s, const char *folder, const char *title, char failed[512]) {
    static const char *const tables[] = { "scaling.csv", "stages.csv", "timeline.csv" };
    static void (*const writers[])(FILE *, const fv_scaling *) = { write_rows, write_stages, write_timeline };
    static const char *const pictures[] = { "scaling.svg", "scaling.png", "timeline.svg", "timeline.png" };
    fv_drawing              *drawings[] = { draw_scaling(s, title), draw_timeline(s, title) };
    snprintf(failed, 512, "%s", folder);
    bool good = mkdir(folder, 0777) == 0 || errno == EEXIST;
    for (int i = 0; i < 3 && good; i++) {
        snprintf(failed, 512, "%s/%s", folder, tables[i]);
        good = write_table(failed, s, writers[i]);
    }
    for (int i = 0; i < 4 && good; i++) {
        snprintf(failed, 512, "%s/%s", folder, pictures[i]);
        good = fv_drawing_write(drawings[i / 2], failed);
    }
    fv_drawing_free(drawings[0]);
    fv_drawing_free(drawings[1]);
    return good;
}
