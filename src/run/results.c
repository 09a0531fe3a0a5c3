/* Gathering what items give, and putting tables of all items together. */
#include "run/results.h"
#include "base/file.h"
#include "base/take.h"
#include "exec/sampled.h"
#include "graph/gathered.h"
#include "op/table_rows.h"
#include <stdlib.h>

typedef struct fv_part { /* a table or a scalar of one item and one combination */
    int            statement, combination;
    int64_t        item;   /* unit */
    bool           tagged; /* its own columns tell the item */
    fv_sink_kind   kind;
    fv_kind        value;
    char          *file, *table, *name;
    bool           append;
    fv_hash        key;
    fv_table_type *type; /* of the value alone; NULL for a scalar */
    fv_scalar      scalar;
    fv_interval    estimate;  /* how well the scalar is known, */
    bool           estimated; /* if it is an estimate */
    int64_t        npieces;
    fv_hash       *pieces;
} part;

static pthread_mutex_t mutex =
    PTHREAD_MUTEX_INITIALIZER; /* of the process, and held for moments: guards results that several workers add to */

/* ---------------------------------------------------------------- items */

fv_status fv__fetch_image(fv_instance *instance, const fv_node *node, void *data, fv_error *error) {
    fv_region whole = fv__region_whole(&node->type.image);
    fv_block  block;
    fv__block_init(&block, node->type.image.dtype, &whole, data);
    return fv__instance_fetch(instance, node, &block, error);
}

static fv_status fetch_image(fv_instance *instance, const fv_sink *sink, fv_kept *kept, fv_error *error) {
    kept->data = fv__image_memory(&kept->type);
    if (!kept->data) return fv_fail(error, FV_ERROR_MEMORY, "%s does not fit into memory", sink->name);
    fv_status status = fv__fetch_image(instance, sink->value, kept->data, error);
    if (status != FV_OK) free(kept->data);
    return status;
}

static fv_status keep_image(fv_result *result, fv_instance *instance, const fv_sink *sink, fv_error *error) {
    if (fv__bindings_unit(instance->context->bindings, instance->item).collection != FV_RUN)
        return fv_fail(error, FV_ERROR_USAGE,
                       "%s is an image of each item, and only one can be kept: write them, or keep together(%s)", sink->name,
                       sink->name);
    void *room = fv__direct_room(instance, sink);
    bool  there = instance->direct && fv__direct_takes(instance, sink);
    if (room) return there ? FV_OK : fv__fetch_image(instance, sink->value, room, error);
    fv_kept kept = { .name = sink->name, .type = sink->value->type.image };
    kept.data = fv__direct_take(instance, sink->value);
    if (!kept.data) FV_TRY(fetch_image(instance, sink, &kept, error));
    pthread_mutex_lock(&mutex);
    result->kept = fv__realloc(result->kept, (size_t)(result->nkept + 1) * sizeof *result->kept);
    result->kept[result->nkept++] = kept;
    pthread_mutex_unlock(&mutex);
    return FV_OK;
}

