/* Pictures: what plot() makes of a table, as SVG, PNG or PDF. */
#include "tables/picture.h"
#include <cjson/cJSON.h>
#include <stdlib.h>

/* Columns as plot() gives them; others, of items and swept parameters, may stand before them. */
enum { MARK, SERIES, X, Y, FROM, TO, VALUE, X_NAME, Y_NAME, COLUMNS };
static const char *const names[COLUMNS] = { "mark", "series", "x", "y", "from", "to", "value", "x_name", "y_name" };
enum { MOST_NAMES = 100000 };
#define POINTS (72 / 25.4) /* of a millimetre */

/* ---------------------------------------------------------------- what the plot says about itself */

static cJSON *about_of(const fv_table_type *type) {
    cJSON      *metadata = type && type->metadata ? cJSON_Parse(type->metadata) : NULL;
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(metadata, "fovea.plot"));
    cJSON      *about = text ? cJSON_Parse(text) : NULL;
    cJSON_Delete(metadata);
    return about;
}

static bool has_marks(const fv_table_type *type) {
    if (type->ncolumns < COLUMNS) return false;
    for (int c = 0; c < COLUMNS; c++) {
        const fv_column *column = &type->column[type->ncolumns - COLUMNS + c];
        bool             text = c == MARK || c == SERIES || c >= X_NAME;
        if (strncmp(column->name, names[c], strlen(names[c])) || (column->kind == FV_COLUMN_TEXT) != text) return false;
    }
    return true;
}

static fv_status check(const char *path, const fv_table_type *type, fv_error *error) {
    cJSON *about = about_of(type);
    bool   plot = about && has_marks(type);
    cJSON_Delete(about);
    if (plot) return fv__drawing_ready(path, error);
    return fv_fail(error, FV_ERROR_USAGE,
                   "%s: a picture is drawn of a plot, and this is a %s; plot(t, x = \"volume\", y = \"mean\") makes a plot of a "
                   "table",
                   path, type ? "table" : "number");
}

static const char *text_in(fv__picture *p, const cJSON *about, const char *name) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(about, name));
    return fv__arena_strdup(&p->arena, text ? text : "");
}

static double length_in(const cJSON *about, const char *name, double otherwise) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(about, name);
    double       length = cJSON_IsNumber(item) ? item->valuedouble : otherwise;
    return length >= 20 && length <= 2000 ? length : otherwise;
}

static void take_about(fv__picture *p, const cJSON *about) {
    p->kind = text_in(p, about, "kind");
    p->title = text_in(p, about, "title");
    p->by = text_in(p, about, "by");
    p->across = (fv_axis){ .label = text_in(p, about, "x"), .unit = text_in(p, about, "x_unit") };
    p->up = (fv_axis){ .label = text_in(p, about, "y"), .unit = text_in(p, about, "y_unit") };
    p->colors = (fv_axis){ .label = text_in(p, about, "value"), .unit = text_in(p, about, "value_unit") };
    p->across.log = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(about, "log_x"));
    p->up.log = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(about, "log_y"));
    p->width = POINTS * length_in(about, "width", 120);
    p->height = POINTS * length_in(about, "height", 80);
}

/* ---------------------------------------------------------------- marks */

static void set_name(fv__picture *p, fv__names *all, double place, const char *name) {
    if (!name || !(place >= 0 && place < MOST_NAMES)) return;
    int at = (int)place;
    if (at >= all->count) {
        all->name = fv__realloc(all->name, (size_t)(at + 1) * sizeof *all->name);
        while (all->count <= at) all->name[all->count++] = NULL;
    }
    if (!all->name[at]) all->name[at] = fv__arena_strdup(&p->arena, name);
}

static int series_of(fv__picture *p, const char *name) {
    if (!name) return 0;
    for (int s = p->series.count - 1; s >= 0; s--)
        if (!strcmp(p->series.name[s], name)) return s;
    set_name(p, &p->series, p->series.count, name);
    return p->series.count - 1;
}

static void add_mark(fv__picture *p, const fv_cell *cells) {
    const char *what = cells[MARK].text ? cells[MARK].text : "";
    if (!strcmp(what, "dropped")) {
        p->dropped += cells[VALUE].real;
        return;
    }
    if (!strcmp(what, "series")) {
        series_of(p, cells[SERIES].text);
        return;
    }
    if (p->count == p->room) {
        p->room = FV_MAX(2 * p->room, 1024);
        p->marks = fv__realloc(p->marks, (size_t)p->room * sizeof *p->marks);
    }
    fv__mark *mark = &p->marks[p->count];
    mark->what =
        p->count && !strcmp(p->marks[p->count - 1].what, what) ? p->marks[p->count - 1].what : fv__arena_strdup(&p->arena, what);
    mark->series = series_of(p, cells[SERIES].text);
    mark->x = cells[X].real;
    mark->y = cells[Y].real;
    mark->from = cells[FROM].real;
    mark->to = cells[TO].real;
    mark->value = cells[VALUE].real;
    set_name(p, &p->x_names, mark->x, cells[X_NAME].text);
    set_name(p, &p->y_names, mark->y, cells[Y_NAME].text);
    p->count++;
}

static fv_status load(fv__picture *p, const fv_table_type *type, fv_table_source *source, fv_error *error) {
    const fv_cell *cells;
    int64_t        nrows;
    for (;;) {
        FV_TRY(source->next(source, &cells, &nrows, error));
        if (!nrows) return fv__fault_point("table.rows", error);
        for (int64_t r = 0; r < nrows; r++) add_mark(p, cells + (r + 1) * type->ncolumns - COLUMNS);
    }
}

/* ---------------------------------------------------------------- the format */

static void release(fv__picture *p) {
    free(p->marks);
    free(p->series.name);
    free(p->x_names.name);
    free(p->y_names.name);
    fv__arena_release(&p->arena);
}

static fv_status picture_write(const char *path, const char *existing, const fv_table_type *type, const fv_table_options *options,
                               fv_table_source *source, fv_error *error) {
    fv__picture p = { 0 };
    (void)options;
    FV_TRY(check(existing, type, error));
    cJSON *about = about_of(type);
    take_about(&p, about);
    cJSON_Delete(about);
    fv_status status = load(&p, type, source, error);
    if (status == FV_OK) {
        fv_drawing *drawing = fv__picture_draw(&p);
        status = fv__drawing_write(drawing, path, existing, error);
        fv__drawing_free(drawing);
    }
    release(&p);
    return status;
}

const fv_table_format fv_table_picture = {
    .name = "picture",
    .extensions = "svg png pdf",
    .brief = "a plot as a picture (png and pdf use cairo)",
    .alone = "over = \"item\" in plot() draws all items in one picture",
    .check = check,
    .write = picture_write,
};
