/* plot: a table as a picture. The result is a table of marks, few however large the table is, which files of pictures draw. */
#include "ops/table/plot.h"
#include "op/column_units.h"
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *x, *y, *by, *value, *title, *x_label, *y_label;
    fv_choice   kind, log;
    int64_t     bins;
    fv_numbers  size;
    const char *over;
} plot;

static const fv_param params[] = {
    FV_PARAM(plot, x, .def = "", .doc = "column along the horizontal axis: numbers, or text for places side by side"),
    FV_PARAM(plot, y, .def = "", .doc = "column along the vertical axis"),
    FV_PARAM(plot, by, .def = "", .doc = "column whose values make groups, each with a colour and a line in the legend"),
    FV_PARAM(plot, kind, .def = "auto", .choices = "auto|scatter|line|histogram|box|violin|heatmap|bar",
             .doc = "auto: a scatter plot of two columns of numbers, boxes where x is text, a histogram of x alone"),
    FV_PARAM(plot, value, .def = "", .doc = "heatmap: column whose mean gives the colour; not given: the number of rows"),
    FV_PARAM(plot, bins, .def = "0", .min = 0, .max = 1000,
             .doc = "histogram and heatmap: number of bins; 0: as many as suit the number of rows"),
    FV_PARAM(plot, log, .def = "none", .choices = "none|x|y|xy", .doc = "axes on which equal steps are equal factors"),
    FV_PARAM(plot, title, .def = "", .doc = "words above the picture"),
    FV_PARAM(plot, x_label, .def = "", .doc = "words at the horizontal axis; not given: the column and its unit"),
    FV_PARAM(plot, y_label, .def = "", .doc = "words at the vertical axis; not given: the column and its unit"),
    FV_PARAM(plot, size, .def = "[120, 80]", .min = 20, .max = 2000, .unit = "mm", .doc = "[width, height] of the picture"),
    FV_PARAM(plot, over, .def = "", .axis = true,
             .doc = "\"item\": one picture of all items of a collection; not given: one for each item"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "table", FV_KIND_TABLE, .doc = "table to draw" }, FV_INPUT_END };

/* ---------------------------------------------------------------- what is asked for */

static bool given(const char *text) { return text && *text; }

static fv_status column_of(const fv_table_type *type, const char *parameter, const char *name, bool numbers, int *column,
                           fv_error *error) {
    *column = -1;
    if (!given(name)) return FV_OK;
    FV_TRY(fv__table_find(type, parameter, name, column, error));
    if (numbers && type->column[*column].kind == FV_COLUMN_TEXT)
        return fv_fail(error, FV_ERROR_USAGE, "%s = \"%s\": the column holds text, and numbers are needed there", parameter,
                       name);
    return FV_OK;
}

static bool is_text(const fv_table_type *type, int column) { return column >= 0 && type->column[column].kind == FV_COLUMN_TEXT; }

/* Rows of histogram(): columns low, high and count. Those of several images are told apart by their item. */
static bool take_bins(const fv_table_type *type, fv__plot *p) {
    p->low = fv__table_column(type, "low");
    p->high = fv__table_column(type, "high");
    p->y = fv__table_column(type, "count");
    bool bins =
        p->low >= 0 && p->high >= 0 && p->y >= 0 && !is_text(type, p->low) && !is_text(type, p->high) && !is_text(type, p->y);
    if (!bins) p->y = -1;
    if (bins && p->by < 0) p->by = fv__table_column(type, "item");
    return bins;
}

static fv__plot_kind usual_kind(const fv_table_type *type, const fv__plot *p) {
    if (p->x >= 0 && p->y >= 0) return is_text(type, p->x) ? FV__PLOT_BOX : FV__PLOT_SCATTER;
    if (p->x >= 0) return is_text(type, p->x) ? FV__PLOT_BAR : FV__PLOT_HISTOGRAM;
    return FV__PLOT_BOX;
}

static fv_status missing(const char *parameter, const char *kind, const char *example, fv_error *error) {
    return fv_fail(error, FV_ERROR_USAGE, "%s is missing: a %s needs it, as %s", parameter, kind, example);
}

