/* What an image file holds, from its header alone; table files are described in describe_table.c. */
#include "api/describe_table.h"
#include "api/file_facts.h"
#include "api/paragraph.h"
#include "base/remote.h"
#include "op/table_parts.h"
#include <cjson/cJSON.h>
#include <fovea/describe.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { MOST_FILES = 100000 };

/* Bytes on disk; a folder's files are counted up to a limit, *all tells whether that was enough. */
static int64_t disk_bytes(const char *path, bool *all) {
    char   *paths[] = { (char *)path, NULL };
    FTS    *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_COMFOLLOW, NULL);
    int64_t bytes = 0, files = 0;
    *all = true;
    if (!tree) return 0;
    for (FTSENT *entry; (entry = fts_read(tree));) {
        if (entry->fts_info == FTS_F) {
            bytes += entry->fts_statp->st_size;
            files++;
        }
        if (files == MOST_FILES) {
            *all = false;
            break;
        }
    }
    fts_close(tree);
    return bytes;
}

static bool has_chunks(const fv_reader *r) {
    for (int d = 0; d < r->type.ndim; d++)
        if (r->chunk[d] > 0 && r->chunk[d] < r->type.shape[d]) return true;
    return false;
}

static int64_t chunk_count(const fv_reader *r) {
    int64_t count = 1;
    for (int d = 0; d < r->type.ndim; d++)
        if (r->chunk[d] > 0) count *= (r->type.shape[d] + r->chunk[d] - 1) / r->chunk[d];
    return count;
}

/* ---------------------------------------------------------------- text */

/* "z 100, y 512, x 512" */
static void put_axes_integers(const fv_image_type *type, const int64_t *values, fv_bytes *out) {
    for (int d = 0; d < type->ndim; d++) fv__bytes_printf(out, "%s%s %lld", d ? ", " : "", type->axis[d], (long long)values[d]);
}

/* The unit that all axes share, "" if none has one; NULL if they differ. */
static const char *common_unit(const fv_image_type *type) {
    for (int d = 1; d < type->ndim; d++)
        if (strcmp(type->unit[d], type->unit[0])) return NULL;
    return type->unit[0];
}

/* "z 2, y 0.5, x 0.5 micrometer" */
static void put_axes_numbers(const fv_image_type *type, const double *values, fv_bytes *out) {
    const char *unit = common_unit(type);
    for (int d = 0; d < type->ndim; d++) {
        fv__bytes_printf(out, "%s%s %.6g", d ? ", " : "", type->axis[d], values[d]);
        if (!unit && *type->unit[d]) fv__bytes_printf(out, " %s", type->unit[d]);
    }
    if (unit && *unit) fv__bytes_printf(out, " %s", unit);
}

static bool all_equal(const double *values, int count, double value) {
    for (int i = 0; i < count; i++)
        if (values[i] != value) return false;
    return true;
}

static void put_affine(const double *affine, fv_bytes *out) {
    for (int row = 0; row < 3; row++) {
        fv__bytes_printf(out, row ? "; " : "");
        for (int i = 0; i < 4; i++) fv__bytes_printf(out, i ? " %.6g" : "%.6g", affine[4 * row + i]);
    }
}

/* "DAPI #0000ff 30 to 900, actin #00ff00" */
static void put_channels(const fv_image_type *type, fv_bytes *out) {
    for (int k = 0; k < type->nchannels; k++) {
        const fv_channel *channel = &type->channel[k];
        fv__bytes_printf(out, "%s%s", k ? ", " : "", channel->name[0] ? channel->name : "no name");
        if (channel->has_color) fv__bytes_printf(out, " #%06x", (unsigned)channel->color);
        if (channel->low < channel->high) fv__bytes_printf(out, " %.6g to %.6g", channel->low, channel->high);
    }
}

static void put_size(const fv_reader *r, fv_bytes *out) {
    bool    all;
    int64_t disk = disk_bytes(r->path, &all), voxels = fv_image_type_bytes(&r->type);
    char    text[24];
    fv_size_format(voxels, text);
    if (fv__is_remote(r->path)) {
        fv__bytes_printf(out, "%s of voxels", text);
        return;
    }
    fv__bytes_printf(out, "%s of voxels, ", text);
    fv_size_format(disk, text);
    fv__bytes_printf(out, "%s%s on disk", all ? "" : "more than ", text);
}

/* What was gathered in line becomes an entry; nothing gathered, no entry. */
static void flush_line(fv_bytes *out, const char *name, int width, fv_bytes *line) {
    if (line->size) fv__put_entry(out, name, width, (char *)line->data);
    fv__bytes_clear(line);
}

