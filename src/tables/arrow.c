/* Arrow: tables as a stream of record batches (Arrow IPC), which pyarrow, pandas, polars and Spark read without copying.
 *
 * A stream is a message with the schema, one message for each batch of rows, and an end. A message is a head of 8 bytes, a
 * description in FlatBuffers, and a body in which the columns lie one after another. The descriptions are so few and small that
 * they are put together here: tables of FlatBuffers are written front to back, and what they refer to is written later and
 * its place filled in. */
#include "base/file.h"
#include "op/format.h"
#include "op/table_rows.h"
#include <stdlib.h>

extern const fv_table_format fv_table_arrow;

enum { MOST_ROWS = 1 << 16, MOST_TEXT = 1 << 24 };                                       /* of a batch */
enum { VERSION_5 = 4, SCHEMA = 1, BATCH = 3, INT = 2, FLOAT = 3, TEXT = 5, DOUBLE = 2 }; /* Message.fbs, Schema.fbs */

/* ---------------------------------------------------------------- FlatBuffers */

typedef struct field { /* of a table, by its number there */
    int     size;      /* bytes; 0: left out */
    int64_t value;     /* of a reference: filled in by refer */
    size_t  place;     /* where it was put */
} field;

static void pad(fv_bytes *out, size_t to) {
    static const char zeros[8] = { 0 };
    if (out->size % to) fv__bytes_append(out, zeros, to - out->size % to);
}

static void put(fv_bytes *out, int64_t value, int size) { fv__bytes_append(out, &value, (size_t)size); } /* little-endian */

/* What stands at this place refers to what is written next, which lies at a multiple of so many bytes. */
static void refer(fv_bytes *out, size_t place, size_t to) {
    pad(out, to);
    uint32_t distance = (uint32_t)(out->size - place);
    memcpy(out->data + place, &distance, sizeof distance);
}

/* A table begins with the way back to the list of its fields' places, which comes before it. Gives where it is. */
static size_t put_table(fv_bytes *out, field *fields, int count) {
    size_t at = 4, places[8] = { 0 };
    for (int i = 0; i < count; i++) {
        if (!fields[i].size) continue;
        at = (at + (size_t)fields[i].size - 1) / (size_t)fields[i].size * (size_t)fields[i].size;
        places[i] = at;
        at += (size_t)fields[i].size;
    }
    size_t list = (size_t)(2 * (2 + count));
    while ((out->size + list) % 8) put(out, 0, 1);
    put(out, (int64_t)list, 2);
    put(out, (int64_t)at, 2);
    for (int i = 0; i < count; i++) put(out, (int64_t)places[i], 2);
    size_t begin = out->size;
    put(out, (int64_t)list, 4);
    for (int i = 0; i < count; i++) {
        if (!fields[i].size) continue;
        while (out->size < begin + places[i]) put(out, 0, 1);
        fields[i].place = out->size;
        put(out, fields[i].value, fields[i].size);
    }
    return begin;
}

/* A table that something refers to. */
static void put_referred(fv_bytes *out, size_t from, field *fields, int count) {
    size_t begin = put_table(out, fields, count), distance = begin - from;
    memcpy(out->data + from, &distance, sizeof(uint32_t));
}

static void put_text(fv_bytes *out, size_t from, const char *text) {
    refer(out, from, 4);
    put(out, (int64_t)strlen(text), 4);
    fv__bytes_append(out, text, strlen(text) + 1);
}

/* ---------------------------------------------------------------- descriptions */

/* The root and the head of a message; gives where its content is referred to. */
static size_t begin_message(fv_bytes *out, int kind, int64_t body) {
    field message[] = { { 2, VERSION_5, 0 }, { 1, kind, 0 }, { 4, 0, 0 }, { 8, body, 0 } };
    fv__bytes_clear(out);
    put(out, 0, 4);
    put_referred(out, 0, message, FV_COUNT(message));
    return message[2].place;
}

