/* Sources of values that other units have made. */
#include "graph/gathered.h"
#include "base/take.h"
#include "op/table_rows.h"
#include <stdio.h>
#include <stdlib.h>

enum { LINE_STEP = 1 << 18 }; /* voxels that are copied at a time where images become one line */

typedef struct {
    const fv_gathered *from;
} gathered;

static const fv_param no_params[] = { FV_PARAM_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    (void)error;
    *i->out = ((const gathered *)i->params)->from->type;
    return FV_OK;
}

static fv_status identity(const void *params, fv_hasher *hasher, fv_error *error) {
    (void)error;
    const fv_gathered *g = ((const gathered *)params)->from;
    fv__hasher_add(hasher, &g->identity, sizeof g->identity);
    return FV_OK;
}

static fv_status layout(const void *params, fv_layout *out, fv_error *error) {
    (void)error;
    *out = ((const gathered *)params)->from->layout;
    return FV_OK;
}

/* ---------------------------------------------------------------- images */

static fv_status read_file(const char *path, const fv_block *block, fv_error *error) {
    fv_reader *reader;
    FV_TRY(fv__reader_acquire(path, &(fv_read_options){ 0 }, &reader, error));
    fv_region whole = fv__region_whole(&reader->type);
    bool      same = reader->type.dtype == block->dtype && fv__region_inside(&block->region, &whole);
    fv_status status = same ? reader->format->read(reader, block, error)
                            : fv_fail(error, FV_ERROR_INPUT, "%s was changed while it was read", path);
    fv__reader_release(reader);
    return status;
}

static fv_status fetch(const fv_gathered *g, const fv_gathered_part *part, const fv_block *block, fv_error *error) {
    if (!part->made) return read_file(part->path, block, error);
    if (part->made->form->kind != FV_KIND_SCALAR) return g->handed->fetch(g->handed, part->made, block, error);
    *(double *)block->data = fv__scalar_number(&part->made->scalar);
    return FV_OK;
}

/* The block of one part behind its place along the axis item. */
static fv_status fetch_from_stack(const fv_gathered *g, const fv_block *out, int64_t index, fv_error *error) {
    int      ndim = out->region.ndim - 1;
    fv_block one = { .dtype = out->dtype, .region.ndim = ndim };
    memcpy(one.region.start, out->region.start + 1, (size_t)ndim * sizeof *one.region.start);
    memcpy(one.region.size, out->region.size + 1, (size_t)ndim * sizeof *one.region.size);
    memcpy(one.stride, out->stride + 1, (size_t)ndim * sizeof *one.stride);
    one.data = (char *)out->data + (index - out->region.start[0]) * out->stride[0] * (int64_t)fv_dtype_size(out->dtype);
    return fetch(g, &g->parts[index], &one, error);
}

/* Voxels from..to of one part, counted in its raster, some planes of its first axis at a time. */
static fv_status copy_line(const fv_gathered *g, const fv_gathered_part *part, int64_t from, int64_t to, char *out,
                           fv_error *error) {
    const fv_image_type *type = part->type;
    int64_t              plane = fv_image_type_voxels(type) / type->shape[0], size = (int64_t)fv_dtype_size(type->dtype);
    int64_t              planes = FV_MAX(LINE_STEP / plane, 1);
    size_t               bytes = (size_t)(FV_MIN(planes, type->shape[0]) * plane * size);
    char                *room;
    fv_status            status = FV_TAKE_BUFFER(room, bytes, error);
    for (int64_t first = from / plane; first * plane < to && status == FV_OK; first += planes) {
        fv_region region = fv__region_whole(type);
        fv_block  block;
        region.start[0] = first;
        region.size[0] = FV_MIN(planes, type->shape[0] - first);
        fv__block_init(&block, type->dtype, &region, room);
        status = fetch(g, part, &block, error);
        int64_t low = FV_MAX(from, first * plane), high = FV_MIN(to, (first + region.size[0]) * plane);
        if (status == FV_OK)
            memcpy(out + (low - from) * size, room + (low - first * plane) * size, (size_t)((high - low) * size));
    }
    fv__buffer_free(room, bytes);
    return status;
}