static void put_access(const fv_reader *r, fv_bytes *out) {
    fv__bytes_printf(out, r->sequential ? "in order, from the start" : "by region");
    if (r->sequential || !has_chunks(r)) return;
    fv__bytes_printf(out, ", %lld piece%s of ", (long long)chunk_count(r), chunk_count(r) == 1 ? "" : "s");
    put_axes_integers(&r->type, r->chunk, out);
}

static void file_text(const fv_reader *r, fv_bytes *out) {
    const fv_image_type *type = &r->type;
    const char          *unit = common_unit(type);
    int                  width = fv__facts_width(&r->facts, 24);
    fv_bytes             line = { 0 };
    fv__bytes_printf(out, "%s\n", r->path);
    fv__bytes_printf(&line, "%s: %s", r->format->name, r->format->brief);
    flush_line(out, "format", width, &line);
    fv__bytes_printf(&line, "%s", fv_dtype_name(type->dtype));
    flush_line(out, "type", width, &line);
    put_axes_integers(type, type->shape, &line);
    flush_line(out, "shape", width, &line);
    if (!all_equal(type->spacing, type->ndim, 1) || !unit || *unit) put_axes_numbers(type, type->spacing, &line);
    flush_line(out, "spacing", width, &line);
    if (!all_equal(type->origin, type->ndim, 0)) put_axes_numbers(type, type->origin, &line);
    flush_line(out, "origin", width, &line);
    if (type->has_affine) put_affine(type->affine, &line);
    flush_line(out, "affine", width, &line);
    put_channels(type, &line);
    flush_line(out, "channels", width, &line);
    put_access(r, &line);
    flush_line(out, "access", width, &line);
    put_size(r, &line);
    flush_line(out, "size", width, &line);
    fv__put_facts(&r->facts, width, out);
    fv__bytes_release(&line);
}

static void put_contents(const fv_bytes *contents, fv_bytes *out) {
    if (contents->size) fv__bytes_printf(out, "contents\n");
    fv__put_facts(contents, fv__facts_width(contents, 32), out);
}

/* ---------------------------------------------------------------- JSON */

static cJSON *integers_json(const int64_t *values, int count) {
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < count; i++) cJSON_AddItemToArray(list, cJSON_CreateNumber((double)values[i]));
    return list;
}

static cJSON *channels_json(const fv_image_type *type) {
    cJSON *list = cJSON_CreateArray();
    for (int k = 0; k < type->nchannels; k++) {
        const fv_channel *channel = &type->channel[k];
        cJSON            *one = cJSON_CreateObject();
        char              color[8];
        snprintf(color, sizeof color, "#%06x", (unsigned)channel->color & 0xffffff);
        cJSON_AddStringToObject(one, "name", channel->name);
        if (channel->has_color) cJSON_AddStringToObject(one, "color", color);
        if (channel->low < channel->high)
            cJSON_AddItemToObject(one, "range", cJSON_CreateDoubleArray((double[]){ channel->low, channel->high }, 2));
        cJSON_AddItemToArray(list, one);
    }
    return list;
}

static cJSON *file_json(const fv_reader *r) {
    const fv_image_type *type = &r->type;
    cJSON               *json = cJSON_CreateObject(), *axes = cJSON_CreateArray(), *units = cJSON_CreateArray();
    bool                 all;
    int64_t              disk = disk_bytes(r->path, &all);
    for (int d = 0; d < type->ndim; d++) {
        cJSON_AddItemToArray(axes, cJSON_CreateString(type->axis[d]));
        cJSON_AddItemToArray(units, cJSON_CreateString(type->unit[d]));
    }
    cJSON_AddStringToObject(json, "file", r->path);
    cJSON_AddStringToObject(json, "format", r->format->name);
    cJSON_AddStringToObject(json, "type", fv_dtype_name(type->dtype));
    cJSON_AddItemToObject(json, "shape", integers_json(type->shape, type->ndim));
    cJSON_AddItemToObject(json, "axes", axes);
    cJSON_AddItemToObject(json, "spacing", cJSON_CreateDoubleArray(type->spacing, type->ndim));
    cJSON_AddItemToObject(json, "origin", cJSON_CreateDoubleArray(type->origin, type->ndim));
    cJSON_AddItemToObject(json, "units", units);
    if (type->has_affine) cJSON_AddItemToObject(json, "affine", cJSON_CreateDoubleArray(type->affine, 12));
    if (r->angles && r->nangles > 0) cJSON_AddItemToObject(json, "angles", cJSON_CreateDoubleArray(r->angles, (int)r->nangles));
    if (type->nchannels) cJSON_AddItemToObject(json, "channels", channels_json(type));
    cJSON_AddItemToObject(json, "chunk", integers_json(r->chunk, type->ndim));
    cJSON_AddBoolToObject(json, "sequential", r->sequential);
    cJSON_AddNumberToObject(json, "bytes", (double)fv_image_type_bytes(type));
    if (all) cJSON_AddNumberToObject(json, "bytes_on_disk", (double)disk);
    cJSON_AddItemToObject(json, "facts", fv__facts_json(&r->facts));
    return json;
}