static void put_type(fv_bytes *out, size_t from, fv_column_kind kind) {
    field integer[] = { { 4, 64, 0 }, { 1, kind == FV_COLUMN_INTEGER, 0 } }, real[] = { { 2, DOUBLE, 0 } };
    if (kind == FV_COLUMN_TEXT)
        put_referred(out, from, NULL, 0);
    else if (kind == FV_COLUMN_REAL)
        put_referred(out, from, real, 1);
    else
        put_referred(out, from, integer, 2);
}

static void put_column(fv_bytes *out, size_t from, const fv_column *column) {
    int   type = column->kind == FV_COLUMN_TEXT ? TEXT : column->kind == FV_COLUMN_REAL ? FLOAT : INT;
    field fields[] = { { 4, 0, 0 }, { 1, 1, 0 }, { 1, type, 0 }, { 4, 0, 0 }, { 0 }, { 4, 0, 0 } };
    put_referred(out, from, fields, FV_COUNT(fields));
    put_text(out, fields[0].place, column->name);
    put_type(out, fields[3].place, column->kind);
    refer(out, fields[5].place, 4); /* no columns inside this one */
    put(out, 0, 4);
}

static void describe_schema(fv_bytes *out, const fv_table_type *type) {
    field  schema[] = { { 2, 0, 0 }, { 4, 0, 0 } };
    size_t from = begin_message(out, SCHEMA, 0);
    put_referred(out, from, schema, FV_COUNT(schema));
    refer(out, schema[1].place, 4);
    put(out, type->ncolumns, 4);
    size_t list = out->size;
    for (int c = 0; c < type->ncolumns; c++) put(out, 0, 4);
    for (int c = 0; c < type->ncolumns; c++) put_column(out, list + 4 * (size_t)c, &type->column[c]);
}

/* ---------------------------------------------------------------- batches */

typedef struct gathered { /* of a column, in a batch */
    fv_bytes there;       /* a bit for each row */
    fv_bytes values;      /* 8 bytes each; of texts where they begin, in 4 bytes, and where the last one ends */
    fv_bytes texts;
    int64_t  missing;
} gathered;

typedef struct output {
    const char          *path;
    int                  fd;
    int64_t              offset, nrows;
    size_t               text; /* bytes of texts in the batch */
    const fv_table_type *type;
    gathered            *columns;
    fv_bytes             description;
} output;

static void add_cell(output *o, int c, fv_cell cell) {
    gathered      *g = &o->columns[c];
    fv_column_kind kind = o->type->column[c].kind;
    bool           missing = fv__cell_missing(kind, cell);
    if (o->nrows % 8 == 0) put(&g->there, 0, 1);
    if (!missing) g->there.data[o->nrows / 8] |= (uint8_t)(1 << o->nrows % 8);
    g->missing += missing;
    if (kind != FV_COLUMN_TEXT) {
        fv__bytes_append(&g->values, &cell, sizeof cell);
        return;
    }
    if (!o->nrows) put(&g->values, 0, 4);
    if (!missing) fv__bytes_append(&g->texts, cell.text, strlen(cell.text));
    if (!missing) o->text += strlen(cell.text);
    put(&g->values, (int64_t)g->texts.size, 4);
}

static fv_status write_bytes(output *o, const void *data, size_t size, fv_error *error) {
    static const char zeros[8] = { 0 };
    size_t            rest = (8 - size % 8) % 8;
    FV_TRY(fv__file_write_at(o->fd, data, size, o->offset, o->path, error));
    FV_TRY(fv__file_write_at(o->fd, zeros, rest, o->offset + (int64_t)size, o->path, error));
    o->offset += (int64_t)(size + rest);
    return FV_OK;
}

static fv_status write_description(output *o, fv_error *error) {
    pad(&o->description, 8);
    int32_t head[2] = { -1, (int32_t)o->description.size };
    FV_TRY(write_bytes(o, head, sizeof head, error));
    return write_bytes(o, o->description.data, o->description.size, error);
}

/* The buffers of a column, in their order. */
static int buffers_of(const output *o, int c, const fv_bytes *buffers[3]) {
    bool text = o->type->column[c].kind == FV_COLUMN_TEXT;
    buffers[0] = &o->columns[c].there;
    buffers[1] = &o->columns[c].values;
    buffers[2] = &o->columns[c].texts;
    return text ? 3 : 2;
}