static fv_status check_columns(const fv__plot *p, fv_error *error) {
    bool both = p->kind == FV__PLOT_SCATTER || p->kind == FV__PLOT_LINE || p->kind == FV__PLOT_HEATMAP;
    if (p->kind != FV__PLOT_HEATMAP && is_text(p->type, p->y))
        return fv_fail(error, FV_ERROR_USAGE, "y = \"%s\": the column holds text; only a heatmap has text on both axes",
                       p->type->column[p->y].name);
    if (p->x < 0 && p->y < 0 && p->kind != FV__PLOT_BINS)
        return fv_fail(error, FV_ERROR_USAGE,
                       "which columns? plot(t, x = \"volume\", y = \"mean\") draws points, plot(t, x = \"volume\") a histogram");
    if (both && p->y < 0) return missing("y", "picture of two columns", "plot(t, x = \"volume\", y = \"mean\")", error);
    if (both && p->x < 0) return missing("x", "picture of two columns", "plot(t, x = \"volume\", y = \"mean\")", error);
    if ((p->kind == FV__PLOT_BOX || p->kind == FV__PLOT_VIOLIN) && p->y < 0)
        return missing("y", "box or violin", "plot(t, x = \"group\", y = \"volume\")", error);
    if (p->kind == FV__PLOT_HISTOGRAM && p->x < 0) return missing("x", "histogram", "plot(t, x = \"volume\")", error);
    if (p->kind != FV__PLOT_HEATMAP && p->value >= 0)
        return fv_fail(error, FV_ERROR_USAGE, "value: only a heatmap has colours for numbers; give kind = \"heatmap\"");
    if (p->kind == FV__PLOT_HEATMAP && (p->log_x || p->log_y))
        return fv_fail(error, FV_ERROR_USAGE, "log: a heatmap has equal fields, and no such axes");
    if (p->kind == FV__PLOT_HEATMAP && p->by >= 0)
        return fv_fail(error, FV_ERROR_USAGE, "by: a heatmap shows one group; filter() chooses its rows");
    return FV_OK;
}

static fv_status parse(const plot *q, const fv_table_type *type, fv__plot *p, fv_error *error) {
    *p = (fv__plot){ .kind = (fv__plot_kind)q->kind.index, .type = type, .bins = q->bins, .low = -1, .high = -1 };
    FV_TRY(column_of(type, "x", q->x, false, &p->x, error));
    FV_TRY(column_of(type, "y", q->y, false, &p->y, error));
    FV_TRY(column_of(type, "by", q->by, false, &p->by, error));
    FV_TRY(column_of(type, "value", q->value, true, &p->value, error));
    bool bins = p->x < 0 && p->y < 0 && (p->kind == FV__PLOT_AUTO || p->kind == FV__PLOT_HISTOGRAM) && take_bins(type, p);
    if (bins) p->kind = FV__PLOT_BINS;
    if (p->kind == FV__PLOT_AUTO) p->kind = usual_kind(type, p);
    if (p->kind == FV__PLOT_HISTOGRAM && is_text(type, p->x)) p->kind = FV__PLOT_BAR;
    bool places = p->kind == FV__PLOT_BOX || p->kind == FV__PLOT_VIOLIN || p->kind == FV__PLOT_BAR;
    if (places && p->x < 0 && p->by >= 0) { /* groups side by side need no legend */
        p->x = p->by;
        p->by = -1;
    }
    p->named_x = places;
    p->log_x = q->log.index == 1 || q->log.index == 3;
    p->log_y = q->log.index == 2 || q->log.index == 3;
    if (p->log_x && (places || is_text(type, p->x)))
        return fv_fail(error, FV_ERROR_USAGE, "log: the horizontal axis has places side by side and no numbers");
    if (given(q->over) && strcmp(q->over, "item"))
        return fv_fail(error, FV_ERROR_USAGE,
                       "over = \"%s\": only \"item\" is possible, for one picture of all items of a collection", q->over);
    return check_columns(p, error);
}

/* ---------------------------------------------------------------- the table of marks */

static const char *name_of(const fv_table_type *type, int column, const char *otherwise) {
    return column >= 0 ? type->column[column].name : otherwise;
}

