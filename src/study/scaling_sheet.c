/* A scaling study as CSV and as pictures. */
#include "study/scaling_sheet.h"
#include "base/file.h"
#include "draw/chart.h"
#include "study/sheet_files.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRONG fv__palette[0]
#define WEAK fv__palette[3]
#define IDEAL 0x999999
#define MODEL fv__palette[2]
enum { LANES = 32 };

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
        double x = fv__chart_x(c, r->x[i]), top = fv__chart_y(c, r->most[i]), bottom = fv__chart_y(c, r->least[i]);
        fv__draw_line(c->drawing, x, top, x, bottom, 1, color);
        fv__draw_line(c->drawing, x - 3, top, x + 3, top, 1, color);
        fv__draw_line(c->drawing, x - 3, bottom, x + 3, bottom, 1, color);
    }
}

static void mark_workers(fv_chart *c, const rows *r) {
    c->across.ticks = r->x;
    c->across.nticks = r->count;
    fv__chart_axes(c);
}

static void time_chart(const fv_scaling *s, fv_chart *c, const rows *strong, const rows *weak, double most) {
    double      x[MODEL_POINTS], y[MODEL_POINTS];
    const rows *any = strong->count ? strong : weak;
    fv__chart_range(c, 1, most, 0, 1.25 * largest(weak->most, weak->count, largest(strong->most, strong->count, 0)));
    mark_workers(c, any);
    if (s->fitted) {
        char name[64];
        model_curve(s, most, false, x, y);
        snprintf(name, sizeof name, "Amdahl, serial part %.1f %%", 100 * s->serial);
        fv__chart_curve(c, x, y, MODEL_POINTS, MODEL, false, name);
    }
    range_bars(c, strong, STRONG);
    range_bars(c, weak, WEAK);
    if (strong->count) fv__chart_curve(c, strong->x, strong->seconds, strong->count, STRONG, true, "strong: the same work");
    if (weak->count) fv__chart_curve(c, weak->x, weak->seconds, weak->count, WEAK, true, "weak: work grows with workers");
}

static void speedup_chart(const fv_scaling *s, fv_chart *c, const rows *strong, const rows *weak, double most) {
    double      x[MODEL_POINTS], y[MODEL_POINTS];
    const rows *any = strong->count ? strong : weak;
    fv__chart_range(c, 1, most, 0, 1.15 * most);
    mark_workers(c, any);
    fv__draw_dashes(c->drawing, fv__chart_x(c, 1), fv__chart_y(c, 1), fv__chart_x(c, most), fv__chart_y(c, most), 1, IDEAL);
    fv__chart_legend(c, IDEAL, "ideal");
    if (s->fitted) {
        model_curve(s, most, true, x, y);
        fv__chart_curve(c, x, y, MODEL_POINTS, MODEL, false, "Amdahl");
    }
    if (strong->count) fv__chart_curve(c, strong->x, strong->speedup, strong->count, STRONG, true, "strong: T1 / TN");
    if (weak->count) fv__chart_curve(c, weak->x, weak->speedup, weak->count, WEAK, true, "weak: N T1 / TN");
}

static void efficiency_chart(fv_chart *c, const rows *strong, const rows *weak, double most) {
    const rows *any = strong->count ? strong : weak;
    double      top = largest(weak->efficiency, weak->count, largest(strong->efficiency, strong->count, 1));
    fv__chart_range(c, 1, most, 0, 1.35 * top);
    mark_workers(c, any);
    fv__draw_dashes(c->drawing, fv__chart_x(c, 1), fv__chart_y(c, 1), fv__chart_x(c, most), fv__chart_y(c, 1), 1, IDEAL);
    fv__chart_legend(c, IDEAL, "ideal");
    if (strong->count) fv__chart_curve(c, strong->x, strong->efficiency, strong->count, STRONG, true, "strong: T1 / (N TN)");
    if (weak->count) fv__chart_curve(c, weak->x, weak->efficiency, weak->count, WEAK, true, "weak: T1 / TN");
}

/* What workers did, one bar for each row: read, compute, write, merge. */
static void work_chart(const fv_scaling *s, fv_chart *c) {
    double most = 0;
    for (int i = 0; i < s->nrows; i++) {
        double sum = 0;
        for (int k = 0; k < FV_COSTS; k++) sum += s->rows[i].work[k];
        if (sum > most) most = sum;
    }
    fv__chart_range(c, 0, s->nrows, 0, 1.4 * most);
    char       *names[64];
    const char *shown[64];
    int         count = FV_MIN(s->nrows, 64);
    for (int i = 0; i < count; i++)
        shown[i] = names[i] =
            fv__sprintf("%s %d", s->nrows > 8 ? (s->rows[i].weak ? "w" : "s") : kind(&s->rows[i]), s->rows[i].workers);
    c->across.low = -0.5;
    c->across.high = count - 0.5;
    c->across.names = shown;
    c->across.nnames = count;
    fv__chart_axes(c);
    for (int i = 0; i < count; i++) {
        double left = fv__chart_x(c, i - 0.3), right = fv__chart_x(c, i + 0.3), sum = 0;
        for (int k = 0; k < FV_COSTS; k++) {
            double from = fv__chart_y(c, sum), to = fv__chart_y(c, sum + s->rows[i].work[k]);
            fv__draw_box(c->drawing, left, to, right - left, from - to, fv__palette[k]);
            sum += s->rows[i].work[k];
        }
        free(names[i]);
    }
    for (int k = 0; k < FV_COSTS; k++) fv__chart_legend(c, fv__palette[k], fv_cost_name((fv_cost)k));
}

