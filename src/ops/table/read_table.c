/* read_table: a table from a file. What read is for table files. */
#include "op/table_parts.h"
#include "op/table_rows.h"

typedef struct {
    const char *file;
    const char *table;
} read_table;

static const fv_param params[] = {
    FV_PARAM(read_table, file, .file = true,
             .doc = "name of the file: CSV, TSV, JSON lines, Parquet, an SQLite database; or a folder of parts"),
    FV_PARAM(read_table, table, .def = "", .from = "path",
             .doc = "table in a database; left out: the one named like the file, or the only "
                    "one"),
    FV_PARAM_END,
};

static fv_status open_table(const read_table *p, fv_table_reader **reader, fv_error *error) {
    const fv_table_format *format;
    fv_file_id             id;
    FV_TRY(fv__file_identify(p->file, &id, error));
    FV_TRY(fv__table_format_for_reading(p->file, &format, error));
    return format->open(p->file, p->table && *p->table ? p->table : NULL, reader, error);
}

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_table_type   *type = fv__arena_alloc(i->arena, sizeof *type);
    fv_table_reader *reader;
    FV_TRY(open_table(i->params, &reader, error));
    *type = reader->type;
    if (type->metadata) type->metadata = fv__arena_strdup(i->arena, type->metadata);
    reader->format->close(reader);
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = type };
    return FV_OK;
}

static fv_status identity(const void *params_, fv_hasher *hasher, fv_error *error) {
    return fv__table_identify(((const read_table *)params_)->file, hasher, error);
}

static bool same_type(const fv_table_type *a, const fv_table_type *b) {
    bool same = a->ncolumns == b->ncolumns;
    for (int c = 0; same && c < a->ncolumns; c++)
        same = a->column[c].kind == b->column[c].kind && !strcmp(a->column[c].name, b->column[c].name);
    return same;
}

static fv_status copy_rows(fv_row_writer *writer, fv_table_reader *reader, fv_error *error) {
    const fv_cell *from;
    int64_t        nrows;
    int            n = reader->type.ncolumns;
    for (;;) {
        FV_TRY(reader->source.next(&reader->source, &from, &nrows, error));
        if (!nrows) return fv__row_writer_flush(writer, error);
        for (; nrows > 0; nrows--, from += n) {
            fv_cell *row;
            FV_TRY(fv__row_writer_next(writer, &row, error));
            for (int c = 0; c < n; c++) fv__row_writer_copy(writer, reader->type.column[c].kind, &row[c], from[c]);
        }
    }
}

static fv_status finish(fv_finish *f, fv_error *error) {
    const read_table *p = f->params;
    fv_table_reader  *reader;
    fv_row_writer     writer;
    FV_TRY(open_table(p, &reader, error));
    fv__row_writer_init(&writer, f);
    fv_status status = same_type(&reader->type, f->out->table)
                           ? copy_rows(&writer, reader, error)
                           : fv_fail(error, FV_ERROR_INPUT, "%s was changed while it was read", p->file);
    fv__row_writer_release(&writer);
    reader->format->close(reader);
    return status;
}

static const fv_pass passes[] = { { .name = "rows", .run = fv__run_nothing, .finish = finish }, FV_PASS_END };

static const fv_column_doc columns[] = {
    { "<columns of the file>", .doc = "as the file has them" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(read_table) = {
    .name = "read_table",
    .family = "table",
    .brief = "read a table from a file",
    .also = "read_csv, readtable",
    .version = 1,
    .params = params,
    .params_size = sizeof(read_table),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .identity = identity,
    .numbers = "read_angles",
    .passes = passes,
    .doc = "read(\"animals.csv\") does the same: files whose extension belongs to a table format are read as tables. Whether "
           "a column holds whole numbers, real numbers or text follows from all its values.",
    .example = "write(measure(label(phantom(\"cells\", [200, 200]) > 60)), \"cells.csv\")",
    .see = "read join filter group sort",
    .columns = columns,
};
