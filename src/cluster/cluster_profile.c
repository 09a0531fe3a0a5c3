/* What is asked of a cluster: defaults and profiles. */
#include "cluster/cluster_profile.h"
#include "base/file.h"
#include "graph/graph.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum kind { TEXT, WHOLE, REAL, SIZE } kind;

typedef struct field {
    const char *name;
    kind        kind;
    size_t      offset;
    double      min;
} field;

#define FIELD(name, kind, min)                                                                                                   \
    { #name, kind, offsetof(fv_profile, name), min }

static const field fields[] = {
    FIELD(partition, TEXT, 0),   FIELD(account, TEXT, 0),    FIELD(qos, TEXT, 0),         FIELD(constraint, TEXT, 0),
    FIELD(reservation, TEXT, 0), FIELD(time, TEXT, 0),       FIELD(gres, TEXT, 0),        FIELD(mail_user, TEXT, 0),
    FIELD(modules, TEXT, 0),     FIELD(setup, TEXT, 0),      FIELD(environment, TEXT, 0), FIELD(mpi, TEXT, 0),
    FIELD(order, TEXT, 0),       FIELD(cpus, WHOLE, 1),      FIELD(memory, SIZE, 1),      FIELD(nodes, WHOLE, 1),
    FIELD(array, WHOLE, 1),      FIELD(at_once, WHOLE, 0),   FIELD(minimum, REAL, 0),     FIELD(work, REAL, 0),
    FIELD(level, WHOLE, 0),      FIELD(overwrite, WHOLE, 0),
};

fv_profile fv__profile_default(void) {
    return (fv_profile){ .order = "memory", .cpus = 1, .nodes = 1, .array = 100, .minimum = 60 };
}

void fv__profile_release(fv_profile *profile) { fv__arena_release(&profile->arena); }

static void format_text(const char *text, fv_bytes *out) {
    fv__bytes_printf(out, "\"");
    for (; *text; text++) fv__bytes_printf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    fv__bytes_printf(out, "\"\n");
}

void fv__profile_format(const fv_profile *profile, fv_bytes *out) {
    for (int i = 0; i < FV_COUNT(fields); i++) {
        const void *place = (const char *)profile + fields[i].offset;
        const char *text = fields[i].kind == TEXT ? *(const char *const *)place : NULL;
        int64_t     whole = fields[i].kind == WHOLE || fields[i].kind == SIZE ? *(const int64_t *)place : 0;
        if (fields[i].kind == TEXT ? !text : fields[i].kind == REAL ? false : !whole) continue;
        fv__bytes_printf(out, "param %s = ", fields[i].name);
        if (text)
            format_text(text, out);
        else if (fields[i].kind == SIZE)
            fv__bytes_printf(out, "\"%lldM\"\n", (long long)(whole >> 20));
        else if (fields[i].kind == WHOLE)
            fv__bytes_printf(out, "%lld\n", (long long)whole);
        else
            fv__bytes_printf(out, "%.9g\n", *(const double *)place);
    }
}

static const field *find_field(const char *name, const char **near) {
    const char *names[FV_COUNT(fields)];
    for (int i = 0; i < FV_COUNT(fields); i++) {
        if (!strcmp(fields[i].name, name)) return &fields[i];
        names[i] = fields[i].name;
    }
    *near = fv_nearest_word(name, names, FV_COUNT(fields));
    return NULL;
}

static fv_status set_field(fv_profile *profile, const field *f, const fv_literal *value, const char *file, fv_error *error) {
    void *place = (char *)profile + f->offset;
    if (f->kind == TEXT || f->kind == SIZE) {
        if (value->kind != FV_LITERAL_TEXT)
            return fv_fail(error, FV_ERROR_USAGE, "%s: param %s needs a text in quotes", file, f->name);
        if (strchr(value->text, '\n')) return fv_fail(error, FV_ERROR_USAGE, "%s: param %s must be one line", file, f->name);
        if (f->kind == TEXT)
            *(const char **)place = fv__arena_strdup(&profile->arena, value->text);
        else if (!fv_size_parse(value->text, place) || *(const int64_t *)place <= 0)
            return fv_fail(error, FV_ERROR_USAGE, "%s: param %s = \"%s\": expected a size as \"512M\" or \"4G\"", file, f->name,
                           value->text);
        return FV_OK;
    }
    bool whole = value->kind == FV_LITERAL_NUMBER && value->number == (double)(int64_t)value->number;
    if (value->kind != FV_LITERAL_NUMBER || value->number < f->min || (f->kind == WHOLE && !whole))
        return fv_fail(error, FV_ERROR_USAGE, "%s: param %s needs a %snumber of at least %g", file, f->name,
                       f->kind == WHOLE ? "whole " : "", f->min);
    if (f->kind == WHOLE)
        *(int64_t *)place = (int64_t)value->number;
    else
        *(double *)place = value->number;
    return FV_OK;
}

static fv_status read_statement(fv_profile *profile, const char *file, const fv_statement *statement, fv_error *error) {
    const char *near = NULL;
    fv_literal  value;
    if (statement->kind != FV_STATEMENT_PARAM)
        return fv_fail(error, FV_ERROR_USAGE, "%s:%d: a profile holds lines `param NAME = VALUE` only", file,
                       statement->value->span.line);
    const field *f = find_field(statement->name, &near);
    if (!f)
        return fv_fail(error, FV_ERROR_USAGE, "%s:%d: a profile has no param %s%s%s%s", file, statement->name_span.line,
                       statement->name, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    if (!fv__expr_literal(statement->value, &value, &profile->arena))
        return fv_fail(error, FV_ERROR_USAGE, "%s:%d: param %s needs a plain value", file, statement->name_span.line,
                       statement->name);
    return set_field(profile, f, &value, file, error);
}

fv_status fv__profile_read(fv_profile *profile, const char *file, const char *text, fv_error *error) {
    fv_diagnostics diagnostics = { 0 };
    fv_program    *program = fv__program_parse(file, text, &diagnostics);
    fv_status      status = FV_OK;
    if (diagnostics.count) {
        fv_bytes message = { 0 };
        fv__diagnostics_format(&diagnostics, file, text, &message);
        fv__bytes_append(&message, "", 1);
        status = fv_fail(error, FV_ERROR_USAGE, "%.900s", (char *)message.data);
        fv__bytes_release(&message);
    }
    for (int i = 0; i < program->nstatements && status == FV_OK; i++)
        status = read_statement(profile, file, &program->statements[i], error);
    static const char *const orders[] = { "fifo", "longest", "memory" };
    bool                     known = false;
    for (int i = 0; i < FV_COUNT(orders); i++) known = known || !strcmp(profile->order, orders[i]);
    if (status == FV_OK && !known)
        status =
            fv_fail(error, FV_ERROR_USAGE, "%s: param order = \"%s\": expected fifo, longest or memory", file, profile->order);
    fv__diagnostics_release(&diagnostics);
    fv__program_free(program);
    return status;
}

void fv__settings_folders(char *folders[2]) {
    const char *site = getenv("FOVEA_SITE"), *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    folders[0] = fv__strdup(site && *site ? site : "/etc/fovea");
    folders[1] = config && *config ? fv__sprintf("%s/fovea", config) : fv__sprintf("%s/.config/fovea", home ? home : "");
}

fv_status fv__profile_load(fv_profile *profile, const char *name, fv_error *error) {
    char     *folders[2];
    bool      found = false;
    fv_status status = FV_OK;
    fv__settings_folders(folders);
    if (name && (strchr(name, '/') || !*name))
        status = fv_fail(error, FV_ERROR_USAGE, "--profile %s: expected the name of a file in %s/profiles, without .fov", name,
                         folders[1]);
    for (int i = 0; i < FV_COUNT(folders) && status == FV_OK; i++) {
        char    *path = fv__sprintf("%s/profiles/%s.fov", folders[i], name ? name : "default");
        fv_bytes text = { 0 };
        if (fv__file_exists(path)) {
            found = true;
            status = fv__file_read_all(path, 1 << 20, &text, error);
            if (status == FV_OK) status = fv__profile_read(profile, path, (char *)text.data, error);
        }
        fv__bytes_release(&text);
        free(path);
    }
    if (status == FV_OK && name && !found)
        status = fv_fail(error, FV_ERROR_USAGE, "--profile %s: there is neither %s/profiles/%s.fov nor %s/profiles/%s.fov", name,
                         folders[1], name, folders[0], name);
    for (int i = 0; i < FV_COUNT(folders); i++) free(folders[i]);
    return status;
}
