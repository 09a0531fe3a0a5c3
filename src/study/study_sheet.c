/* A study of policies as CSV, JSON and pictures. */
#include "study/study_sheet.h"
#include "base/file.h"
#include "draw/chart.h"
#include "study/sheet_files.h"
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB ((double)((int64_t)1 << 30))
#define INK 0x333333
#define LIMIT 0xb03030
static const unsigned shades[] = { 0xc6dbef, 0x9ecae1, 0x6baed6, 0x3182bd, 0x08519c }; /* of 1, 2, ... tasks at once */
enum { SHADES = sizeof shades / sizeof shades[0], LEAST_WIDE = 960, LEAST_PANEL = 200 };
enum { HEAD = 60, TOP = 300, NAME = 18, PANEL = 160, FOOT = 40 }; /* heights */

/* ---------------------------------------------------------------- CSV and JSON */

static void write_policies(FILE *file, const fv_device_study *s) {
    fprintf(file, "policy,makespan,wait,longest_wait");
    for (int d = 0; d < s->devices; d++) fprintf(file, ",occupancy_%d,peak_%d", d, d);
    fprintf(file, "\n");
    for (int i = 0; i < s->nrows; i++) {
        const fv_study_row *r = &s->rows[i];
        fprintf(file, "%s,%.6f,%.6f,%.6f", r->policy, r->makespan, r->wait, r->longest_wait);
        for (int d = 0; d < s->devices; d++) fprintf(file, ",%.4f,%lld", r->occupancy[d], (long long)r->peak[d]);
        fprintf(file, "\n");
    }
}

static void write_leases(FILE *file, const fv_device_study *s) {
    fprintf(file, "policy,task,worker,pid,device,memory,length,asked,granted,returned\n");
    for (int i = 0; i < s->nleases; i++) {
        const fv_study_lease *l = &s->leases[i];
        fprintf(file, "%s,%d,%d,%d,%d,%lld,%.6f,%.6f,%.6f,%.6f\n", s->rows[l->policy].policy, l->task, l->worker, l->pid,
                l->device, (long long)l->memory, l->length, l->asked, l->granted, l->returned);
    }
}

static cJSON *row_json(const fv_device_study *s, const fv_study_row *r) {
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "policy", r->policy);
    cJSON_AddNumberToObject(row, "makespan", r->makespan);
    cJSON_AddNumberToObject(row, "wait", r->wait);
    cJSON_AddNumberToObject(row, "longest_wait", r->longest_wait);
    cJSON *devices = cJSON_AddArrayToObject(row, "devices");
    for (int d = 0; d < s->devices; d++) {
        cJSON *device = cJSON_CreateObject();
        cJSON_AddNumberToObject(device, "occupancy", r->occupancy[d]);
        cJSON_AddNumberToObject(device, "peak", (double)r->peak[d]);
        cJSON_AddItemToArray(devices, device);
    }
    return row;
}

static cJSON *lease_json(const fv_device_study *s, const fv_study_lease *l) {
    cJSON *lease = cJSON_CreateObject();
    cJSON_AddStringToObject(lease, "policy", s->rows[l->policy].policy);
    cJSON_AddNumberToObject(lease, "task", l->task);
    cJSON_AddNumberToObject(lease, "worker", l->worker);
    cJSON_AddNumberToObject(lease, "pid", l->pid);
    cJSON_AddNumberToObject(lease, "device", l->device);
    cJSON_AddNumberToObject(lease, "memory", (double)l->memory);
    cJSON_AddNumberToObject(lease, "length", l->length);
    cJSON_AddNumberToObject(lease, "asked", l->asked);
    cJSON_AddNumberToObject(lease, "granted", l->granted);
    cJSON_AddNumberToObject(lease, "returned", l->returned);
    return lease;
}

static cJSON *study_json(const fv_device_study *s, bool leases) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "workers", s->workers);
    cJSON_AddNumberToObject(root, "tasks", s->tasks);
    cJSON_AddNumberToObject(root, "devices", s->devices);
    cJSON_AddNumberToObject(root, "memory", (double)s->memory);
    cJSON_AddNumberToObject(root, "seed", (double)s->seed);
    cJSON_AddBoolToObject(root, "opencl", s->opencl);
    cJSON_AddStringToObject(root, "work", s->work);
    cJSON_AddNumberToObject(root, "least", s->least);
    cJSON *rows = cJSON_AddArrayToObject(root, "policies");
    for (int i = 0; i < s->nrows; i++) cJSON_AddItemToArray(rows, row_json(s, &s->rows[i]));
    cJSON *list = leases ? cJSON_AddArrayToObject(root, "leases") : NULL;
    for (int i = 0; leases && i < s->nleases; i++) cJSON_AddItemToArray(list, lease_json(s, &s->leases[i]));
    return root;
}

