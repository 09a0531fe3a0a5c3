/* Any image file that was packed as a whole (image.tif.gz, image.npy.zst, image.mrc.bz2, image.zip): it is unpacked into a
 * nameless file in TMPDIR when it is opened, and read from there like any other. Formats that know a packing themselves (nii.gz)
 * stay with it. */
#include "base/remote.h"
#include "formats/unpack.h"
#include "op/format.h"
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

extern const fv_format fv_format_packed;

typedef struct {
    fv_reader  base;
    fv_reader *inner;
    int        fd; /* of what was unpacked */
} reader;

static void close_reader(fv_reader *base) {
    reader *r = (reader *)base;
    if (r->inner) r->inner->format->close(r->inner);
    if (r->fd >= 0) close(r->fd);
    fv__reader_free(base);
}

/* Messages name the file that the user knows. */
static fv_status rename_in(fv_status status, const char *local, const char *path, fv_error *error) {
    char *at = status != FV_OK && error ? strstr(error->message, local) : NULL;
    if (!at) return status;
    char *before = fv__sprintf("%.*s", (int)(at - error->message), error->message), *after = fv__strdup(at + strlen(local));
    status = fv_fail(error, status, "%s%s, unpacked,%s", before, path, after);
    free(before);
    free(after);
    return status;
}

/* By the name without the packing's extension, or the first bytes. */
static fv_status inner_format(const char *path, const char *name, const char *local, const fv_format **format, fv_error *error) {
    const char *dot = memrchr(path, '.', fv__path_length(path));
    char       *bare = name ? fv__strdup(name) : fv__sprintf("%.*s", (int)(dot ? dot - path : 0), path);
    fv_status   status = FV_ERROR_INPUT;
    if (strrchr(fv__path_name(bare), '.')) status = fv__format_for_reading(bare, format, NULL);
    if (status != FV_OK) status = fv__format_for_reading(local, format, error);
    free(bare);
    if (status == FV_OK && *format == &fv_format_packed)
        return fv_fail(error, FV_ERROR_INPUT, "%s is packed twice; unpack it once", path);
    return status;
}

static fv_status unpack(reader *r, const char *path, fv_packing *packing, char **name, int64_t *unpacked, fv_error *error) {
    fv_file_id id;
    int        from;
    *name = NULL;
    FV_TRY(fv__file_identify(path, &id, error));
    FV_TRY(fv__file_open_read(path, &from, error));
    fv_status status = fv__file_open_nameless(0, &r->fd, error);
    if (status == FV_OK) status = fv__unpack(from, id.size, r->fd, path, packing, name, unpacked, error);
    close(from);
    return status;
}

static fv_status open_inner(reader *r, const char *path, const fv_read_options *options, fv_error *error) {
    fv_packing       packing;
    const fv_format *format = NULL;
    char            *name;
    int64_t          unpacked = 0;
    fv_status        status = unpack(r, path, &packing, &name, &unpacked, error);
    char            *local = fv__sprintf("/proc/self/fd/%d", r->fd);
    if (status == FV_OK) status = inner_format(path, name, local, &format, error);
    if (status == FV_OK) status = rename_in(format->open(local, options, &r->inner, error), local, path, error);
    if (status != FV_OK) r->inner = NULL;
    if (status == FV_OK)
        fv__bytes_printf(&r->base.facts, "packed: %s, around %s of %lld bytes\n", fv__packing_name(packing), format->name,
                         (long long)unpacked);
    free(local);
    free(name);
    return status;
}

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    reader *r = fv__reader_new(sizeof *r, &fv_format_packed, path);
    r->fd = -1;
    fv_status status = open_inner(r, path, options, error);
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    const fv_reader *inner = r->inner;
    r->base.type = inner->type;
    memcpy(r->base.chunk, inner->chunk, sizeof r->base.chunk);
    r->base.sequential = inner->sequential;
    r->base.whole_pieces = inner->whole_pieces;
    r->base.read_memory = inner->read_memory;
    r->base.header = inner->header;
    fv__bytes_append(&r->base.facts, inner->facts.data, inner->facts.size);
    *out = &r->base;
    return FV_OK;
}

static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    const reader *r = (reader *)base;
    fv_status     status = fv__reader_read(r->inner, block, error);
    return rename_in(status, r->inner->path, base->path, error);
}

const fv_format fv_format_packed = {
    .name = "packed",
    .extensions = "gz bz2 zst zip",
    .brief = "any image file compressed as a whole: gzip, bzip2, zstd, or the only file of a zip archive",
    .magic = { { 0, 2, "\x1f\x8b" }, { 0, 3, "BZh" }, { 0, 4, "\x28\xb5\x2f\xfd" }, { 0, 4, "PK\3\4" } },
    .reads = "unpacked as a whole first, then as the format inside",
    .keeps = "what the format inside keeps",
    .open = open_reader,
    .read = read_block,
    .close = close_reader,
};