static fv_drawing *draw_scaling(const fv_scaling *s, const char *title) {
    fv_drawing *d = fv__drawing_new(900, 700, 2);
    rows        strong = take(s, false), weak = take(s, true);
    double      most = largest(weak.x, weak.count, largest(strong.x, strong.count, 1));
    fv_chart    c;
    fv__draw_text(d, 450, 24, 15, FV_TEXT_MIDDLE, 0, "%s", title);
    if (isnan(s->noise))
        fv__draw_text(d, 450, 42, 10, FV_TEXT_MIDDLE, 0x666666, "one run each, so the noise is unknown");
    else
        fv__draw_text(d, 450, 42, 10, FV_TEXT_MIDDLE, 0x666666,
                      "median of %d runs, bars from the fastest to the slowest; noise %.0f %%", s->repeats, 100 * s->noise);
    fv__chart_init(&c, d, 0, 50, 450, 320, "Time to completion", "workers", "seconds");
    time_chart(s, &c, &strong, &weak, most);
    fv__chart_init(&c, d, 450, 50, 450, 320, "Speed-up", "workers", "times one worker");
    speedup_chart(s, &c, &strong, &weak, most);
    fv__chart_init(&c, d, 0, 375, 450, 320, "Efficiency", "workers", "of ideal");
    efficiency_chart(&c, &strong, &weak, most);
    fv__chart_init(&c, d, 450, 375, 450, 320, "What workers did", "study and workers", "seconds of all workers");
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
    fv_drawing *d = fv__drawing_new(900, 120 + 24 * lanes + 20 * ((stages + 7) / 8), 2);
    fv_chart    c;
    char        heading[256];
    snprintf(heading, sizeof heading, "%s: %s scaling, %d workers", title, kind(&s->rows[row]), s->rows[row].workers);
    fv__chart_init(&c, d, 0, 0, 900, d->height - 20 * ((stages + 7) / 8), heading, "seconds since the first task", "");
    c.across.low = 0;
    c.across.high = end > 0 ? end : 1;
    double step = fv__round_step(c.across.high, 10);
    fv__draw_text(d, 450, 20, 13, FV_TEXT_MIDDLE, 0, "%s", heading);
    for (int lane = 0; lane < lanes; lane++) {
        double y = c.top + c.high * (lane + 0.5) / lanes;
        fv__draw_text(d, c.left - 8, y + 4, 10, FV_TEXT_RIGHT, 0x333333, "%d", lane + 1);
        fv__draw_line(d, c.left, y, c.left + c.wide, y, 0.5, 0xdddddd);
    }
    for (int64_t i = 0; i < s->ntasks; i++) {
        const fv_scale_task *t = &s->tasks[i];
        if (t->row != row || t->worker < 0 || t->worker >= lanes) continue;
        double x = fv__chart_x(&c, t->start), width = fv__chart_x(&c, t->start + t->seconds) - x;
        fv__draw_box(d, x, c.top + c.high * (t->worker + 0.15) / lanes, width > 0.6 ? width - 0.3 : 0.3, 0.7 * c.high / lanes,
                     fv__palette[t->stage % FV_PALETTE]);
    }
    fv__draw_line(d, c.left, c.top + c.high, c.left + c.wide, c.top + c.high, 1, 0x333333);
    for (double x = 0; x <= c.across.high * (1 + 1e-9); x += step) {
        fv__draw_line(d, fv__chart_x(&c, x), c.top + c.high, fv__chart_x(&c, x), c.top + c.high + 4, 1, 0x333333);
        fv__draw_text(d, fv__chart_x(&c, x), c.top + c.high + 16, 10, FV_TEXT_MIDDLE, 0x333333, "%g", x);
    }
    fv__draw_text(d, c.left + c.wide / 2, c.top + c.high + 34, 10, FV_TEXT_MIDDLE, 0x333333, "%s", c.across.label);
    fv__draw_text(d, 8, c.top - 8, 10, FV_TEXT_LEFT, 0x333333, "thread, process or rank");
    for (int k = 0; k < stages; k++) {
        double x = 60 + 100 * (k % 8), y = d->height - 20 * ((stages + 7) / 8) + 20 * (k / 8) + 8;
        fv__draw_box(d, x, y - 7, 10, 7, fv__palette[k % FV_PALETTE]);
        fv__draw_text(d, x + 15, y, 10, FV_TEXT_LEFT, 0x333333, "stage %d", k + 1);
    }
    return d;
}

/* ---------------------------------------------------------------- files */

static fv_status write_table(const char *folder, const char *name, const fv_scaling *s,
                             void (*write)(FILE *file, const fv_scaling *s), fv_error *error) {
    FILE     *file;
    char     *path = fv__path_inside(folder, name);
    fv_status status = fv__sheet_open(path, &file, error);
    if (status == FV_OK) {
        write(file, s);
        status = fv__sheet_close(path, file, error);
    }
    free(path);
    return status;
}

fv_status fv_scaling_save(const fv_scaling *s, const char *folder, const char *title, fv_error *error) {
    static const char *const tables[] = { "scaling.csv", "stages.csv", "timeline.csv" };
    static void (*const writers[])(FILE *, const fv_scaling *) = { write_rows, write_stages, write_timeline };
    FV_TRY(fv__path_make_folders(folder, error));
    for (int i = 0; i < FV_COUNT(tables); i++) FV_TRY(write_table(folder, tables[i], s, writers[i], error));
    FV_TRY(fv__sheet_pictures(draw_scaling(s, title), folder, "scaling", error));
    FV_TRY(fv__sheet_pictures(draw_timeline(s, title), folder, "timeline", error));
    return fv__sheet_page(folder, "scaling", title, (const char *const[]){ "scaling", "timeline", NULL },
                          (const char *const[]){ "scaling", "stages", NULL }, error);
}