static void write_json(FILE *file, const fv_device_study *s) {
    cJSON *root = study_json(s, true);
    char  *text = cJSON_Print(root);
    fprintf(file, "%s\n", text);
    free(text);
    cJSON_Delete(root);
}

/* ---------------------------------------------------------------- pictures */

/* A bar for each policy with its number above; least above 0: a line that none can fall below. */
static void draw_bars(const fv_device_study *s, fv_chart *c, const double *values, double least) {
    double most = least;
    for (int i = 0; i < s->nrows; i++)
        if (values[i] > most) most = values[i];
    fv__chart_range(c, 0, s->nrows, 0, most > 0 ? 1.15 * most : 1);
    const char *names[FV_STUDY_POLICIES];
    for (int i = 0; i < s->nrows; i++) names[i] = s->rows[i].policy;
    c->across.low = -0.5;
    c->across.high = s->nrows - 0.5;
    c->across.names = names;
    c->across.nnames = s->nrows;
    fv__chart_axes(c);
    for (int i = 0; i < s->nrows; i++) {
        double left = fv__chart_x(c, i - 0.3), right = fv__chart_x(c, i + 0.3), top = fv__chart_y(c, values[i]);
        fv__draw_box(c->drawing, left, top, right - left, c->top + c->high - top, fv__palette[i % 4]);
        fv__draw_text(c->drawing, (left + right) / 2, top - 5, 10, FV_TEXT_MIDDLE, INK, "%.2f", values[i]);
    }
    if (least <= 0) return;
    fv__draw_dashes(c->drawing, c->left, fv__chart_y(c, least), c->left + c->wide, fv__chart_y(c, least), 1, LIMIT);
    fv__draw_text(c->drawing, c->left + c->wide, c->y + c->height - 6, 10, FV_TEXT_RIGHT, LIMIT,
                  "dashed: all devices busy all the time");
}