static char *failure_json(const char *path, const fv_error *error) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "file", path);
    cJSON_AddStringToObject(json, "error", error->message);
    char *text = cJSON_Print(json);
    cJSON_Delete(json);
    return text;
}

/* A file whose format lists what it holds is described also where it takes a path to open one of these. */
typedef struct {
    const fv_format *format;
    fv_reader       *reader; /* NULL: it could not be opened without a path */
    fv_bytes         contents;
} found;

static fv_status look(const char *path, const char *inside, found *f, fv_error *error) {
    fv_file_id id;
    FV_TRY(fv__file_identify(path, &id, error)); /* a missing file is that, whatever its extension */
    FV_TRY(fv__format_for_reading(path, &f->format, error));
    fv_status opened = f->format->open(path, &(fv_read_options){ .path_inside = inside }, &f->reader, error);
    if (opened != FV_OK) f->reader = NULL;
    if (!f->format->contents || (inside && *inside)) return opened;
    fv_status listed = f->format->contents(path, &f->contents, opened == FV_OK ? error : NULL);
    return opened == FV_OK ? listed : listed == FV_OK && f->contents.size ? FV_OK : opened;
}

static char *found_text(const char *path, const found *f) {
    fv_bytes out = { 0 };
    if (f->reader)
        file_text(f->reader, &out);
    else
        fv__bytes_printf(&out, "%s\n  format    %s: %s\n", path, f->format->name, f->format->brief);
    put_contents(&f->contents, &out);
    return fv__take_text(&out);
}

static char *found_json(const char *path, const found *f) {
    cJSON *json = f->reader ? file_json(f->reader) : cJSON_CreateObject();
    if (!f->reader) {
        cJSON_AddStringToObject(json, "file", path);
        cJSON_AddStringToObject(json, "format", f->format->name);
    }
    if (f->contents.size) cJSON_AddItemToObject(json, "contents", fv__facts_json(&f->contents));
    char *text = cJSON_Print(json);
    cJSON_Delete(json);
    return text;
}

/* The file's table format, if it is none of an image. */
static const fv_table_format *table_format(const char *path) {
    const fv_table_format *format = NULL;
    const fv_format       *image;
    if (!fv__file_exists(path)) return NULL;
    format = fv__table_format_of_file(path);
    if (!format && !fv__path_is_folder(path) && fv__format_for_reading(path, &image, NULL) != FV_OK)
        fv__table_format_for_reading(path, &format, NULL);
    return format && format->open ? format : NULL;
}

static fv_status describe_table(const fv_table_format *format, const char *path, const char *table, fv_form form, char **text,
                                fv_error *error) {
    fv_bytes out = { 0 };
    cJSON   *json = NULL;
    if (form == FV_FORM_JSON) {
        FV_TRY(fv__table_file_json(format, path, table, &json, error));
        *text = cJSON_Print(json);
        cJSON_Delete(json);
        return FV_OK;
    }
    fv_status status = fv__table_file_text(format, path, table, &out, error);
    if (status == FV_OK)
        *text = fv__take_text(&out);
    else
        fv__bytes_release(&out);
    return status;
}

fv_status fv_describe_file(const char *path, const char *path_inside, fv_form form, char **text, fv_error *error) {
    found                  f = { 0 };
    fv_error               local = { 0 };
    const fv_table_format *table = table_format(path);
    *text = NULL;
    fv_status status = table ? describe_table(table, path, path_inside, form, text, &local) : look(path, path_inside, &f, &local);
    if (status == FV_OK && !table)
        *text = form == FV_FORM_JSON ? found_json(path, &f) : found_text(path, &f);
    else if (status != FV_OK && form == FV_FORM_JSON)
        *text = failure_json(path, &local);
    if (error && status != FV_OK) *error = local;
    if (f.reader) f.reader->format->close(f.reader); /* a transform in HDF5 has a format of its own */
    fv__bytes_release(&f.contents);
    return status;
}