static fv_status take_part(fv_result *result, fv_instance *instance, const fv_sink *sink, fv_error *error) {
    part    p = { .statement = sink->statement,
                  .combination = sink->combination,
                  .item = instance->item,
                  .kind = sink->kind,
                  .value = sink->value->type.kind,
                  .append = sink->append,
                  .key = sink->value->key,
                  .tagged = sink->value->type.items != NULL };
    int64_t npieces = 0;
    p.estimated = sink->value->sampling && p.value == FV_KIND_SCALAR && sink->kind != FV_SINK_KEEP;
    if (p.value == FV_KIND_SCALAR) FV_TRY(fv__instance_scalar(instance, sink->value, &p.scalar, error));
    if (p.estimated) FV_TRY(fv__instance_estimate(instance, sink->value, &p.estimate, error));
    if (p.value != FV_KIND_SCALAR) FV_TRY(fv__instance_table(instance, sink->value, &npieces, error));
    pthread_mutex_lock(&mutex);
    p.file = sink->file ? fv__arena_strdup(&result->arena, sink->file) : NULL;
    p.table = sink->table && *sink->table ? fv__arena_strdup(&result->arena, sink->table) : NULL;
    p.name = fv__arena_strdup(&result->arena, sink->name ? sink->name : fv__node_label(sink->value));
    p.npieces = npieces;
    if (p.value == FV_KIND_TABLE) {
        p.type = fv__arena_alloc(&result->arena, sizeof *p.type);
        *p.type = *sink->value->type.table;
        if (p.type->metadata) p.type->metadata = fv__arena_strdup(&result->arena, p.type->metadata);
        p.pieces = fv__arena_alloc(&result->arena, (size_t)npieces * sizeof *p.pieces + 1);
        for (int64_t i = 0; i < npieces; i++) p.pieces[i] = fv__instance_table_piece(instance, sink->value, i);
    }
    if (!(result->nparts & (result->nparts - 1)))
        result->parts = fv__realloc(result->parts, (size_t)FV_MAX(2 * result->nparts, 1) * sizeof *result->parts);
    result->parts[result->nparts++] = p;
    pthread_mutex_unlock(&mutex);
    return FV_OK;
}

fv_status fv__collect_values(fv_result *result, fv_instance *instance, fv_error *error) {
    for (int k = 0; k < instance->graph->nsinks; k++) {
        const fv_sink *sink = &instance->graph->sinks[k];
        if (sink->kind != FV_SINK_EXPORT && sink->value->type.kind != FV_KIND_IMAGE)
            FV_TRY(take_part(result, instance, sink, error));
    }
    return FV_OK;
}

fv_status fv__collect_item(fv_result *result, fv_instance *instance, fv_error *error) {
    FV_TRY(fv__collect_values(result, instance, error));
    for (int k = 0; k < instance->graph->nsinks; k++) {
        const fv_sink *sink = &instance->graph->sinks[k];
        if (sink->kind == FV_SINK_KEEP && sink->value->type.kind == FV_KIND_IMAGE)
            FV_TRY(keep_image(result, instance, sink, error));
    }
    return FV_OK;
}

void fv__collect_failure(fv_result *result, const char *item, const fv_error *error) {
    result->failures = fv__realloc(result->failures, (size_t)(result->nfailures + 1) * sizeof *result->failures);
    result->failures[result->nfailures++] = (fv_failure){ fv__strdup(item), *error };
}

void fv__collect_output(fv_result *result, const char *path, bool made) {
    if (!(result->noutputs & (result->noutputs - 1)))
        result->outputs = fv__realloc(result->outputs, (size_t)FV_MAX(2 * result->noutputs, 1) * sizeof *result->outputs);
    result->outputs[result->noutputs++] = fv__strdup(path);
    *(made ? &result->facts.outputs_made : &result->facts.outputs_current) += 1;
}

/* ---------------------------------------------------------------- tables of all items */

typedef struct joined { /* parts of one statement and file, in order, read as one table */
    fv_table_source   base;
    const fv_context *context;
    const part       *parts;
    int               nparts, at;
    int64_t           piece;
    fv_table_type     type;
    int               lead;   /* of the value's own columns that come first: item and path, if it has them */
    int               prefix; /* columns that are put in after these */
    bool              tags;   /* item and path are the first of them */
    int               swept[FV_MAX_COLUMNS], nswept;
    bool              numeric[FV_MAX_COLUMNS];
    fv_cell          *cells;
    int64_t           capacity;
    fv_blob           held; /* the piece that texts of the cells lie in */
    fv_bytes          scratch;
} joined;

/* Columns behind the value of an estimate. */
static const fv_column estimate_columns[] = { { "low", FV_COLUMN_REAL },        { "high", FV_COLUMN_REAL },
                                              { "confidence", FV_COLUMN_REAL }, { "seen", FV_COLUMN_INTEGER },
                                              { "chunks", FV_COLUMN_INTEGER },  { "method", FV_COLUMN_TEXT } };

