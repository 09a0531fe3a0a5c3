/* Units of files and of tables. */
#include "units/unit_list.h"
#include "base/child.h"
#include "base/file.h"
#include "base/hash_table.h"
#include "base/number.h"
#include "op/format.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- names and values */

static void set_names(fv_unit_list *list, const char *const *names, int count) {
    list->nnames = count;
    list->names = fv__arena_alloc(&list->arena, (size_t)(count + 1) * sizeof *list->names);
    list->names_and_output = fv__arena_alloc(&list->arena, (size_t)(count + 2) * sizeof *list->names);
    for (int i = 0; i < count; i++) list->names_and_output[i] = list->names[i] = fv__arena_strdup(&list->arena, names[i]);
    list->names_and_output[count] = "output";
}

static int find_column(const fv_unit_list *list, const char *name) {
    for (int i = 0; i < list->nnames; i++)
        if (!strcmp(list->names[i], name)) return i;
    return -1;
}

static void take_files(const fv_units_options *o, fv_unit_list *list) {
    static const char *const names[] = { "", "name", "stem", "folder", "index" };
    set_names(list, names, FV_COUNT(names));
    list->count = o->nfiles;
    list->units = fv__arena_alloc(&list->arena, (size_t)FV_MAX(o->nfiles, 1) * sizeof *list->units);
    for (int64_t u = 0; u < o->nfiles; u++) {
        const char  *file = o->files[u], *name = fv__path_name(file);
        const char **values = fv__arena_alloc(&list->arena, FV_COUNT(names) * sizeof *values);
        char         stem[512];
        fv__path_stem(file, stem, sizeof stem);
        values[0] = *file == '-' && fv__file_exists(file) ? fv__arena_printf(&list->arena, "./%s", file)
                                                          : fv__arena_strdup(&list->arena, file);
        values[1] = fv__arena_strdup(&list->arena, name);
        values[2] = fv__arena_strdup(&list->arena, stem);
        values[3] = name > file + 1 ? fv__arena_strndup(&list->arena, file, (size_t)(name - file) - 1) : ".";
        values[4] = fv__arena_printf(&list->arena, "%lld", (long long)u);
        list->units[u] = (fv_unit){ .values = values, .name = values[0] };
    }
}

static const char *cell_text(fv_arena *arena, fv_cell cell, fv_column_kind kind) {
    char text[FV_NUMBER_SIZE];
    if (kind == FV_COLUMN_TEXT) return fv__arena_strdup(arena, cell.text ? cell.text : "");
    if (kind == FV_COLUMN_REAL && isnan(cell.real)) return "";
    if (kind == FV_COLUMN_REAL)
        fv__real_format(cell.real, text);
    else if (kind == FV_COLUMN_NATURAL)
        fv__natural_format(cell.natural, text);
    else
        fv__integer_format(cell.integer, text);
    return fv__arena_strdup(arena, text);
}

static void take_row(fv_unit_list *list, const fv_table_type *type, const fv_cell *cells) {
    const char **values = fv__arena_alloc(&list->arena, (size_t)(type->ncolumns + 1) * sizeof *values);
    for (int c = 0; c < type->ncolumns; c++) values[c] = cell_text(&list->arena, cells[c], type->column[c].kind);
    values[type->ncolumns] = fv__arena_printf(&list->arena, "%lld", (long long)list->count);
    list->units[list->count++] = (fv_unit){ .values = values, .name = values[type->ncolumns] };
}

static fv_status take_rows(fv_table_reader *reader, fv_unit_list *list, fv_error *error) {
    const char    *names[FV_MAX_COLUMNS + 1];
    const fv_cell *cells;
    int64_t        nrows = 1;
    int            ncolumns = reader->type.ncolumns;
    for (int c = 0; c < ncolumns; c++) names[c] = reader->type.column[c].name;
    names[ncolumns] = "index";
    set_names(list, names, ncolumns + 1);
    list->units = fv__arena_alloc(&list->arena, (size_t)FV_MAX(reader->nrows, 1) * sizeof *list->units);
    while (nrows) {
        FV_TRY(reader->source.next(&reader->source, &cells, &nrows, error));
        for (int64_t r = 0; r < nrows && list->count < reader->nrows; r++) take_row(list, &reader->type, cells + r * ncolumns);
    }
    return FV_OK;
}

static fv_status take_table(const char *path, fv_unit_list *list, fv_error *error) {
    const fv_table_format *format;
    fv_table_reader       *reader;
    FV_TRY(fv__table_format_for_reading(path, &format, error));
    FV_TRY(format->open(path, NULL, &reader, error));
    fv_status status = take_rows(reader, list, error);
    format->close(reader);
    return status;
}

/* ---------------------------------------------------------------- what units ask for */

