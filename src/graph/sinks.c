/* What a pipeline is asked for: files, scalars, tables and kept images. */
#include "base/remote.h"
#include "graph/approximate.h"
#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- sinks */

fv_sink *fv__add_sink(builder *b, fv_sink_kind kind, fv_node *node, int statement, fv_span span) {
    fv_graph *graph = b->graph;
    graph->sinks = fv__realloc(graph->sinks, (size_t)(graph->nsinks + 1) * sizeof *graph->sinks);
    fv_sink *sink = &graph->sinks[graph->nsinks++];
    *sink = (fv_sink){ .kind = kind, .value = node, .combination = b->combination, .statement = statement, .span = span };
    return sink;
}

static const void *write_field(const fv_node *write, const char *name) {
    return (const char *)write->params + fv__params_find(write->op, name)->offset;
}

/* The identity of an output: what is written and how. */
static void identify_sink(fv_sink *sink) {
    fv_hasher hasher;
    fv__hasher_init(&hasher);
    fv__hasher_text(&hasher, "write 1");
    if (sink->value->type.kind == FV_KIND_IMAGE) fv__hasher_text(&hasher, "pieces 2");
    fv__hasher_text(&hasher, sink->file);
    fv__hasher_text(&hasher, sink->table);
    fv__hasher_int(&hasher, sink->append);
    fv__hasher_text(&hasher, sink->write.compression ? sink->write.compression : "");
    fv__hasher_int(&hasher, sink->write.level);
    for (int d = 0; d < FV_MAX_DIMS; d++) fv__hasher_int(&hasher, sink->write.chunk[d]);
    for (int d = 0; d < FV_MAX_DIMS; d++) fv__hasher_int(&hasher, sink->write.shard[d]);
    fv__hasher_int(&hasher, sink->write.levels);
    fv__hasher_text(&hasher, sink->write.version ? sink->write.version : "");
    if (sink->write.quality) fv__hasher_int(&hasher, sink->write.quality);
    if (sink->write.hyperstack) fv__hasher_text(&hasher, "hyperstack");
    fv__hasher_add(&hasher, &sink->value->key, sizeof sink->value->key);
    sink->key = fv__hasher_finish(&hasher);
}

/* Whether the planes of the first axis are those of the input, one by one. */
static bool keeps_planes(const fv_node *node) {
    bool image = node->ninputs > 0 && node->in[0] && node->in[0]->type.kind == FV_KIND_IMAGE;
    if (!image || node->op->moves) return false;
    const fv_image_type *from = &node->in[0]->type.image, *to = &node->type.image;
    return from->shape[0] == to->shape[0] && !strcmp(from->axis[0], to->axis[0]);
}

/* The angles of the scan that an image was read from. */
static void find_angles(builder *b, fv_sink *sink) {
    const fv_node *node = sink->value;
    fv_list        angles = { 0 };
    while (keeps_planes(node)) node = node->in[0];
    if (node->op->angles) node->op->angles(node->params, &b->graph->arena, &angles);
    if (angles.count == sink->value->type.image.shape[0]) sink->write.angles = angles.value;
}

/* Whether each value needs a file of its own. */
static bool check_table_sink(builder *b, const fv_sink *sink) {
    const fv_table_format *format = fv__table_format_for(sink->file);
    fv_error               error = { 0 };
    if (!format || !format->write) {
        fv_bytes known = { 0 };
        for (int i = 0; i < fv__table_format_count(); i++)
            if (fv__table_format_at(i)->write) fv__bytes_printf(&known, " %s", fv__table_format_at(i)->extensions);
        fv__mistake(b, sink->span, FV_ERROR_USAGE, NULL, "%s: %s; known:%s", sink->file,
                    format ? "tables of this format are read and not written" : "no table format has this extension",
                    known.data ? (char *)known.data : "");
        fv__bytes_release(&known);
        return false;
    }
    bool table = sink->value->type.kind == FV_KIND_TABLE;
    if (format->check && format->check(sink->file, table ? sink->value->type.table : NULL, &error) != FV_OK)
        fv__mistake(b, sink->span, FV_ERROR_USAGE, NULL, "write: %s", error.message);
    if (fv__is_remote(sink->file) && (format->in_place || sink->append))
        fv__mistake(b, sink->span, FV_ERROR_USAGE, NULL,
                    "write: %s: %s local files only; whole tables as CSV, TSV, JSON lines and Parquet go to http and s3, too",
                    sink->file, format->in_place ? "databases are" : "tables are appended to");
    if (format->alone && sink->append)
        fv__mistake(b, sink->span, FV_ERROR_USAGE, NULL, "write: nothing is appended to a picture; leave append out");
    return format->alone != NULL;
}