static void fill_estimate(const fv_interval *e, fv_cell *cells) {
    cells[0].real = e->low;
    cells[1].real = e->high;
    cells[2].real = e->confidence;
    cells[3].integer = e->seen;
    cells[4].integer = e->population;
    cells[5].text = e->method;
}

static fv_column_kind kind_of(const part *p, int column) {
    if (p->type) return p->type->column[column].kind;
    if (column) return estimate_columns[column - 1].kind;
    return p->scalar.dtype == FV_FLOAT64 ? FV_COLUMN_REAL : p->scalar.dtype == FV_UINT64 ? FV_COLUMN_NATURAL : FV_COLUMN_INTEGER;
}

static int columns_of(const part *p) {
    return p->type ? p->type->ncolumns : p->estimated ? 1 + (int)FV_COUNT(estimate_columns) : 1;
}

static bool alike(const part *a, const part *b) {
    bool same = a->value == b->value && columns_of(a) == columns_of(b);
    for (int c = 0; same && a->type && c < a->type->ncolumns; c++)
        same = !strcmp(a->type->column[c].name, b->type->column[c].name) &&
               (a->type->column[c].kind == FV_COLUMN_TEXT) == (b->type->column[c].kind == FV_COLUMN_TEXT);
    return same;
}

static const char *name_of(const part *p, int column) {
    return p->type ? p->type->column[column].name : column ? estimate_columns[column - 1].name : p->name;
}

/* Columns that are of one kind of number in some parts and of another in others are real. */
static fv_status add_own(joined *j, int from, int to, fv_error *error) {
    for (int c = from; c < to; c++) {
        fv_column_kind kind = kind_of(&j->parts[0], c);
        for (int k = 1; k < j->nparts; k++)
            if (kind_of(&j->parts[k], c) != kind) kind = FV_COLUMN_REAL;
        FV_TRY(fv__table_add(&j->type, name_of(&j->parts[0], c), kind, error));
    }
    return FV_OK;
}

static fv_status join_columns(joined *j, fv_error *error) {
    const fv_bindings *bindings = j->context->bindings;
    const part        *first = &j->parts[0];
    bool               of_item = fv__bindings_unit(bindings, first->item).collection != FV_RUN;
    j->tags = of_item && !first->tagged;
    j->lead = of_item && first->tagged ? FV_TAGS : 0;
    FV_TRY(add_own(j, 0, j->lead, error));
    if (j->tags) FV_TRY(fv__table_add(&j->type, "item", FV_COLUMN_TEXT, error));
    if (j->tags) FV_TRY(fv__table_add(&j->type, "path", FV_COLUMN_TEXT, error));
    for (int p = 0; p < bindings->nparameters; p++) {
        const fv_parameter *parameter = &bindings->parameters[p];
        if (parameter->count < 2) continue;
        bool numeric = true;
        for (int v = 0; v < parameter->count; v++) numeric = numeric && parameter->values[v].kind == FV_LITERAL_NUMBER;
        FV_TRY(fv__table_add(&j->type, parameter->name, numeric ? FV_COLUMN_REAL : FV_COLUMN_TEXT, error));
        j->numeric[j->nswept] = numeric;
        j->swept[j->nswept++] = p;
    }
    j->prefix = j->type.ncolumns - j->lead;
    if (j->nparts == 1 && first->type) j->type.metadata = first->type->metadata;
    return add_own(j, j->lead, columns_of(first), error);
}

static void note_failure(fv_result *result, const char *item, const fv_error *error) {
    for (int i = 0; i < result->nfailures; i++)
        if (!strcmp(result->failures[i].item, item)) return;
    fv__log_failure("fovea: %s", error->message);
    fv__collect_failure(result, item, error);
}

/* Parts whose columns differ from the first one's cannot be rows of the same table: such items have failed, the others go on.
 * Gives the number of parts left. */
