/* What this build can do: lists of operators and formats, and the description of any one by name. */
#include "api/describe_ops.h"
#include "api/paragraph.h"
#include "lang/ast.h"
#include "op/familiar.h"
#include <fovea/describe.h>
#include <stdio.h>
#include <stdlib.h>

const char *fv_version(void) { return FV_VERSION; }

/* ---------------------------------------------------------------- lists */

/* "add (+)" */
static void op_label(const fv_op *op, char label[64]) {
    const char *sign = op->sign;
    snprintf(label, 64, sign ? "%s (%s)" : "%s", op->name, sign);
}

static int label_width(void) {
    int  width = 0;
    char label[64];
    for (int i = 0; i < fv__op_count(); i++) {
        op_label(fv__op_at(i), label);
        width = FV_MAX(width, (int)strlen(label));
    }
    return width;
}

typedef bool chosen(const fv_op *op, const char *word);

static bool is_of_family(const fv_op *op, const char *family) { return !family || !strcmp(op->family, family); }

static bool speaks_of(const fv_op *op, const char *word) {
    return strcasestr(op->name, word) || strcasestr(op->brief, word) || (op->also && strcasestr(op->also, word));
}

/* The operators chosen by a word. Returns how many there were. */
static int put_ops(chosen *is_chosen, const char *word, fv_bytes *out) {
    int         width = label_width(), count = 0;
    const char *last = "";
    for (int i = 0; i < fv__op_count(); i++) {
        const fv_op *op = fv__op_at(i);
        char         label[64];
        if (!is_chosen(op, word)) continue;
        if (strcmp(op->family, last)) fv__bytes_printf(out, "%s%s\n", count ? "\n" : "", op->family);
        last = op->family;
        op_label(op, label);
        fv__put_entry(out, label, width, op->brief);
        count++;
    }
    return count;
}

static void put_formats(fv_bytes *out) {
    int width = label_width();
    if (fv__format_count()) fv__bytes_printf(out, "\nimage files\n");
    for (int i = 0; i < fv__format_count(); i++) {
        const fv_format *format = fv__format_at(i);
        char *text = fv__sprintf("%s (%s)", format->brief, format->layout ? format->open ? "read, write" : "write" : "read");
        fv__put_entry(out, format->name, width, text);
        free(text);
    }
    if (fv__table_format_count()) fv__bytes_printf(out, "\ntable files\n");
    for (int i = 0; i < fv__table_format_count(); i++)
        fv__put_entry(out, fv__table_format_at(i)->name, width, fv__table_format_at(i)->brief);
}

static char *print_json(cJSON *json) { /* consumes it */
    char *text = cJSON_Print(json);
    cJSON_Delete(json);
    return text;
}

static cJSON *all_json(void) {
    cJSON *json = cJSON_CreateObject(), *ops = cJSON_CreateArray(), *formats = cJSON_CreateArray(), *tables = cJSON_CreateArray();
    for (int i = 0; i < fv__op_count(); i++) cJSON_AddItemToArray(ops, fv__op_json(fv__op_at(i)));
    for (int i = 0; i < fv__format_count(); i++) cJSON_AddItemToArray(formats, fv__format_json(fv__format_at(i)));
    for (int i = 0; i < fv__table_format_count(); i++)
        cJSON_AddItemToArray(tables, fv__table_format_json(fv__table_format_at(i)));
    cJSON_AddStringToObject(json, "version", fv_version());
    cJSON_AddItemToObject(json, "operators", ops);
    cJSON_AddItemToObject(json, "formats", formats);
    cJSON_AddItemToObject(json, "tables", tables);
    return json;
}

char *fv_describe_all(fv_form form) {
    fv_bytes out = { 0 };
    if (form == FV_FORM_JSON) return print_json(all_json());
    put_ops(is_of_family, NULL, &out);
    put_formats(&out);
    return fv__take_text(&out);
}

/* ---------------------------------------------------------------- by name */

static bool describe_format(const char *name, fv_form form, char **text) {
    fv_bytes out = { 0 };
    for (int i = 0; i < fv__format_count(); i++) {
        const fv_format *format = fv__format_at(i);
        if (strcmp(format->name, name)) continue;
        if (form == FV_FORM_TEXT) fv__format_text(format, &out);
        *text = form == FV_FORM_JSON ? print_json(fv__format_json(format)) : fv__take_text(&out);
        return true;
    }
    for (int i = 0; i < fv__table_format_count(); i++) {
        const fv_table_format *format = fv__table_format_at(i);
        if (strcmp(format->name, name)) continue;
        if (form == FV_FORM_TEXT) fv__table_format_text(format, &out);
        *text = form == FV_FORM_JSON ? print_json(fv__table_format_json(format)) : fv__take_text(&out);
        return true;
    }
    return false;
}

static bool describe_some(chosen *is_chosen, const char *word, fv_form form, char **text) {
    fv_bytes out = { 0 };
    if (!put_ops(is_chosen, word, &out)) {
        fv__bytes_release(&out);
        return false;
    }
    if (form == FV_FORM_TEXT) {
        *text = fv__take_text(&out);
        return true;
    }
    fv__bytes_release(&out);
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < fv__op_count(); i++)
        if (is_chosen(fv__op_at(i), word)) cJSON_AddItemToArray(list, fv__op_json(fv__op_at(i)));
    *text = print_json(list);
    return true;
}

static fv_status unknown_name(const char *name, fv_error *error) {
    int          nops = fv__op_count(), nformats = fv__format_count(), ntables = fv__table_format_count(), count = 0;
    const char **names = fv__alloc((size_t)(2 * nops + nformats + ntables + 1) * sizeof *names);
    for (int i = 0; i < nops; i++) names[count++] = fv__op_at(i)->name;
    for (int i = 0; i < nformats; i++) names[count++] = fv__format_at(i)->name;
    for (int i = 0; i < ntables; i++) names[count++] = fv__table_format_at(i)->name;
    for (int i = 0; i < nops; i++) names[count++] = fv__op_at(i)->family;
    const char *near = fv_nearest_word(name, names, count);
    char       *hint = fv__familiar_hint(name);
    free(names);
    if (hint)
        fv_fail(error, FV_ERROR_USAGE, "%s: no such operator: %s", name, hint);
    else
        fv_fail(error, FV_ERROR_USAGE, "%s: no such operator, family or format%s%s%s", name, near ? "; did you mean " : "",
                near ? near : "", near ? "?" : "");
    free(hint);
    return FV_ERROR_USAGE;
}

static bool describe_op(const fv_op *op, const char *name, fv_form form, char **text) {
    fv_bytes out = { 0 };
    if (!op) return false;
    if (form == FV_FORM_TEXT && strcmp(op->name, name)) fv__bytes_printf(&out, "%s is called %s here.\n\n", name, op->name);
    if (form == FV_FORM_TEXT) fv__op_text(op, &out);
    *text = form == FV_FORM_JSON ? print_json(fv__op_json(op)) : fv__take_text(&out);
    return true;
}

fv_status fv_describe_name(const char *name, fv_form form, char **text, fv_error *error) {
    *text = NULL;
    bool known = describe_op(fv__op_find(name), name, form, text) || describe_format(name, form, text) ||
                 describe_some(is_of_family, name, form, text) || describe_op(fv__op_known_as(name), name, form, text) ||
                 (strlen(name) > 2 && describe_some(speaks_of, name, form, text));
    return known ? FV_OK : unknown_name(name, error);
}
