/* Plots of a table file: a histogram of each column of numbers. */
#include "draw/chart.h"
#include "op/format.h"
#include "story/story_parts.h"
#include <math.h>
#include <stdlib.h>

enum { MOST_PLOTS = 6, MOST_ROWS = 1 << 20, BINS = 30 };

typedef struct column {
    const char *name, *unit;
    int         index;
    double      low, high, sum;
    int64_t     count;
    fv_bytes    values; /* float */
} column;

/* Numbers that only tell rows apart say nothing as a histogram. */
static bool tells_rows_apart(const char *name) {
    static const char *const names[] = { "label", "index", "item", "id", "track", "frame", "parent" };
    for (int i = 0; i < FV_COUNT(names); i++)
        if (!strcmp(name, names[i])) return true;
    return !strncmp(name, "bbox_", 5);
}

static int choose(const fv_table_type *type, column columns[MOST_PLOTS]) {
    int count = 0;
    for (int c = 0; c < type->ncolumns && count < MOST_PLOTS; c++)
        if (type->column[c].kind != FV_COLUMN_TEXT && !tells_rows_apart(type->column[c].name))
            columns[count++] = (column){ .name = type->column[c].name, .index = c, .low = INFINITY, .high = -INFINITY };
    return count;
}

static void take_rows(const fv_table_type *type, const fv_cell *cells, int64_t nrows, column *columns, int count) {
    for (int64_t r = 0; r < nrows; r++)
        for (int k = 0; k < count; k++) {
            const fv_cell *cell = &cells[r * type->ncolumns + columns[k].index];
            fv_column_kind kind = type->column[columns[k].index].kind;
            double         value = kind == FV_COLUMN_REAL      ? cell->real
                                   : kind == FV_COLUMN_NATURAL ? (double)cell->natural
                                                               : (double)cell->integer;
            float          kept = (float)value;
            if (!isfinite(value)) continue;
            columns[k].low = fmin(columns[k].low, value);
            columns[k].high = fmax(columns[k].high, value);
            columns[k].sum += value;
            columns[k].count++;
            fv__bytes_append(&columns[k].values, &kept, sizeof kept);
        }
}

static void put_histogram(fv_bytes *out, const column *c) {
    double       bins[BINS] = { 0 }, most = 0, high = c->high;
    const float *values = (const float *)(const void *)c->values.data;
    for (int64_t i = 0; i < c->count; i++) {
        int bin = (int)((values[i] - c->low) / (high - c->low) * BINS);
        bins[FV_MIN(FV_MAX(bin, 0), BINS - 1)]++;
    }
    for (int b = 0; b < BINS; b++) most = fmax(most, bins[b]);
    fv_drawing *drawing = fv__drawing_new(240, 170, 2);
    fv_chart    chart;
    fv__chart_init(&chart, drawing, 0, 0, 240, 170, "", c->name, "rows");
    chart.beside = 12;
    chart.words = 9;
    fv__chart_range(&chart, c->low, high, 0, most);
    fv__chart_axes(&chart);
    for (int b = 0; b < BINS; b++) {
        double x = fv__chart_x(&chart, c->low + b * (high - c->low) / BINS), y = fv__chart_y(&chart, bins[b]);
        if (bins[b] > 0)
            fv__draw_box(drawing, x + 0.3, y, fmax(chart.wide / BINS - 0.6, 0.4), chart.top + chart.high - y, fv__palette[0]);
    }
    fv__bytes_printf(out, "<figure>");
    fv__drawing_svg(drawing, out);
    fv__bytes_printf(out, "<figcaption>");
    fv__html_printf(out, "%s: mean %.5g, from %.5g to %.5g", c->name, c->sum / (double)c->count, c->low, c->high);
    fv__bytes_printf(out, "</figcaption></figure>\n");
    fv__drawing_free(drawing);
}

static void put_table(fv_bytes *out, const char *name, fv_table_reader *reader) {
    column         columns[MOST_PLOTS];
    int            count = choose(&reader->type, columns);
    int64_t        rows = 0, batch = 1;
    const fv_cell *cells;
    while (batch > 0 && rows < MOST_ROWS && reader->source.next(&reader->source, &cells, &batch, NULL) == FV_OK) {
        take_rows(&reader->type, cells, batch, columns, count);
        rows += batch;
    }
    char words[FV_WORDS];
    fv__bytes_printf(out, "<h3>");
    fv__html_text(out, name);
    fv__bytes_printf(out, "</h3><p>%s%s rows, %d columns: ", batch > 0 ? "The first " : "", fv__say_count(rows, words),
                     reader->type.ncolumns);
    for (int c = 0; c < FV_MIN(reader->type.ncolumns, 24); c++)
        fv__html_printf(out, "%s%s", c ? ", " : "", reader->type.column[c].name);
    fv__bytes_printf(out, "%s.</p>\n<div class=\"row\">", reader->type.ncolumns > 24 ? ", …" : "");
    for (int k = 0; k < count; k++) {
        if (columns[k].high > columns[k].low) put_histogram(out, &columns[k]);
        fv__bytes_release(&columns[k].values);
    }
    fv__bytes_printf(out, "</div>\n");
    for (int k = 0; k < count; k++)
        if (columns[k].count && columns[k].high <= columns[k].low) {
            fv__bytes_printf(out, "<p>");
            fv__html_printf(out, "%s is %.9g in every row.", columns[k].name, columns[k].low);
            fv__bytes_printf(out, "</p>\n");
        }
}

bool fv__put_table(fv_bytes *out, const char *path, const char *name) {
    const fv_table_format *format = fv__story_may_open(path) ? fv__table_format_of_file(path) : NULL;
    fv_table_reader       *reader;
    if (!format || !format->open || format->open(path, NULL, &reader, NULL) != FV_OK) return false;
    put_table(out, name, reader);
    format->close(reader);
    return true;
}