static int keep_alike(fv_result *result, const fv_bindings *bindings, part *parts, int count) {
    int kept = 1;
    for (int k = 1; k < count; k++) {
        if (alike(&parts[0], &parts[k])) {
            parts[kept++] = parts[k];
            continue;
        }
        fv_error    error = { 0 };
        const char *item = fv__bindings_item(bindings, parts[k].item);
        fv_fail(&error, FV_ERROR_INPUT, "%s: its table has other columns than that of %s (another number of axes?)", item,
                fv__bindings_item(bindings, parts[0].item));
        note_failure(result, item, &error);
    }
    return kept;
}

static void fill_prefix(const joined *j, const part *p, fv_cell *row) {
    const fv_bindings *bindings = j->context->bindings;
    fv_unit            unit = fv__bindings_unit(bindings, p->item);
    int                column = 0;
    if (j->tags) row[column++].text = bindings->lists[unit.collection].items.names[unit.item];
    if (j->tags) row[column++].text = bindings->lists[unit.collection].items.paths[unit.item];
    for (int k = 0; k < j->nswept; k++) {
        const fv_parameter *parameter = &bindings->parameters[j->swept[k]];
        int                 choice = fv__bindings_choice(bindings, p->combination, j->swept[k]);
        if (j->numeric[k])
            row[column++].real = parameter->values[choice].number;
        else
            row[column++].text = parameter->texts[choice];
    }
}

/* Rows of one piece with the columns that say where they come from. */
static fv_status add_prefix(joined *j, const part *p, const fv_cell *from, int64_t rows, fv_error *error) {
    int own = j->type.ncolumns - j->prefix;
    if (rows * j->type.ncolumns > j->capacity) {
        FV_TRY(FV_TAKE_MORE(j->cells, (size_t)(rows * j->type.ncolumns) * sizeof *j->cells, error));
        j->capacity = rows * j->type.ncolumns;
    }
    for (int64_t r = 0; r < rows; r++) {
        fv_cell *row = j->cells + r * j->type.ncolumns;
        memcpy(row, from + r * own, (size_t)j->lead * sizeof *row);
        fill_prefix(j, p, row + j->lead);
        memcpy(row + j->lead + j->prefix, from + r * own + j->lead, (size_t)(own - j->lead) * sizeof *row);
        for (int c = 0; c < own; c++) {
            int to = c < j->lead ? c : j->prefix + c;
            if (j->type.column[to].kind == FV_COLUMN_REAL) row[to].real = fv__cell_number(kind_of(p, c), from[r * own + c]);
        }
    }
    return FV_OK;
}

static void release_piece(joined *j) {
    if (j->held.entry) fv__store_unpin(j->context->store, &j->held);
    j->held.entry = NULL;
}

static fv_status next_piece(joined *j, int64_t *nrows, fv_error *error) {
    const part *p = &j->parts[j->at];
    fv_store   *store = j->context->store;
    int64_t     piece = j->piece++;
    *nrows = 0;
    if (p->value == FV_KIND_SCALAR) {
        fv_cell cells[1 + FV_COUNT(estimate_columns)];
        if (kind_of(p, 0) == FV_COLUMN_REAL)
            cells[0].real = p->scalar.real;
        else
            cells[0].integer = p->scalar.integer;
        if (p->estimated) fill_estimate(&p->estimate, cells + 1);
        *nrows = 1;
        FV_TRY(add_prefix(j, p, cells, 1, error));
        return FV_OK;
    }
    if (!fv__store_has(store, p->pieces[piece])) return FV_OK; /* an empty one */
    const fv_cell *rows;
    release_piece(j);
    FV_TRY(fv__store_get(store, p->pieces[piece], &j->held, error));
    FV_TRY(fv__piece_rows(p->type, j->held.data, j->held.size, &j->scratch, &rows, nrows, error));
    FV_TRY(add_prefix(j, p, rows, *nrows, error));
    return FV_OK;
}

static fv_status next_rows(fv_table_source *source, const fv_cell **cells, int64_t *nrows, fv_error *error) {
    joined *j = (joined *)source;
    *nrows = 0;
    while (!*nrows && j->at < j->nparts) {
        if (j->piece < (j->parts[j->at].value == FV_KIND_SCALAR ? 1 : j->parts[j->at].npieces)) {
            FV_TRY(next_piece(j, nrows, error));
            continue;
        }
        j->at++;
        j->piece = 0;
    }
    *cells = j->cells;
    return FV_OK;
}