/* The unit of a column, where the operator that made it has told it. */
static const char *unit_of(const cJSON *told, const fv_table_type *type, int column) {
    char name[64];
    if (column < 0) return "";
    snprintf(name, sizeof name, FV_UNIT_PREFIX "%s", type->column[column].name);
    const char *unit = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(told, name));
    return unit ? unit : "";
}

static void describe_axis(cJSON *about, const char *axis, const char *label, const fv_table_type *type, int column,
                          const char *otherwise) {
    char unit[16];
    snprintf(unit, sizeof unit, "%s_unit", axis);
    cJSON_AddStringToObject(about, axis, given(label) ? label : name_of(type, column, otherwise));
    cJSON *told = type->metadata ? cJSON_Parse(type->metadata) : NULL;
    cJSON_AddStringToObject(about, unit, given(label) ? "" : unit_of(told, type, column));
    cJSON_Delete(told);
}

/* What the picture needs to know beside its marks: the table's metadata, "plot" in JSON. */
static const char *describe(const plot *q, const fv__plot *p, fv_arena *arena) {
    static const char *const kinds[] = { "", "scatter", "line", "histogram", "box", "violin", "heatmap", "bar", "histogram" };
    cJSON                   *about = cJSON_CreateObject(), *metadata = cJSON_CreateObject();
    bool                     counts = p->kind == FV__PLOT_HISTOGRAM || p->kind == FV__PLOT_BINS;
    cJSON_AddStringToObject(about, "kind", kinds[p->kind]);
    cJSON_AddStringToObject(about, "title", q->title ? q->title : "");
    describe_axis(about, "x", q->x_label, p->type, p->kind == FV__PLOT_BINS ? -1 : p->x, p->kind == FV__PLOT_BINS ? "value" : "");
    describe_axis(about, "y", q->y_label, p->type, counts ? -1 : p->y, "count");
    describe_axis(about, "value", NULL, p->type, p->value, "count");
    cJSON_AddStringToObject(about, "by", name_of(p->type, p->by, ""));
    cJSON_AddBoolToObject(about, "log_x", p->log_x);
    cJSON_AddBoolToObject(about, "log_y", p->log_y);
    cJSON_AddNumberToObject(about, "width", q->size.value[0]);
    cJSON_AddNumberToObject(about, "height", q->size.value[1]);
    char *inner = cJSON_PrintUnformatted(about);
    cJSON_AddStringToObject(metadata, "fovea.plot", inner);
    char       *text = cJSON_PrintUnformatted(metadata);
    const char *kept = fv__arena_strdup(arena, text);
    cJSON_free(text);
    cJSON_free(inner);
    cJSON_Delete(about);
    cJSON_Delete(metadata);
    return kept;
}

static const fv_table_type marks = {
    FV__MARK_COLUMNS,
    { [FV__MARK] = { "mark", FV_COLUMN_TEXT },
      [FV__SERIES] = { "series", FV_COLUMN_TEXT },
      [FV__X] = { "x", FV_COLUMN_REAL },
      [FV__Y] = { "y", FV_COLUMN_REAL },
      [FV__FROM] = { "from", FV_COLUMN_REAL },
      [FV__TO] = { "to", FV_COLUMN_REAL },
      [FV__VALUE] = { "value", FV_COLUMN_REAL },
      [FV__X_NAME] = { "x_name", FV_COLUMN_TEXT },
      [FV__Y_NAME] = { "y_name", FV_COLUMN_TEXT } },
};

static fv_status infer(fv_infer *i, fv_error *error) {
    fv__plot             p;
    const fv_table_type *in = i->in[0]->table;
    fv_table_type       *out = fv__arena_alloc(i->arena, sizeof *out);
    plot                *q = i->params;
    FV_TRY(fv__numbers_spread(&q->size, 2, "size", error));
    FV_TRY(parse(q, in, &p, error));
    *out = marks;
    out->metadata = describe(q, &p, i->arena);
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = out };
    return FV_OK;
}

/* All groups in order, so that each has the same colour in every picture of a table. */
static fv_status put_groups(fv__plot *p, fv_error *error) {
    for (int group = 0; group < p->groups.count; group++) {
        fv__plot_mark mark = { "series", group, NAN, NAN, NAN, NAN, NAN, -1, -1 };
        FV_TRY(fv__plot_put(p, &mark, error));
    }
    return FV_OK;
}

