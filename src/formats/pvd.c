/* PVD, ParaView's list of files that are steps of one thing: read as the last of them, or as the one that `path` names by its
 * number. `write(every)` makes such lists (run/series.c). */
#include "base/xml_tags.h"
#include "op/format.h"
#include <stdlib.h>

extern const fv_format fv_format_pvd;
enum { MOST_XML = 16 << 20, NAME = 1024 };

typedef struct {
    fv_reader  base;
    fv_reader *step;
} reader;

static void close_reader(fv_reader *base) {
    reader *r = (reader *)base;
    if (r->step) fv__reader_release(r->step);
    fv__reader_free(base);
}

/* Calls take() with each step of the list until it says that this is the one. */
static fv_status walk(const char *path, bool (*take)(void *context, const char *number, const char *file), void *context,
                      fv_error *error) {
    fv_bytes text = { 0 };
    char     number[64], file[NAME];
    bool     list = false;
    FV_TRY(fv__file_read_all(path, MOST_XML, &text, error));
    fv_xml_tag tag = { .end = (char *)text.data };
    while (fv__xml_next(&tag, (char *)text.data + text.size)) {
        list = list || fv__xml_is(&tag, "Collection");
        *number = *file = 0;
        if (!fv__xml_is(&tag, "DataSet") || !fv__xml_attribute(&tag, "file", file, sizeof file)) continue;
        fv__xml_attribute(&tag, "timestep", number, sizeof number);
        fv__xml_unescape(file);
        if (take(context, number, file)) break;
    }
    fv__bytes_release(&text);
    return list ? FV_OK : fv_fail(error, FV_ERROR_INPUT, "%s: not a PVD file with a Collection", path);
}

typedef struct {
    const char *wanted; /* NULL: the last */
    char        file[NAME], number[64];
} search;

static bool look(void *context, const char *number, const char *file) {
    search *s = context;
    if (s->wanted && strcmp(s->wanted, number) != 0) return false;
    memcpy(s->file, file, strlen(file) + 1);
    memcpy(s->number, number, strlen(number) + 1);
    return s->wanted != NULL;
}

static fv_status open_step(const char *path, const char *file, fv_reader **step, fv_error *error) {
    char     *beside = fv__path_beside(path, file);
    fv_status status = fv__reader_acquire(beside, NULL, step, error);
    free(beside);
    if (status != FV_OK || (*step)->format != &fv_format_pvd) return status;
    fv__reader_release(*step);
    *step = NULL;
    return fv_fail(error, FV_ERROR_INPUT, "%s: its step %s is a list, and no image", path, file);
}

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    search s = { .wanted = options ? options->path_inside : NULL };
    FV_TRY(walk(path, look, &s, error));
    if (!*s.file && s.wanted)
        return fv_fail(error, FV_ERROR_INPUT, "%s: there is no step %s in it; `fovea info` lists them", path, s.wanted);
    if (!*s.file) return fv_fail(error, FV_ERROR_INPUT, "%s: there is no step in it yet", path);
    fv_reader *step;
    FV_TRY(open_step(path, s.file, &step, error));
    reader *r = fv__reader_new(sizeof *r, &fv_format_pvd, path);
    r->step = step;
    r->base.type = step->type;
    memcpy(r->base.chunk, step->chunk, sizeof r->base.chunk);
    r->base.sequential = step->sequential;
    r->base.whole_pieces = step->whole_pieces;
    r->base.read_memory = step->read_memory;
    r->base.header = step->header;
    fv__bytes_printf(&r->base.facts, "step: %s, in %s\n", s.number, s.file);
    *out = &r->base;
    return FV_OK;
}

static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    return fv__reader_read(((reader *)base)->step, block, error);
}

static bool name_step(void *lines, const char *number, const char *file) {
    fv__bytes_printf(lines, "%s: %s\n", number, file);
    return false;
}

static fv_status contents(const char *path, fv_bytes *lines, fv_error *error) { return walk(path, name_step, lines, error); }

const fv_format fv_format_pvd = {
    .name = "pvd",
    .extensions = "pvd",
    .brief = "ParaView's list of steps",
    .reads = "the last step; `path` names another by its number",
    .open = open_reader,
    .read = read_block,
    .close = close_reader,
    .contents = contents,
};