/* The identity of the whole table: what its parts are, how it is written. */
static fv_hash joined_key(const joined *j) {
    fv_hasher hasher;
    fv__hasher_init(&hasher);
    fv__hasher_text(&hasher, j->parts[0].table ? j->parts[0].table : "");
    fv__hasher_int(&hasher, j->parts[0].append);
    for (int c = 0; c < j->type.ncolumns; c++) fv__hasher_text(&hasher, j->type.column[c].name);
    for (int k = 0; k < j->nparts; k++) {
        fv__hasher_add(&hasher, &j->parts[k].key, sizeof j->parts[k].key);
        fv__hasher_text(&hasher, fv__bindings_item(j->context->bindings, j->parts[k].item));
        fv_cell row[FV_MAX_COLUMNS] = { 0 };
        fill_prefix(j, &j->parts[k], row);
        for (int c = 0; c < j->prefix; c++)
            if (j->type.column[j->lead + c].kind == FV_COLUMN_TEXT)
                fv__hasher_text(&hasher, row[c].text);
            else
                fv__hasher_int(&hasher, row[c].integer);
    }
    return fv__hasher_finish(&hasher);
}

typedef struct finishing {
    fv_result        *result;
    const fv_context *context;
    fv_outputs       *outputs;
} finishing;

static fv_status replace_file(const finishing *f, const fv_collected *one, const fv_table_format *format,
                              const fv_table_options *options, fv_output *output, fv_error *error) {
    fv_outputs *outputs = f->outputs;
    if (!options->append) FV_TRY(fv__outputs_check(outputs, output->path, error));
    FV_TRY(fv__outputs_begin(outputs, output, FV_OUTPUT_ALONE, f->context->written, error));
    fv_status status = format->write(output->temporary, output->path, one->type, options, one->rows, error);
    if (status != FV_OK) {
        fv__error_rename(error, output->temporary, output->path);
        fv__path_remove(output->temporary, NULL);
        fv__outputs_abandon(outputs, output);
        return status;
    }
    FV_TRY(fv__outputs_done(outputs, output, error));
    return options->append ? fv__outputs_commit(outputs, error) : FV_OK; /* another may append to it */
}

static fv_status write_file(const finishing *f, const fv_collected *one, fv_error *error) {
    const char            *path = one->file;
    const fv_table_format *format = fv__table_format_for(path);
    fv_table_options       options = { .table = one->table, .append = one->append, .key = one->key };
    if (format->in_place) {
        FV_TRY(fv__outputs_make_parent(path, error));
        FV_TRY(format->write(path, path, one->type, &options, one->rows, error));
        fv__collect_output(f->result, path, true);
        return FV_OK;
    }
    fv_output *output = fv__outputs_table(f->outputs, path, one->key);
    bool       current = fv__outputs_current(f->outputs, output);
    fv_status  status = current ? FV_OK : replace_file(f, one, format, &options, output, error);
    if (status == FV_OK) fv__collect_output(f->result, path, !current);
    fv__output_leave(output);
    return status;
}

/* Texts of the last rows outlive the bindings and the store. */
static void keep_texts(fv_table *table, int64_t rows, fv_arena *arena) {
    for (int64_t r = table->nrows; r < table->nrows + rows; r++)
        for (int c = 0; c < table->type.ncolumns; c++) {
            fv_cell *cell = &table->cell[r * table->type.ncolumns + c];
            if (table->type.column[c].kind == FV_COLUMN_TEXT && cell->text) cell->text = fv__arena_strdup(arena, cell->text);
        }
}