static fv_status fetch_line(const fv_gathered *g, const fv_block *out, fv_error *error) {
    int64_t at = out->region.start[0], end = at + out->region.size[0], size = (int64_t)fv_dtype_size(out->dtype);
    int64_t low = 0, high = g->count;
    while (high - low > 1) { /* the part that holds the first voxel */
        int64_t middle = low + (high - low) / 2;
        if (g->parts[middle].start <= at)
            low = middle;
        else
            high = middle;
    }
    for (; at < end; low++) {
        const fv_gathered_part *part = &g->parts[low];
        int64_t                 stop = low + 1 < g->count ? FV_MIN(g->parts[low + 1].start, end) : end;
        FV_TRY(copy_line(g, part, at - part->start, stop - part->start, (char *)out->data + (at - out->region.start[0]) * size,
                         error));
        at = stop;
    }
    return FV_OK;
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_gathered *g = ((const gathered *)r->need.params)->from;
    if (g->form == FV_GATHERED_ONE) return fetch(g, &g->parts[0], r->out, error);
    if (g->form == FV_GATHERED_LINE) return fetch_line(g, r->out, error);
    for (int64_t i = 0; i < r->out->region.size[0]; i++) FV_TRY(fetch_from_stack(g, r->out, r->out->region.start[0] + i, error));
    return FV_OK;
}

static const fv_pass image_passes[] = { { .run = run }, FV_PASS_END };

static const fv_op gathered_image = {
    .name = "gathered",
    .family = "source",
    .brief = "an image that other items have made",
    .stage = FV_STAGE_READ,
    .version = 2,
    .params = no_params,
    .params_size = sizeof(gathered),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = image_passes,
    .identity = identity,
    .layout = layout,
};

/* ---------------------------------------------------------------- tables */

typedef struct copying {
    const fv_gathered   *g;
    const fv_table_type *from, *to;
    int64_t              part;
    fv_row_visit         visit; /* takes each row, with its tags */
    void                *context;
    fv_cell              row[FV_MAX_COLUMNS];
} copying;

/* A column that holds whole numbers in some parts and real ones in others holds real ones. */
static fv_status copy_row(copying *c, const fv_cell *from, fv_error *error) {
    int tags = c->g->tags ? FV_TAGS : 0;
    if (tags) c->row[0].text = c->g->items->names[c->part];
    if (tags) c->row[1].text = c->g->items->paths[c->part];
    for (int k = 0; k < c->from->ncolumns; k++) {
        fv_column_kind kind = c->from->column[k].kind;
        c->row[tags + k] = from[k];
        if (kind != c->to->column[tags + k].kind) c->row[tags + k].real = fv__cell_number(kind, from[k]);
    }
    return c->visit(c->context, c->row, error);
}

static fv_status copy_part(copying *c, fv_bytes *piece, fv_bytes *scratch, fv_error *error) {
    const fv_export *made = c->g->parts[c->part].made;
    c->from = made->form->table;
    for (int64_t p = 0; p < made->pieces; p++) {
        const fv_cell *rows;
        int64_t        nrows;
        fv__bytes_clear(piece);
        FV_TRY(c->g->handed->piece(c->g->handed, made, p, piece, error));
        if (!piece->size) continue;
        FV_TRY(fv__piece_rows(c->from, piece->data, piece->size, scratch, &rows, &nrows, error));
        for (int64_t r = 0; r < nrows; r++) FV_TRY(copy_row(c, rows + r * c->from->ncolumns, error));
    }
    return FV_OK;
}

fv_status fv__gathered_rows(const fv_gathered *g, int64_t part, fv_row_visit visit, void *context, fv_error *error) {
    copying   c = { .g = g, .to = g->type.table, .part = part, .visit = visit, .context = context };
    fv_bytes  piece = { 0 }, scratch = { 0 };
    fv_status status = copy_part(&c, &piece, &scratch, error);
    fv__bytes_release(&piece);
    fv__bytes_release(&scratch);
    return status;
}

static fv_status put_row(void *context, const fv_cell *from, fv_error *error) {
    fv_row_writer       *rows = context;
    const fv_table_type *type = rows->f->out->table;
    fv_cell             *row;
    FV_TRY(fv__row_writer_next(rows, &row, error));
    for (int k = 0; k < type->ncolumns; k++) fv__row_writer_copy(rows, type->column[k].kind, &row[k], from[k]);
    return FV_OK;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    const fv_gathered *g = ((const gathered *)f->params)->from;
    fv_row_writer      rows;
    fv_status          status = FV_OK;
    fv__row_writer_init(&rows, f);
    for (int64_t part = 0; part < g->count && status == FV_OK; part++) status = fv__gathered_rows(g, part, put_row, &rows, error);
    if (status == FV_OK) status = fv__row_writer_flush(&rows, error);
    fv__row_writer_release(&rows);
    return status;
}

static const fv_pass table_passes[] = { { .name = "rows", .run = fv__run_nothing, .finish = finish }, FV_PASS_END };

static const fv_op gathered_table = {
    .name = "gathered",
    .family = "table",
    .brief = "a table of rows that other items have made",
    .version = 1,
    .params = no_params,
    .params_size = sizeof(gathered),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = table_passes,
    .identity = identity,
};