static fv_status need_column(const fv_unit_list *list, const char *option, const char *name, int *column, fv_error *error) {
    *column = find_column(list, name);
    if (*column >= 0) return FV_OK;
    const char *near = fv_nearest_word(name, list->names, list->nnames);
    return fv_fail(error, FV_ERROR_USAGE, "--%s %s: there is no column of this name%s%s%s", option, name, near ? "; is " : "",
                   near ? near : "", near ? " meant?" : "");
}

typedef bool (*parse_fn)(const char *text, void *value);
static bool parse_cpus(const char *text, void *value) {
    char     *end;
    long long n = strtoll(text, &end, 10);
    *(int64_t *)value = n;
    return end != text && !*end && n >= 1 && n <= 1 << 20;
}
static bool parse_memory(const char *text, void *value) { return fv_size_parse(text, value) && *(int64_t *)value > 0; }
static bool parse_limit(const char *text, void *value) { return fv_time_parse(text, value) && *(double *)value > 0; }

/* One value for all units, or the column that has one for each; nothing in a cell leaves what was there. */
static fv_status take_request(fv_unit_list *list, const char *option, const char *text, size_t offset, parse_fn parse,
                              const char *wanted, fv_error *error) {
    union {
        int64_t integer;
        double  real;
    } all;
    int column = -1;
    if (!text) return FV_OK;
    if (!parse(text, &all)) {
        column = find_column(list, text);
        if (column < 0)
            return fv_fail(error, FV_ERROR_USAGE, "--%s %s: expected %s, or the name of a column", option, text, wanted);
    }
    for (int64_t u = 0; u < list->count; u++) {
        void       *field = (char *)&list->units[u] + offset;
        const char *own = column < 0 ? text : list->units[u].values[column];
        if (*own && !parse(own, field))
            return fv_fail(error, FV_ERROR_INPUT, "row %lld has \"%s\" in its column %s; expected %s", (long long)u, own, text,
                           wanted);
    }
    return FV_OK;
}