static fv_status keep_table(fv_result *result, const fv_collected *one, fv_error *error) {
    fv_table table = { .type = *one->type };
    int      n = result->ntables++;
    result->tables = fv__realloc(result->tables, (size_t)result->ntables * sizeof *result->tables);
    result->table_names = fv__realloc(result->table_names, (size_t)result->ntables * sizeof *result->table_names);
    result->table_is_scalar = fv__realloc(result->table_is_scalar, (size_t)result->ntables * sizeof *result->table_is_scalar);
    result->table_printed = fv__realloc(result->table_printed, (size_t)result->ntables * sizeof *result->table_printed);
    result->table_names[n] = (char *)(uintptr_t)one->name;
    result->table_is_scalar[n] = one->scalar;
    result->table_printed[n] = one->kind == FV_SINK_PRINT;
    fv_status status;
    for (;;) {
        const fv_cell *cells;
        int64_t        rows;
        status = one->rows->next(one->rows, &cells, &rows, error);
        if (status != FV_OK || !rows) break;
        size_t width = (size_t)table.type.ncolumns * sizeof(fv_cell);
        status = FV_TAKE_MORE(table.cell, (size_t)(table.nrows + rows) * width, error);
        if (status != FV_OK) break;
        memcpy((char *)table.cell + (size_t)table.nrows * width, cells, (size_t)rows * width);
        keep_texts(&table, rows, &result->arena);
        table.nrows += rows;
    }
    result->tables[n] = table;
    return status;
}

static int in_order(const void *a, const void *b) {
    const part *x = a, *y = b;
    if (x->statement != y->statement) return x->statement - y->statement;
    int files = strcmp(x->file ? x->file : "", y->file ? y->file : "");
    if (files) return files;
    if (x->item != y->item) return x->item < y->item ? -1 : 1;
    return x->combination - y->combination;
}

fv_status fv__collect_each(fv_result *result, const fv_context *context, fv_collected_visit visit, void *of_visit,
                           fv_error *error) {
    if (!result->nparts) return FV_OK;
    qsort(result->parts, (size_t)result->nparts, sizeof *result->parts, in_order);
    fv_status status = FV_OK;
    for (int from = 0, to; from < result->nparts && status == FV_OK; from = to) {
        const part *first = &result->parts[from];
        for (to = from + 1; to < result->nparts; to++) {
            const part *p = &result->parts[to];
            if (p->statement != first->statement || strcmp(p->file ? p->file : "", first->file ? first->file : "")) break;
        }
        int    count = keep_alike(result, context->bindings, &result->parts[from], to - from);
        joined j = { .base.next = next_rows, .context = context, .parts = first, .nparts = count };
        status = join_columns(&j, error);
        fv_collected one = { .kind = first->kind,
                             .scalar = first->value == FV_KIND_SCALAR && count == 1 && !j.prefix,
                             .append = first->append,
                             .statement = first->statement,
                             .file = first->file,
                             .table = first->table,
                             .name = first->name,
                             .type = &j.type,
                             .rows = &j.base };
        if (status == FV_OK && first->kind == FV_SINK_FILE) one.key = joined_key(&j);
        if (status == FV_OK) status = visit(of_visit, &one, error);
        release_piece(&j);
        fv__bytes_release(&j.scratch);
        free(j.cells);
    }
    return status;
}

static fv_status finish_one(void *context, const fv_collected *one, fv_error *error) {
    const finishing *f = context;
    return one->kind == FV_SINK_FILE ? write_file(f, one, error) : keep_table(f->result, one, error);
}

fv_status fv__collect_finish(fv_result *result, const fv_context *context, fv_outputs *outputs, fv_error *error) {
    finishing f = { result, context, outputs };
    return fv__collect_each(result, context, finish_one, &f, error);
}

void fv_result_free(fv_result *result) {
    if (!result) return;
    for (int i = 0; i < result->ntables; i++) free(result->tables[i].cell);
    for (int i = 0; i < result->nkept; i++) free(result->kept[i].data);
    for (int i = 0; i < result->nfailures; i++) free(result->failures[i].item);
    for (int i = 0; i < result->noutputs; i++) free(result->outputs[i]);
    free(result->tables);
    free(result->table_names);
    free(result->table_is_scalar);
    free(result->table_printed);
    free(result->kept);
    free(result->failures);
    free(result->outputs);
    free(result->parts);
    fv__arena_release(&result->arena);
    free(result);
}