static void describe_batch(output *o) {
    const fv_bytes *buffers[3];
    fv_bytes       *out = &o->description, list = { 0 };
    int64_t         body = 0, count = 0;
    for (int c = 0; c < o->type->ncolumns; c++) {
        int n = buffers_of(o, c, buffers);
        for (int i = 0; i < n; i++, count++) {
            put(&list, body, 8);
            put(&list, (int64_t)buffers[i]->size, 8);
            body += (int64_t)(buffers[i]->size + 7) / 8 * 8;
        }
    }
    field  batch[] = { { 8, o->nrows, 0 }, { 4, 0, 0 }, { 4, 0, 0 } };
    size_t from = begin_message(out, BATCH, body);
    put_referred(out, from, batch, FV_COUNT(batch));
    for (int k = 1; k < 3; k++) { /* lists of structs of two numbers: they lie at a multiple of 8, behind their length */
        while (out->size % 8 != 4) put(out, 0, 1);
        refer(out, batch[k].place, 1);
        put(out, k == 1 ? o->type->ncolumns : count, 4);
        for (int c = 0; c < o->type->ncolumns && k == 1; c++) {
            put(out, o->nrows, 8);
            put(out, o->columns[c].missing, 8);
        }
        if (k == 2) fv__bytes_append(out, list.data, list.size);
    }
    fv__bytes_release(&list);
}

static fv_status write_batch(output *o, fv_error *error) {
    const fv_bytes *buffers[3];
    if (!o->nrows) return FV_OK;
    describe_batch(o);
    FV_TRY(write_description(o, error));
    for (int c = 0; c < o->type->ncolumns; c++) {
        int n = buffers_of(o, c, buffers);
        for (int i = 0; i < n; i++) FV_TRY(write_bytes(o, buffers[i]->data, buffers[i]->size, error));
        gathered *g = &o->columns[c];
        fv__bytes_clear(&g->there);
        fv__bytes_clear(&g->values);
        fv__bytes_clear(&g->texts);
        g->missing = 0;
    }
    o->nrows = 0;
    o->text = 0;
    return FV_OK;
}

static fv_status write_stream(output *o, fv_table_source *source, fv_error *error) {
    static const int32_t end[2] = { -1, 0 };
    const fv_cell       *cells;
    int64_t              nrows;
    describe_schema(&o->description, o->type);
    FV_TRY(write_description(o, error));
    for (;;) {
        FV_TRY(source->next(source, &cells, &nrows, error));
        if (!nrows) break;
        for (int64_t r = 0; r < nrows; r++) {
            for (int c = 0; c < o->type->ncolumns; c++) add_cell(o, c, cells[r * o->type->ncolumns + c]);
            if (++o->nrows == MOST_ROWS || o->text >= MOST_TEXT) FV_TRY(write_batch(o, error));
        }
    }
    FV_TRY(write_batch(o, error));
    return write_bytes(o, end, sizeof end, error);
}

static fv_status arrow_write(const char *path, const char *existing, const fv_table_type *type, const fv_table_options *options,
                             fv_table_source *source, fv_error *error) {
    output o = { .path = path, .type = type };
    (void)existing;
    if (options->append)
        return fv_fail(error, FV_ERROR_USAGE, "append = true: Arrow streams cannot be appended to; CSV, Parquet and SQLite can");
    FV_TRY(fv__file_open_write(path, &o.fd, error));
    o.columns = fv__calloc((size_t)type->ncolumns * sizeof *o.columns);
    fv_status status = write_stream(&o, source, error);
    fv_status closed = fv__file_close(o.fd, path, status == FV_OK ? error : NULL);
    for (int c = 0; c < type->ncolumns; c++) {
        fv__bytes_release(&o.columns[c].there);
        fv__bytes_release(&o.columns[c].values);
        fv__bytes_release(&o.columns[c].texts);
    }
    free(o.columns);
    fv__bytes_release(&o.description);
    return status == FV_OK ? closed : status;
}

const fv_table_format fv_table_arrow = {
    .name = "arrow",
    .extensions = "arrows",
    .brief = "Arrow IPC stream, for pyarrow, pandas, polars and Spark",
    .write = arrow_write,
};