/* Whether a matrix would be lost that an operator has just given to an image. A format that keeps nothing at all is an array, of
 * which nobody expects it. */
static bool loses_matrix(const fv_node *node, const fv_format *format) {
    bool given = node->ninputs && node->in[0] && node->in[0]->type.kind == FV_KIND_IMAGE && !node->in[0]->type.image.has_affine &&
                 node->type.image.has_affine;
    return given && format->keeps && strcmp(format->keeps, "nothing") && !strstr(format->keeps, "orientation");
}

static void check_file_sink(builder *b, fv_sink *sink) {
    const fv_bindings *bindings = b->bindings;
    fv_error           error = { 0 };
    const fv_format   *format;
    fv_kind            kind = sink->value->type.kind;
    if (kind == FV_KIND_IMAGE) {
        if (fv__format_for_writing(sink->file, &format, &error) != FV_OK) {
            bool table = fv__table_format_for(sink->file) != NULL;
            fv__mistake(b, sink->span, FV_ERROR_USAGE, table ? "this format holds tables; measure() makes one" : NULL, "%s",
                        error.message);
            return;
        }
        fv_file_layout layout = { 0 };
        fv_image_file  file = { sink->file, &sink->value->type.image, &sink->write };
        if (format->takes && strstr(format->takes, "angles")) find_angles(b, sink);
        if (fv__write_options_check(format, &sink->write, &error) != FV_OK || format->layout(&file, &layout, &error) != FV_OK)
            fv__mistake(b, sink->span, FV_ERROR_USAGE, NULL, "write: %s", error.message);
        else if (fv__placed_later(sink->value) && !format->place)
            fv__mistake(b, sink->span, FV_ERROR_USAGE, NULL, "write: %s: where this image lies " FV_PLACED_LATER, sink->file);
        else if (loses_matrix(sink->value, format))
            fv__mistake(b, sink->span, FV_ERROR_USAGE, NULL,
                        "write: %s: this format keeps no matrix to the world, so that of the image would be lost; write .nii.gz, "
                        ".nrrd, .mha, .zarr or .h5",
                        sink->file);
    } else if (!check_table_sink(b, sink))
        return;
    for (int p = 0; p < bindings->nparameters; p++)
        if (bindings->parameters[p].count > 1 && !fv__template_has(sink->file_template, bindings->parameters[p].name))
            fv__mistake(b, sink->span, FV_ERROR_USAGE, NULL,
                        "write: %s is swept, so the file name must contain {%s}; \"%s\" does not", bindings->parameters[p].name,
                        bindings->parameters[p].name, sink->file_template);
    if (b->unit.collection != FV_RUN && !fv__template_tells_items(sink->file_template, &b->bindings->lists[b->unit.collection]))
        fv__mistake(
            b, sink->span, FV_ERROR_USAGE, kind == FV_KIND_IMAGE ? NULL : fv__table_format_for(sink->file)->alone,
            "write: each item of a collection needs its own file, so the name must contain {stem}, {name}, {folder}, {path} or "
            "{index}; \"%s\" does not",
            sink->file_template);
}

static bool has_control(const char *text) {
    while (*text && (unsigned char)*text >= ' ' && *text != 127) text++;
    return *text;
}