/* Rows that cannot be drawn are told, not forgotten. */
static fv_status put_dropped(fv__plot *p, fv_error *error) {
    fv__plot_mark mark = { "dropped", -1, NAN, NAN, NAN, NAN, (double)p->dropped, -1, -1 };
    return p->dropped ? fv__plot_put(p, &mark, error) : FV_OK;
}

static fv_status make_marks(fv__plot *p, fv_error *error) {
    static fv_status (*const makers[])(fv__plot *, fv_error *) = {
        [FV__PLOT_SCATTER] = fv__plot_points, [FV__PLOT_LINE] = fv__plot_lines,   [FV__PLOT_HISTOGRAM] = fv__plot_histogram,
        [FV__PLOT_BOX] = fv__plot_boxes,      [FV__PLOT_VIOLIN] = fv__plot_boxes, [FV__PLOT_HEATMAP] = fv__plot_heatmap,
        [FV__PLOT_BAR] = fv__plot_bars,       [FV__PLOT_BINS] = fv__plot_bins,
    };
    FV_TRY(fv__plot_survey(p, error));
    FV_TRY(put_groups(p, error));
    FV_TRY(makers[p->kind](p, error));
    FV_TRY(put_dropped(p, error));
    return fv__row_writer_flush(&p->marks, error);
}

static fv_status finish(fv_finish *f, fv_error *error) {
    fv__plot p;
    FV_TRY(parse(f->params, f->in[0]->table, &p, error));
    p.rows = f->table[0];
    fv__row_writer_init(&p.marks, f);
    fv_status status = make_marks(&p, error);
    fv__row_writer_release(&p.marks);
    fv__plot_release(&p);
    return status;
}

static const fv_pass passes[] = { { .name = "marks", .run = fv__run_nothing, .finish = finish }, FV_PASS_END };

static const fv_column_doc columns[] = {
    { "mark", .doc = "what is drawn: point, field (points of a large table that lie close together), line, bin, box, whisker, "
                     "density, bar, cell; series, a group, and dropped, rows that cannot be drawn" },
    { "series", .doc = "the group" },
    { "x", .doc = "where it lies; of places with names, their number from 0" },
    { "y", .doc = "where it lies; of a bin and a bar their height, of a box the median" },
    { "from",
      .doc = "lower end: of a bin, of a box the first quartile, of a line and a bar the mean less the standard deviation; of "
             "a cell its width" },
    { "to", .doc = "upper end; of a cell its height" },
    { "value", .doc = "number of rows; of a cell what its colour shows, of a density its height, 1 at the most" },
    { "x_name", .doc = "name of the place along x" },
    { "y_name", .doc = "name of the place along y" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(plot) = {
    .name = "plot",
    .family = "table",
    .brief = "draw a table: points, lines, histograms, boxes, violins, bars or a heat map",
    .also = "scatter, boxplot, violinplot, barplot, pcolormesh, plt.plot, hist2d",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(plot),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .rows = true,
    .doc =
        "Write it as .svg, .png or .pdf. A file of another table format gets the numbers behind the picture.\n"
        "A plot of histogram(image) needs no columns. Axes carry the units that measure knows from the image's spacing. Colours "
        "are those of Okabe and Ito, which people with few colours can tell apart.\n"
        "Boxes reach from the first to the third quartile with a line at the median, whiskers to the last value within 1.5 times "
        "that range; values beyond are points. Violins are Gaussian densities with Silverman's width, cut at the smallest and "
        "the "
        "largest value, all equally wide. Bars and lines show the mean of the rows at the same place and their standard "
        "deviation; a bar without y counts rows. "
        "Of more than 4000 points, those that lie close together are drawn as one field, darker the more they are. "
        "Rows without a number (nan, or not above 0 on an axis with log) are left out, and the picture says how many. Tables may "
        "be "
        "larger than memory, except for lines, boxes and violins, which keep their numbers in it.",
    .example = "cells = label(gaussian(phantom(\"cells\", [400, 400]), 1) > 60)\n"
               "t = measure(cells, phantom(\"cells\", [400, 400]))\n"
               "plot(t, x = \"volume\", y = \"mean\") |> write(\"cells.svg\")",
    .see = "measure histogram group filter",
    .columns = columns,
};