static int by_number(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Memory in use of one device as steps, darker the more tasks share it. */
static void draw_steps(const fv_device_study *s, fv_chart *c, int policy, int device) {
    double *times = malloc((size_t)(2 * s->nleases + 1) * sizeof *times);
    int     count = 0;
    if (!times) abort();
    for (int i = 0; i < s->nleases; i++)
        if (s->leases[i].policy == policy && s->leases[i].device == device) {
            times[count++] = s->leases[i].granted;
            times[count++] = s->leases[i].returned;
        }
    qsort(times, (size_t)count, sizeof *times, by_number);
    for (int k = 0; k + 1 < count; k++) {
        double used = 0, middle = (times[k] + times[k + 1]) / 2;
        int    tasks = 0;
        for (int i = 0; i < s->nleases; i++) {
            const fv_study_lease *l = &s->leases[i];
            bool here = l->policy == policy && l->device == device && l->granted <= middle && l->returned > middle;
            used += here ? (double)l->memory / GIB : 0;
            tasks += here;
        }
        if (!tasks) continue;
        double left = fv__chart_x(c, times[k]), right = fv__chart_x(c, times[k + 1]), top = fv__chart_y(c, used);
        fv__draw_box(c->drawing, left, top, right - left, c->top + c->high - top,
                     shades[tasks < SHADES ? tasks - 1 : SHADES - 1]);
    }
    free(times);
}

static void draw_panel(const fv_device_study *s, fv_drawing *d, int policy, int device, double seconds) {
    fv_chart            c;
    char                title[128];
    const fv_study_row *r = &s->rows[policy];
    double              wide = d->width / s->devices, limit = (double)s->memory / GIB;
    snprintf(title, sizeof title, "device %d: busy %.0f %%", device, 100 * r->occupancy[device]);
    fv__chart_init(&c, d, wide * device, HEAD + TOP + (NAME + PANEL) * policy + NAME, wide, PANEL, title,
                   policy + 1 == s->nrows ? "time / s" : "", "memory in use / GiB");
    fv__chart_range(&c, 0, seconds, 0, limit);
    fv__chart_axes(&c);
    draw_steps(s, &c, policy, device);
    fv__draw_dashes(d, c.left, fv__chart_y(&c, limit), c.left + c.wide, fv__chart_y(&c, limit), 1, LIMIT);
    fv__draw_line(d, fv__chart_x(&c, r->makespan), c.top, fv__chart_x(&c, r->makespan), c.top + c.high, 1, INK);
}

static void draw_shades(fv_drawing *d) {
    double y = d->height - 14;
    fv__draw_text(d, 58, y, 10, FV_TEXT_LEFT, INK, "tasks on the device at once:");
    for (int k = 0; k < SHADES; k++) {
        fv__draw_box(d, 252 + 50 * k, y - 8, 14, 9, shades[k]);
        fv__draw_text(d, 271 + 50 * k, y, 10, FV_TEXT_LEFT, INK, k + 1 < SHADES ? "%d" : "%d or more", k + 1);
    }
    fv__draw_dashes(d, 600, y - 3, 630, y - 3, 1, LIMIT);
    fv__draw_text(d, 636, y, 10, FV_TEXT_LEFT, INK, "memory of the device");
    fv__draw_line(d, 800, y - 9, 800, y + 2, 1, INK);
    fv__draw_text(d, 806, y, 10, FV_TEXT_LEFT, INK, "last task done");
}

static fv_drawing *draw(const fv_device_study *s) {
    double      wide = s->devices * LEAST_PANEL > LEAST_WIDE ? s->devices * LEAST_PANEL : LEAST_WIDE;
    fv_drawing *d = fv__drawing_new(wide, HEAD + TOP + (NAME + PANEL) * s->nrows + FOOT, 2);
    double      makespan[FV_STUDY_POLICIES], wait[FV_STUDY_POLICIES], most = 0;
    fv_chart    c;
    for (int i = 0; i < s->nrows; i++) {
        makespan[i] = s->rows[i].makespan;
        wait[i] = s->rows[i].wait;
        if (makespan[i] > most) most = makespan[i];
    }
    fv__draw_text(d, wide / 2, 24, 15, FV_TEXT_MIDDLE, 0, "%d workers, %d tasks, %d devices of %.3g GiB", s->workers, s->tasks,
                  s->devices, (double)s->memory / GIB);
    fv__draw_text(d, wide / 2, 44, 10, FV_TEXT_MIDDLE, 0x666666, "%s; seed %llu", s->work, (unsigned long long)s->seed);
    fv__chart_init(&c, d, 0, HEAD, wide / 2, TOP, "Time until all tasks are done", "policy", "seconds");
    draw_bars(s, &c, makespan, s->least);
    fv__chart_init(&c, d, wide / 2, HEAD, wide / 2, TOP, "Mean wait for a device", "policy", "seconds");
    draw_bars(s, &c, wait, 0);
    for (int p = 0; p < s->nrows; p++) {
        fv__draw_text(d, 8, HEAD + TOP + (NAME + PANEL) * p + NAME, 14, FV_TEXT_LEFT, fv__palette[p % 4], "%s",
                      s->rows[p].policy);
        for (int device = 0; device < s->devices; device++) draw_panel(s, d, p, device, most);
    }
    draw_shades(d);
    return d;
}

/* ---------------------------------------------------------------- files */

static fv_status write_text(const char *folder, const char *name, const fv_device_study *s,
                            void (*write)(FILE *file, const fv_device_study *s), fv_error *error) {
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

fv_status fv_device_study_save(const fv_device_study *s, const char *folder, fv_error *error) {
    static const char *const texts[] = { "policies.csv", "leases.csv", "study.json" };
    static void (*const writers[])(FILE *, const fv_device_study *) = { write_policies, write_leases, write_json };
    FV_TRY(fv__path_make_folders(folder, error));
    for (int i = 0; i < FV_COUNT(texts); i++) FV_TRY(write_text(folder, texts[i], s, writers[i], error));
    FV_TRY(fv__sheet_pictures(draw(s), folder, "study", error));
    return fv__sheet_page(folder, "study", "A study of policies", (const char *const[]){ "study", NULL },
                          (const char *const[]){ "policies", "leases", NULL }, error);
}

char *fv_device_study_json(const fv_device_study *s) {
    cJSON *root = study_json(s, false);
    char  *text = cJSON_Print(root);
    cJSON_Delete(root);
    return text;
}