void fv__add_file_sink(builder *b, const fv_node *write, fv_node *written, int statement, int64_t step, int64_t steps) {
    fv_sink    *sink = fv__add_sink(b, FV_SINK_FILE, written, statement, write->span);
    fv_numbers  chunk = *(const fv_numbers *)write_field(write, "chunk");
    fv_numbers  shard = *(const fv_numbers *)write_field(write, "shard");
    const char *compression = *(const char *const *)write_field(write, "compression");
    const char *version = *(const char *const *)write_field(write, "version");
    sink->file_template = *(const char *const *)((const char *)write->params + fv__params_file(write->op)->offset);
    sink->table = *(const char *const *)write_field(write, "table");
    if (!sink->table) sink->table = "";
    sink->append = *(const bool *)write_field(write, "append");
    sink->write.compression = compression && *compression ? compression : NULL;
    sink->write.level = *(const int64_t *)write_field(write, "level");
    sink->write.chunk_ndim = FV_MIN(chunk.count, FV_MAX_DIMS);
    for (int d = 0; d < sink->write.chunk_ndim; d++) sink->write.chunk[d] = (int64_t)chunk.value[d];
    sink->write.shard_ndim = FV_MIN(shard.count, FV_MAX_DIMS);
    for (int d = 0; d < sink->write.shard_ndim; d++) sink->write.shard[d] = (int64_t)shard.value[d];
    sink->write.levels = *(const int64_t *)write_field(write, "levels");
    sink->write.version = version && *version ? version : NULL;
    sink->write.quality = *(const int64_t *)write_field(write, "quality");
    sink->write.hyperstack = *(const bool *)write_field(write, "hyperstack");
    if (step) fv__name_step(b, sink, step, steps);
    char                *path;
    fv_error             error = { 0 };
    const fv_image_type *axes = sink->value->type.kind == FV_KIND_IMAGE ? &sink->value->type.image : NULL;
    if (fv__template_fill(b->bindings, sink->file_template, b->number, b->combination, axes, &path, &error) != FV_OK) {
        fv__mistake(b, write->span, FV_ERROR_USAGE, NULL, "write: %s", error.message);
        b->graph->nsinks--;
        return;
    }
    sink->file = fv__arena_strdup(&b->graph->arena, path);
    free(path);
    if (has_control(sink->file))
        fv__mistake(b, write->span, FV_ERROR_USAGE, NULL,
                    "write: a file name must not hold line ends or other control characters");
    identify_sink(sink);
    check_file_sink(b, sink);
}

/* The table that is printed of an image: of a transform its numbers; NULL: it has none. */
static fv_node *list_of(builder *b, fv_node *image, fv_span span) {
    fv_error error = { 0 };
    fv_node *table = NULL;
    return fv__graph_call(b->graph, fv__op_of_role(FV_OP_LIST), NULL, &image, span, &table, &error) == FV_OK ? table : NULL;
}

void fv__add_statement_sink(builder *b, const fv_statement *statement, int index, const value *v) {
    const fv_span span = statement->value->span;
    const char   *text = fv__arena_strdup(&b->graph->arena, statement->text);
    if (v->kind == LITERAL) {
        fv_scalar scalar;
        if (!fv__scalar_of(&v->literal, &scalar)) {
            fv__mistake(b, span, FV_ERROR_USAGE, NULL, "a %s alone does nothing", fv__describe(v));
            return;
        }
        fv__add_sink(b, FV_SINK_PRINT, fv__graph_constant(b->graph, &scalar), index, span)->name = text;
        return;
    }
    fv_node *node = v->node;
    bool     within = b->bindings->within.confidence > 0;
    if (node->op && node->op->sink) {
        if (within && node->in[0]->type.kind == FV_KIND_IMAGE) return;
        if (*(const int64_t *)write_field(node, "every"))
            fv__add_step_sinks(b, node, index, statement->value);
        else
            fv__add_file_sink(b, node, node->in[0], index, 0, 0);
        return;
    }
    if (within && node->type.kind != FV_KIND_IMAGE && fv__can_approximate(node)) {
        fv_error error = { 0 };
        if (fv__approximate(b->graph, node, &b->bindings->within, &node, &error) != FV_OK) {
            fv__mistake(b, span, error.code, NULL, "%s", error.message);
            return;
        }
    }
    if (node->type.kind == FV_KIND_IMAGE) node = list_of(b, node, span);
    if (!node)
        fv__mistake(b, span, FV_ERROR_USAGE,
                    "only scalars, tables and transforms are printed; max(...) or measure(...) makes one of an image",
                    "this image goes nowhere: write it, as in `... |> write(\"result.tif\")`");
    else
        fv__add_sink(b, FV_SINK_PRINT, node, index, span)->name = text;
}