static fv_status take_names(const fv_units_options *o, fv_unit_list *list, fv_error *error) {
    int column;
    if (o->name) {
        FV_TRY(need_column(list, "name", o->name, &column, error));
        for (int64_t u = 0; u < list->count; u++) list->units[u].name = list->units[u].values[column];
    }
    if (o->by) {
        FV_TRY(need_column(list, "by", o->by, &column, error));
        for (int64_t u = 0; u < list->count; u++) list->units[u].group = list->units[u].values[column];
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- order of units */

typedef struct named {
    const char *name;
    int         unit;
} named;

static int by_name(const void *a, const void *b) { return strcmp(((const named *)a)->name, ((const named *)b)->name); }

static fv_status find_after(fv_unit_list *list, const named *sorted, fv_unit *unit, const char *text, fv_error *error) {
    int room = 1;
    for (const char *c = text; *c; c++) room += *c == ' ' || *c == ',';
    unit->after = fv__arena_alloc(&list->arena, (size_t)room * sizeof *unit->after);
    while (*text) {
        size_t length = strcspn(text, " ,");
        if (length) {
            named  wanted = { fv__arena_strndup(&list->arena, text, length), 0 };
            named *found = bsearch(&wanted, sorted, (size_t)list->count, sizeof *sorted, by_name);
            if (!found)
                return fv_fail(error, FV_ERROR_INPUT, "unit %s comes after %s, and there is no unit of this name", unit->name,
                               wanted.name);
            unit->after[unit->nafter++] = found->unit;
        }
        text += length + (text[length] != 0);
    }
    return FV_OK;
}

/* A circle is found by taking away units whose predecessors are all gone, until none is left. */
static fv_status check_circles(const fv_unit_list *list, fv_error *error) {
    int    *left = fv__calloc((size_t)FV_MAX(list->count, 1) * sizeof *left);
    int64_t gone = 0, before = -1;
    while (gone != before) {
        before = gone;
        for (int64_t u = 0; u < list->count; u++) {
            bool free_now = !left[u];
            for (int i = 0; i < list->units[u].nafter && free_now; i++) free_now = left[list->units[u].after[i]] != 0;
            if (free_now) left[u] = 1, gone++;
        }
    }
    int64_t stuck = 0;
    while (stuck < list->count && left[stuck]) stuck++;
    free(left);
    if (stuck == list->count) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT, "unit %s waits for itself, through the units that it comes after",
                   list->units[stuck].name);
}

static fv_status take_after(const fv_units_options *o, fv_unit_list *list, fv_error *error) {
    named    *sorted = fv__calloc((size_t)FV_MAX(list->count, 1) * sizeof *sorted);
    int       column = -1;
    fv_status status = FV_OK;
    for (int64_t u = 0; u < list->count; u++) sorted[u] = (named){ list->units[u].name, (int)u };
    qsort(sorted, (size_t)list->count, sizeof *sorted, by_name);
    for (int64_t u = 1; u < list->count && status == FV_OK; u++)
        if (!strcmp(sorted[u - 1].name, sorted[u].name))
            status = fv_fail(error, FV_ERROR_INPUT, "two units are called %s", sorted[u].name);
    if (status == FV_OK && o->after) status = need_column(list, "after", o->after, &column, error);
    for (int64_t u = 0; column >= 0 && u < list->count && status == FV_OK; u++)
        status = find_after(list, sorted, &list->units[u], list->units[u].values[column], error);
    free(sorted);
    return status == FV_OK && column >= 0 ? check_circles(list, error) : status;
}

/* ---------------------------------------------------------------- words and keys */

char *fv__unit_output(const fv_unit_list *list, const fv_unit *unit) {
    return list->output ? fv__words_fill(list->output, list->names, unit->values, false) : NULL;
}

char *fv__unit_temporary(const char *output, const fv_unit *unit) {
    char        hex[33];
    const char *name = fv__path_name(output);
    fv__hash_format(unit->key, hex);
    return fv__sprintf("%.*s.%.12s.fovea.%s", (int)(name - output), output, hex, name);
}

static const char **values_with(const fv_unit_list *list, const fv_unit *unit, const char *output) {
    const char **values = fv__calloc((size_t)(list->nnames + 1) * sizeof *values);
    memcpy(values, unit->values, (size_t)list->nnames * sizeof *values);
    values[list->nnames] = output ? output : "";
    return values;
}

char **fv__unit_words(const fv_unit_list *list, const fv_unit *unit, const char *temporary) {
    const char **values = values_with(list, unit, temporary);
    char       **words = fv__words_make(&list->command, list->names_and_output, values);
    free(values);
    return words;
}

static bool plain(const char *word) {
    if (!*word) return false;
    for (; *word; word++)
        if (!isalnum((unsigned char)*word) && !strchr("_-+=.,:/@%", *word) && !(*word & 0x80)) return false;
    return true;
}

char *fv__unit_command(const fv_unit_list *list, const fv_unit *unit) {
    static const char *const one[] = { "word", NULL };
    char                    *output = fv__unit_output(list, unit);
    char                   **words = fv__unit_words(list, unit, output);
    fv_bytes                 text = { 0 };
    if (list->command.shell) {
        fv__bytes_printf(&text, "%s", words[2]);
    } else {
        for (int i = 0; words[i]; i++) {
            const char *value[] = { words[i] };
            char       *shown = fv__words_fill("{word}", one, value, !plain(words[i]));
            fv__bytes_printf(&text, "%s%s", i ? " " : "", shown);
            free(shown);
        }
    }
    fv__bytes_append(&text, "", 1);
    fv__words_free(words);
    free(output);
    return (char *)text.data;
}

/* What a program is: its bytes. Words of the template that name files belong to it, as a script that an interpreter runs. */
static void hash_program(const fv_unit_list *list, fv_hasher *hasher) {
    for (int i = 0; i < list->command.nwords; i++) {
        fv_file_id id;
        fv__hasher_text(hasher, list->command.words[i]);
        if (strchr(list->command.words[i], '{') || fv__path_is_folder(list->command.words[i])) continue;
        char *program = i ? NULL : fv__executable_find(list->command.words[0]);
        if (fv__file_identify(program ? program : list->command.words[i], &id, NULL) == FV_OK) {
            fv__hasher_int(hasher, id.size);
            fv__hasher_int(hasher, id.mtime_ns);
        }
        free(program);
    }
}

static int by_key(const void *a, const void *b) {
    const fv_unit *s = *(fv_unit *const *)a, *t = *(fv_unit *const *)b;
    int            order = memcmp(&s->key, &t->key, sizeof s->key);
    return order ? order : s < t ? -1 : s > t;
}

/* Units of the same words are told apart by their order: the second, the third ... */
static void number_equal_keys(fv_unit_list *list) {
    fv_unit **sorted = fv__calloc((size_t)FV_MAX(list->count, 1) * sizeof *sorted);
    for (int64_t u = 0; u < list->count; u++) sorted[u] = &list->units[u];
    qsort(sorted, (size_t)list->count, sizeof *sorted, by_key);
    for (int64_t i = 1, first = 0; i < list->count; i++) {
        if (memcmp(&sorted[i]->key, &sorted[first]->key, sizeof(fv_hash)))
            first = i;
        else
            sorted[i]->key.low += (uint64_t)(i - first);
    }
    free(sorted);
}

static void set_keys(fv_unit_list *list, bool files) {
    fv_hasher program;
    fv__hasher_init(&program);
    hash_program(list, &program);
    fv_hash base = fv__hasher_finish(&program);
    for (int64_t u = 0; u < list->count; u++) {
        fv_unit   *unit = &list->units[u];
        fv_hasher  hasher;
        fv_file_id id = { 0 };
        char      *output = fv__unit_output(list, unit);
        char     **words = fv__unit_words(list, unit, output);
        fv__hasher_init(&hasher);
        fv__hasher_add(&hasher, &base, sizeof base);
        for (int i = 0; words[i]; i++) fv__hasher_text(&hasher, words[i]);
        if (unit->ranks > 1) fv__hasher_int(&hasher, unit->ranks);
        if (files && fv__file_identify(unit->values[0], &id, NULL) == FV_OK) {
            fv__hasher_int(&hasher, id.size);
            fv__hasher_int(&hasher, id.mtime_ns);
        }
        unit->key = fv__hasher_finish(&hasher);
        fv__words_free(words);
        free(output);
    }
    number_equal_keys(list);
}

/* ---------------------------------------------------------------- all of it */

static fv_status check_program(const fv_unit_list *list, fv_error *error) {
    const char *word = list->command.words[0];
    if (list->command.shell || strchr(word, '{')) return FV_OK;
    char *path = fv__executable_find(word);
    bool  found = path != NULL;
    free(path);
    return found ? FV_OK : fv_fail(error, FV_ERROR_USAGE, "there is no program %s; the command's first word must be one", word);
}

static fv_status check_outputs(const fv_unit_list *list, fv_error *error) {
    fv_status status = FV_OK;
    char    **names = fv__calloc((size_t)FV_MAX(list->count, 1) * sizeof *names);
    named    *sorted = fv__calloc((size_t)FV_MAX(list->count, 1) * sizeof *sorted);
    for (int64_t u = 0; u < list->count; u++) {
        names[u] = fv__unit_output(list, &list->units[u]);
        sorted[u] = (named){ names[u], (int)u };
    }
    qsort(sorted, (size_t)list->count, sizeof *sorted, by_name);
    for (int64_t u = 0; u < list->count && status == FV_OK; u++)
        if (!*sorted[u].name)
            status = fv_fail(error, FV_ERROR_INPUT, "the output of unit %s has no name", list->units[sorted[u].unit].name);
        else if (u && !strcmp(sorted[u - 1].name, sorted[u].name))
            status = fv_fail(error, FV_ERROR_USAGE, "two units would make %s; --output must name another file for each",
                             sorted[u].name);
    for (int64_t u = 0; u < list->count; u++) free(names[u]);
    free(names);
    free(sorted);
    return status;
}

fv_status fv__unit_list_make(const fv_units_options *o, fv_unit_list *list, fv_error *error) {
    *list = (fv_unit_list){ .output = o->output };
    if (o->from)
        FV_TRY(take_table(o->from, list, error));
    else
        take_files(o, list);
    if (list->count > INT32_MAX) return fv_fail(error, FV_ERROR_INPUT, "%lld units are too many", (long long)list->count);
    if (!o->shell) FV_TRY(fv__words_check_signs(o->command, error));
    FV_TRY(fv__words_parse(o->command, o->shell, list->names_and_output, &list->command, error));
    if (o->output) FV_TRY(fv__words_check(o->output, list->names, error));
    if (!o->output && strstr(o->command, "{output}"))
        return fv_fail(error, FV_ERROR_USAGE, "{output} needs --output, which says what file a unit makes");
    if (o->output && !strstr(o->command, "{output}"))
        return fv_fail(error, FV_ERROR_USAGE, "--output needs the word {output} in the command, where it takes its place");
    FV_TRY(check_program(list, error));
    for (int64_t u = 0; u < list->count; u++) list->units[u].cpus = list->units[u].ranks = 1;
    FV_TRY(take_request(list, "cpus", o->cpus, offsetof(fv_unit, cpus), parse_cpus, "a number of processors", error));
    FV_TRY(take_request(list, "memory", o->memory, offsetof(fv_unit, memory), parse_memory, "a size such as 2G", error));
    FV_TRY(take_request(list, "time", o->time, offsetof(fv_unit, limit), parse_limit, "a time such as 30s or 10m", error));
    FV_TRY(take_request(list, "ranks", o->ranks, offsetof(fv_unit, ranks), parse_cpus, "a number of ranks", error));
    FV_TRY(take_request(list, "device", o->device, offsetof(fv_unit, device), parse_memory, "a size such as 1G", error));
    for (int64_t u = 0; u < list->count; u++) list->units[u].cpus *= list->units[u].ranks;
    FV_TRY(take_names(o, list, error));
    FV_TRY(take_after(o, list, error));
    if (o->output) FV_TRY(check_outputs(list, error));
    set_keys(list, !o->from);
    return FV_OK;
}

void fv__unit_list_release(fv_unit_list *list) {
    fv__words_release(&list->command);
    fv__arena_release(&list->arena);
}