const fv_gathered *fv__gathered_of(const fv_node *node) {
    const fv_gathered *g = node->op == &gathered_table ? ((const gathered *)node->params)->from : NULL;
    return g && g->items ? g : NULL;
}

bool fv__is_gathered(const fv_node *node) { return node->op == &gathered_table || node->op == &gathered_image; }

fv_status fv__graph_gathered(fv_graph *graph, const fv_gathered *g, bool of_unit, fv_span span, fv_node **node, fv_error *error) {
    gathered *params = fv__arena_alloc(&graph->arena, sizeof *params);
    params->from = g;
    const fv_op *op = g->type.kind == FV_KIND_TABLE ? &gathered_table : &gathered_image;
    FV_TRY(fv__graph_call(graph, op, params, NULL, span, node, error));
    (*node)->of_unit = of_unit;
    return FV_OK;
}

/* ---------------------------------------------------------------- which item */

typedef struct {
    const char          *item, *path;
    const fv_item_names *items;
} tag;

static const fv_param tag_params[] = {
    FV_PARAM(tag, item, .doc = "name of the item"),
    FV_PARAM(tag, path, .doc = "and its file"),
    FV_PARAM_END,
};
static const fv_input tag_inputs[] = { { "table", FV_KIND_TABLE, .doc = "table of one item" }, FV_INPUT_END };

fv_status fv__table_add(fv_table_type *type, const char *name, fv_column_kind kind, fv_error *error) {
    fv_column column = { .kind = kind };
    if (type->ncolumns == FV_MAX_COLUMNS)
        return fv_fail(error, FV_ERROR_USAGE, "the table would have more than the %d columns possible", FV_MAX_COLUMNS);
    fv_text_cut(name, column.name, sizeof column.name);
    for (int n = 2; fv__table_column(type, column.name) >= 0; n++)
        snprintf(column.name, sizeof column.name, "%.34s_%d", name, n % 1000);
    type->column[type->ncolumns++] = column;
    return FV_OK;
}

fv_status fv__table_tagged(const fv_table_type *in, fv_table_type *out, fv_error *error) {
    *out = (fv_table_type){ .metadata = in->metadata };
    FV_TRY(fv__table_add(out, "item", FV_COLUMN_TEXT, error));
    FV_TRY(fv__table_add(out, "path", FV_COLUMN_TEXT, error));
    for (int c = 0; c < in->ncolumns; c++) FV_TRY(fv__table_add(out, in->column[c].name, in->column[c].kind, error));
    return FV_OK;
}

static fv_status tag_infer(fv_infer *i, fv_error *error) {
    fv_table_type *out = fv__arena_alloc(i->arena, sizeof *out);
    FV_TRY(fv__table_tagged(i->in[0]->table, out, error));
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = out, .items = ((const tag *)i->params)->items };
    return FV_OK;
}

typedef struct tagging {
    const tag           *tag;
    const fv_table_type *from;
    fv_row_writer        rows;
} tagging;

static fv_status tag_row(void *context, const fv_cell *from, fv_error *error) {
    tagging *t = context;
    fv_cell *row;
    FV_TRY(fv__row_writer_next(&t->rows, &row, error));
    fv__row_writer_text(&t->rows, &row[0], t->tag->item);
    fv__row_writer_text(&t->rows, &row[1], t->tag->path);
    for (int c = 0; c < t->from->ncolumns; c++)
        fv__row_writer_copy(&t->rows, t->from->column[c].kind, &row[FV_TAGS + c], from[c]);
    return FV_OK;
}

static fv_status tag_finish(fv_finish *f, fv_error *error) {
    tagging t = { .tag = f->params, .from = f->in[0]->table };
    fv__row_writer_init(&t.rows, f);
    fv_status status = fv__table_each(f->table[0], t.from, tag_row, &t, error);
    if (status == FV_OK) status = fv__row_writer_flush(&t.rows, error);
    fv__row_writer_release(&t.rows);
    return status;
}

static const fv_pass tag_passes[] = { { .name = "rows", .run = fv__run_nothing, .finish = tag_finish }, FV_PASS_END };

static const fv_op tag_op = {
    .name = "tag",
    .family = "table",
    .brief = "which item the rows of a table belong to",
    .version = 1,
    .inputs = tag_inputs,
    .params = tag_params,
    .params_size = sizeof(tag),
    .result = FV_KIND_TABLE,
    .infer = tag_infer,
    .passes = tag_passes,
};

fv_status fv__graph_tag(fv_graph *graph, fv_node *table, const fv_item_names *item, fv_span span, fv_node **node,
                        fv_error *error) {
    tag *params = fv__arena_alloc(&graph->arena, sizeof *params);
    *params = (tag){ .item = item->names[0], .path = item->paths[0], .items = item };
    return fv__graph_call(graph, &tag_op, params, &table, span, node, error);
}
