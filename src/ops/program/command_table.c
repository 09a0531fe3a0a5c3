/* command_table: a table that a program of the machine makes of an image. */
#include "base/file.h"
#include "base/program.h"
#include "op/format.h"
#include "op/program_task.h"
#include "op/table_rows.h"
#include <cjson/cJSON.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    FV_PROGRAM_FIELDS;
    const char *columns;
} command_table;

static const fv_param params[] = {
    FV_PROGRAM_COMMAND(command_table),
    FV_PARAM(command_table, output, .def = "csv",
             .doc = "format of the table: \"csv\", \"tsv\", \"json\" (an object, or a list of them), \"jsonl\", or \"txt\" for "
                    "the lines of a text"),
    FV_PARAM(command_table, format, .def = "nii.gz",
             .doc = "format of the files that it gets, such as \"nii.gz\", \"tif\" or \"npy\""),
    FV_PROGRAM_PARAMS(command_table),
    FV_PARAM(
        command_table, columns, .def = "",
        .doc =
            "columns of the table that are wanted, with commas between them: real numbers, or name:text and name:int; left out: "
            "a first run on one item finds them; of a txt they are line and text. \"*\": the result tells which there "
            "are"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { FV_PROGRAM_INPUTS, FV_INPUT_END };

enum { MOST = 16 << 20 }; /* bytes of a table */

static bool is_text(const command_table *p) { return !strcmp(p->output, "txt"); }
static bool tells(const command_table *p) { return p->columns && !strcmp(p->columns, "*"); }
static bool is_json(const command_table *p) { return !strcmp(p->output, "json"); }

/* ---------------------------------------------------------------- columns */

static fv_status add_column(fv_table_type *type, const char *text, size_t length, fv_error *error) {
    static const struct {
        const char    *name;
        fv_column_kind kind;
    } kinds[] = { { "text", FV_COLUMN_TEXT }, { "int", FV_COLUMN_INTEGER }, { "real", FV_COLUMN_REAL } };
    const char *colon = memchr(text, ':', length);
    size_t      name = colon ? (size_t)(colon - text) : length, kind = 2;
    while (name && text[name - 1] == ' ') name--;
    if (!name || name >= sizeof type->column[0].name || type->ncolumns == FV_MAX_COLUMNS)
        return fv_fail(error, FV_ERROR_USAGE, "columns: \"%.*s\" cannot be the name of a column", (int)FV_MIN(length, 60), text);
    if (colon) {
        const char *word = colon + 1 + strspn(colon + 1, " ");
        size_t      n = (size_t)(text + length - word);
        while (n && word[n - 1] == ' ') n--;
        for (kind = 0; kind < 3 && (strlen(kinds[kind].name) != n || strncmp(kinds[kind].name, word, n)); kind++) {
        }
        if (kind == 3)
            return fv_fail(error, FV_ERROR_USAGE, "columns: %.*s: the kind must be text, int or real", (int)length, text);
    }
    fv_column *column = &type->column[type->ncolumns++];
    *column = (fv_column){ .kind = kinds[kind].kind };
    memcpy(column->name, text, name);
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const command_table *p = i->params;
    fv_table_type       *type = fv__arena_alloc(i->arena, sizeof *type);
    const char *names = tells(p) ? "name:text, kind:text" : is_text(p) ? "line:int, text:text" : p->columns ? p->columns : "";
    FV_TRY(fv__program_check(i, p->output, "", error));
    char                  *name = fv__arena_printf(i->arena, "table.%s", p->output);
    const fv_table_format *format = fv__table_format_for(name);
    if (!tells(p) && !is_text(p) && !is_json(p) && (!format || !format->open))
        return fv_fail(error, FV_ERROR_USAGE, "output = \"%s\": a table is csv, tsv, json, jsonl or txt", p->output);
    if (!*names)
        return fv_fail(
            error, FV_ERROR_USAGE,
            "columns are found by a first run, which you have to allow (--allow-commands); to plan it without, say which "
            "ones the table has, such as columns = \"label, area, name:text\"");
    for (const char *at = names; *at;) {
        at += strspn(at, " ");
        size_t length = strcspn(at, ",");
        FV_TRY(add_column(type, at, length, error));
        at += length + (at[length] == ',');
    }
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = type };
    return FV_OK;
}

/* ---------------------------------------------------------------- the program */

static fv_status take(void *context, const char *path, fv_error *error) {
    fv_bytes  text = { 0 };
    fv_status status = fv__file_read_all(path, MOST, &text, error);
    if (status == FV_OK) fv__bytes_append(context, text.data, text.size);
    if (status == FV_OK && !text.size) status = fv_fail(error, FV_ERROR_INPUT, "its table is empty");
    fv__bytes_release(&text);
    return status;
}

static fv_status lines_of_json(fv_bytes *text, fv_error *error);

static fv_status tell_columns(fv_bytes *out, const char *path, fv_error *error) {
    static const char *const kinds[] = { [FV_COLUMN_TEXT] = "text", [FV_COLUMN_INTEGER] = "int", [FV_COLUMN_REAL] = "real" };
    const fv_table_format   *format = fv__table_format_for(path);
    fv_table_reader         *reader;
    FV_TRY(format->open(path, NULL, &reader, error));
    for (int c = 0; c < reader->type.ncolumns; c++)
        fv__bytes_printf(out, "%s\t%s\n", reader->type.column[c].name, kinds[reader->type.column[c].kind]);
    format->close(reader);
    return FV_OK;
}

static fv_status tell_json(fv_bytes *out, const char *path, fv_error *error) {
    char     *lines = fv__sprintf("%sl", path);
    fv_bytes  text = { 0 };
    fv_status status = fv__file_read_all(path, MOST, &text, error);
    if (status == FV_OK) status = lines_of_json(&text, error);
    if (status == FV_OK) status = fv__file_write_all(lines, text.data, text.size, false, error);
    if (status == FV_OK) status = tell_columns(out, lines, error);
    fv__bytes_release(&text);
    free(lines);
    return status;
}

static fv_status tell_image(fv_bytes *out, const char *path, fv_error *error) {
    const fv_format *format;
    fv_read_options  options = { 0 };
    fv_reader       *reader;
    FV_TRY(fv__format_for_reading(path, &format, error));
    FV_TRY(format->open(path, &options, &reader, error));
    fv__bytes_printf(out, "dtype\t\"%s\"\nshape\t[", fv_dtype_name(reader->type.dtype));
    for (int d = 0; d < reader->type.ndim; d++) fv__bytes_printf(out, "%s%lld", d ? ", " : "", (long long)reader->type.shape[d]);
    fv__bytes_printf(out, "]\n");
    format->close(reader);
    return FV_OK;
}

/* What the file holds, line by line. */
static fv_status tell(void *context, const char *path, fv_error *error) {
    const fv_table_format *format = fv__table_format_for(path);
    size_t                 length = strlen(path);
    bool                   json = length > 5 && !strcmp(path + length - 5, ".json");
    fv_status              status = json                     ? tell_json(context, path, error)
                                    : format && format->open ? tell_columns(context, path, error)
                                                             : tell_image(context, path, error);
    if (status != FV_OK && error) fv__error_rename(error, path, "what it made");
    return status;
}

static fv_status run(fv_run *r, fv_error *error) {
    bool asked = tells(r->need.params);
    return fv__program_run_whole(r, asked ? 0 : MOST, asked ? tell : take, error);
}

static size_t bound(const fv_need *n) { return fv__program_is_first(n) ? MOST : 0; }

/* ---------------------------------------------------------------- rows */

static fv_status put_lines(fv_row_writer *writer, char *text, fv_error *error) {
    fv_cell *row;
    for (int64_t line = 1; *text; line++) {
        size_t length = strcspn(text, "\n");
        bool   last = !text[length];
        text[length] = 0;
        FV_TRY(fv__row_writer_next(writer, &row, error));
        row[0].integer = line;
        fv__row_writer_text(writer, &row[1], text);
        text += length + !last;
    }
    return fv__row_writer_flush(writer, error);
}

/* Names and kinds, with a tab between them. */
static fv_status put_told(fv_row_writer *writer, char *text, fv_error *error) {
    fv_cell *row;
    for (char *kind, *next; (kind = strchr(text, '\t')) && (next = strchr(kind, '\n')); text = next + 1) {
        *kind = *next = 0;
        FV_TRY(fv__row_writer_next(writer, &row, error));
        fv__row_writer_text(writer, &row[0], text);
        fv__row_writer_text(writer, &row[1], kind + 1);
    }
    return fv__row_writer_flush(writer, error);
}

/* A JSON object, or a list of them, as lines. */
static fv_status lines_of_json(fv_bytes *text, fv_error *error) {
    cJSON       *root = cJSON_ParseWithLength((const char *)text->data, text->size);
    const cJSON *object;
    fv_status    status = root ? FV_OK : fv_fail(error, FV_ERROR_INPUT, "what it made is not JSON");
    fv__bytes_clear(text);
    cJSON *list = root && cJSON_IsArray(root) ? root : cJSON_CreateArray();
    if (root && list != root) cJSON_AddItemReferenceToArray(list, root);
    cJSON_ArrayForEach(object, list) {
        char *line = cJSON_PrintUnformatted(object);
        if (!cJSON_IsObject(object)) status = fv_fail(error, FV_ERROR_INPUT, "its JSON is no object and no list of objects");
        fv__bytes_printf(text, "%s\n", line);
        free(line);
    }
    if (list != root) cJSON_Delete(list);
    cJSON_Delete(root);
    return status;
}

static fv_status convert(fv_row_writer *writer, const fv_column *to, fv_cell *cell, fv_column_kind kind, fv_cell from,
                         fv_error *error) {
    if (to->kind == kind) {
        fv__row_writer_copy(writer, kind, cell, from);
    } else if (to->kind == FV_COLUMN_REAL && kind == FV_COLUMN_INTEGER) {
        cell->real = fv__cell_missing(kind, from) ? NAN : (double)from.integer;
    } else if (to->kind == FV_COLUMN_TEXT) {
        char text[FV_NUMBER_SIZE] = "";
        if (kind == FV_COLUMN_INTEGER) snprintf(text, sizeof text, "%lld", (long long)from.integer);
        if (kind == FV_COLUMN_REAL) fv__real_format(from.real, text);
        fv__row_writer_text(writer, cell, fv__cell_missing(kind, from) ? NULL : text);
    } else
        return fv_fail(error, FV_ERROR_INPUT, "column %s of its table holds %s; say %s:%s", to->name,
                       kind == FV_COLUMN_TEXT ? "text" : "fractions", to->name, kind == FV_COLUMN_TEXT ? "text" : "real");
    return FV_OK;
}

static fv_status put_rows(fv_row_writer *writer, const fv_table_type *type, fv_table_reader *reader, fv_error *error) {
    const fv_cell *from;
    int64_t        nrows;
    int            columns[FV_MAX_COLUMNS], n = reader->type.ncolumns;
    for (int c = 0; c < type->ncolumns; c++)
        FV_TRY(fv__table_find(&reader->type, "columns", type->column[c].name, &columns[c], error));
    for (;;) {
        FV_TRY(reader->source.next(&reader->source, &from, &nrows, error));
        if (!nrows) return fv__row_writer_flush(writer, error);
        for (; nrows > 0; nrows--, from += n) {
            fv_cell *row;
            FV_TRY(fv__row_writer_next(writer, &row, error));
            for (int c = 0; c < type->ncolumns; c++)
                FV_TRY(convert(writer, &type->column[c], &row[c], reader->type.column[columns[c]].kind, from[columns[c]], error));
        }
    }
}

/* Formats read files, so it becomes one again. */
static fv_status put_table(fv_row_writer *writer, const fv_finish *f, fv_bytes *text, fv_error *error) {
    const command_table *p = f->params;
    fv_program_folder    folder;
    fv_table_reader     *reader;
    if (is_json(p)) FV_TRY(lines_of_json(text, error));
    FV_TRY(fv__program_folder_make(&folder, error));
    char                  *path = fv__sprintf("%s/table.%s", folder.path, is_json(p) ? "jsonl" : p->output);
    const fv_table_format *format = fv__table_format_for(path);
    fv_status              status = fv__file_write_all(path, text->data, text->size, false, error);
    if (status == FV_OK) status = format->open(path, NULL, &reader, error);
    if (status == FV_OK) {
        status = put_rows(writer, f->out->table, reader, error);
        format->close(reader);
    }
    if (status != FV_OK && error) fv__error_rename(error, path, "its table");
    free(path);
    fv__program_folder_remove(&folder);
    return status;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    fv_bytes      text = { 0 };
    fv_row_writer writer;
    fv__row_writer_init(&writer, f);
    fv_status status = fv__program_partial(f, &text, error);
    if (status == FV_OK && tells(f->params)) {
        fv__bytes_append(&text, "", 1);
        status = put_told(&writer, (char *)text.data, error);
    } else if (status == FV_OK && is_text(f->params)) {
        fv__bytes_append(&text, "", 1);
        status = put_lines(&writer, (char *)text.data, error);
    } else if (status == FV_OK)
        status = put_table(&writer, f, &text, error);
    fv__row_writer_release(&writer);
    fv__bytes_release(&text);
    return status;
}

static const fv_pass passes[] = { { .need = fv__program_need_whole, .run = run, .bound = bound, .finish = finish }, FV_PASS_END };

static const fv_column_doc columns[] = {
    { "<columns>", .doc = "those that are named, in this order" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(command_table) = {
    .name = "command_table",
    .family = "program",
    .brief = "a table that any program makes of an image",
    .version = 1,
    .numerics = FV_SAME_CPU,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(command_table),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .identity = fv__program_identity,
    .program = fv__program_needs,
    .columns = columns,
    .doc = "The table is the file {output}, or what the program prints if the command has no {output}; at most 16 MiB. Rows of "
           "a collection carry their item, as those of measure do. See command for how programs run.",
    .example =
        "phantom(\"cells\", [200, 200]) |> command_table(\"od -A n -t u1 -N 48 {input}\", format = \"npy\", output = \"txt\")",
    .see = "command command_number measure",
};
