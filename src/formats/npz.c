/* NPZ, numpy's archive of arrays: stored arrays are read by region, deflated ones in order; `path` names one of several. Written
 * as one deflated array called arr_0, as numpy.savez_compressed does.
 *
 * As in NPY there is no room for axis names, spacing or units. */
#include "base/zip.h"
#include "formats/npy_header.h"
#include "formats/volume.h"
#include <stdio.h>
#include <stdlib.h>

extern const fv_format fv_format_npz;
static const char      member_name[] = "arr_0.npy";

typedef struct {
    fv_reader base;
    fv_volume volume;
} reader;

/* ---------------------------------------------------------------- the directory of the archive */

static fv_zip archive(const fv_volume *v) { return (fv_zip){ v->fd, v->file_size, v->path, "an NPZ file" }; }

static fv_status damaged(const char *path, const char *why, fv_error *error) {
    return fv_fail(error, FV_ERROR_INPUT, "%s: not an NPZ file, or damaged: %s", path, why);
}

typedef struct {
    fv_zip_visit visit;
    void        *context;
} arrays;

/* Their names are given without .npy; other members are none. */
static bool visit_array(void *context, const fv_zip_member *m) {
    const arrays *a = context;
    fv_zip_member array = *m;
    size_t        length = strlen(array.name);
    if (length <= 4 || strcmp(array.name + length - 4, ".npy")) return true;
    array.name[length - 4] = 0;
    return a->visit(a->context, &array);
}

static fv_status each_array(const fv_volume *v, fv_zip_visit visit, void *context, fv_error *error) {
    fv_zip zip = archive(v);
    return fv__zip_each(&zip, visit_array, &(arrays){ visit, context }, error);
}

/* ---------------------------------------------------------------- one array */

typedef struct {
    const char   *wanted;
    fv_zip_member found;
    int           count;
    fv_bytes      names;
} search;

static bool look_at(void *context, const fv_zip_member *m) {
    search *s = context;
    if (s->wanted ? !strcmp(s->wanted, m->name) : !s->count) s->found = *m;
    fv__bytes_printf(&s->names, "%s%s", s->count++ ? ", " : "", m->name);
    return s->names.size < 4000;
}

static fv_status choose(fv_volume *v, const char *wanted, fv_zip_member *m, fv_error *error) {
    search    s = { .wanted = wanted };
    fv_status status = each_array(v, look_at, &s, error);
    *m = s.found;
    if (status == FV_OK && !s.count)
        status = fv_fail(error, FV_ERROR_INPUT, "%s holds no array", v->path);
    else if (status == FV_OK && !wanted && s.count > 1)
        status = fv_fail(error, FV_ERROR_USAGE, "%s holds several arrays, name one with path: %s", v->path, (char *)s.names.data);
    else if (status == FV_OK && !*m->name)
        status = fv_fail(error, FV_ERROR_USAGE, "%s has no array \"%s\"; it has %s", v->path, wanted, (char *)s.names.data);
    fv__bytes_release(&s.names);
    return status;
}

/* The volume becomes the contents of the member; dense tells what is in it. */
static fv_status enter(fv_volume *v, const fv_zip_member *m, int *version, fv_hash *hash, fv_error *error) {
    int64_t start, base = 0;
    fv_zip  zip = archive(v);
    FV_TRY(fv__zip_start(&zip, m, &start, error));
    if (m->method == FV_ZIP_DEFLATED)
        v->gzip = fv__gzip_new_at(v->fd, start, start + m->packed, FV_GZIP_RAW, v->path);
    else
        base = start;
    FV_TRY(fv__npy_read_header(v, base, base + m->size, version, hash, error));
    int64_t bytes = fv__dense_bytes(&v->dense);
    if (bytes < 0 || bytes > base + m->size - v->dense.offset)
        return fv_fail(error, FV_ERROR_INPUT, "%s: array %s ends early: its shape needs %lld bytes, it has %lld", v->path,
                       m->name, (long long)bytes, (long long)(base + m->size - v->dense.offset));
    if (m->size > FV_GZIP_MOST_RATIO * (m->packed + 1))
        return damaged(v->path, "an array claims to be larger than it can be", error);
    if (v->gzip && v->dense.fortran)
        return fv_fail(error, FV_ERROR_INPUT, "%s: array %s is deflated and in Fortran order, which cannot be read", v->path,
                       m->name);
    return FV_OK;
}

/* ---------------------------------------------------------------- opening */

static void close_reader(fv_reader *base) {
    fv__volume_close(&((reader *)base)->volume);
    fv__reader_free(base);
}

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    reader       *r = fv__reader_new(sizeof *r, &fv_format_npz, path);
    fv_zip_member m;
    int           version;
    fv_status     status = fv__volume_open(&r->volume, path, error);
    if (status == FV_OK && r->volume.gzip) status = damaged(path, "it is gzip and no zip archive", error);
    if (status == FV_OK) status = choose(&r->volume, options ? options->path_inside : NULL, &m, error);
    if (status == FV_OK) status = enter(&r->volume, &m, &version, &r->base.header, error);
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    const fv_dense *dense = &r->volume.dense;
    fv_image_type_init(&r->base.type, dense->dtype, dense->ndim, dense->shape);
    fv__volume_layout(&r->volume, &r->base);
    fv__bytes_printf(&r->base.facts, "array: %s\ncompression: %s\norder: %s\n", m.name, r->volume.gzip ? "deflate" : "none",
                     dense->fortran ? "Fortran (first axis contiguous)" : "C (last axis contiguous)");
    *out = &r->base;
    return FV_OK;
}

static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    return fv__volume_read(&((reader *)base)->volume, block, error);
}

typedef struct {
    const char *path;
    fv_bytes   *lines;
} listing;

/* One that cannot be read is listed with the reason. */
static bool list_member(void *context, const fv_zip_member *m) {
    listing   *l = context;
    fv_reader *r;
    fv_error   error = { 0 };
    fv__bytes_printf(l->lines, "%s: ", m->name);
    if (open_reader(l->path, &(fv_read_options){ .path_inside = m->name }, &r, &error) != FV_OK) {
        fv__bytes_printf(l->lines, "%s\n", error.message);
        return l->lines->size < 1 << 16;
    }
    for (int d = 0; d < r->type.ndim; d++) fv__bytes_printf(l->lines, d ? " x %lld" : "%lld", (long long)r->type.shape[d]);
    fv__bytes_printf(l->lines, " %s\n", fv_dtype_name(r->type.dtype));
    close_reader(r);
    return l->lines->size < 1 << 16;
}

static fv_status contents(const char *path, fv_bytes *lines, fv_error *error) {
    fv_volume v;
    listing   l = { path, lines };
    fv_status status = fv__volume_open(&v, path, error);
    if (status == FV_OK) status = each_array(&v, list_member, &l, error);
    fv__volume_close(&v);
    return status;
}

/* ---------------------------------------------------------------- writing */

static fv_status lay_out(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    int      compression;
    fv_bytes header = { 0 };
    FV_TRY(fv__compression_choose(&fv_format_npz, file->options, &compression, error));
    FV_TRY(fv__writer_check(file->path, file->type, error));
    fv__npy_make_header(file->type, &header);
    fv_status status = fv__volume_gz_layout(file, file->type->dtype, layout, error);
    fv__bytes_release(&header);
    return status;
}

static fv_status create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **out,
                        fv_error *error) {
    fv_bytes header = { 0 };
    (void)error;
    fv__npy_make_header(file->type, &header);
    *out = fv__volume_gz_new(&fv_format_npz, file, layout, temporary, file->type->dtype, &header, false);
    return FV_OK;
}

static void put(fv_bytes *out, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) fv__bytes_append(out, &(uint8_t){ (uint8_t)(value >> 8 * i) }, 1);
}

/* What the local header and the directory have in common, from the version on; sizes always in the extra field. */
static void put_member(fv_bytes *out, uint32_t crc, int64_t packed, int64_t size, bool directory) {
    put(out, 45, 2); /* version that has sizes of 64 bits */
    put(out, 0, 2);
    put(out, 8, 2); /* deflated */
    put(out, 0, 2); /* midnight of the first day that zip knows */
    put(out, 0x21, 2);
    put(out, crc, 4);
    put(out, UINT32_MAX, 4);
    put(out, UINT32_MAX, 4);
    put(out, sizeof member_name - 1, 2);
    put(out, 20, 2);
    for (int i = 0; directory && i < 7; i++) put(out, 0, 2); /* no comment, first disk, no attributes, at the file's start */
    fv__bytes_append(out, member_name, sizeof member_name - 1);
    put(out, 1, 2);
    put(out, 16, 2);
    put(out, (uint64_t)size, 8);
    put(out, (uint64_t)packed, 8);
}

static void put_directory(fv_bytes *out, uint32_t crc, int64_t packed, int64_t size, int64_t start) {
    put(out, 0x02014b50, 4);
    put(out, 45, 2);
    put_member(out, crc, packed, size, true);
    int64_t length = (int64_t)out->size;
    bool    wide = start + length >= UINT32_MAX;
    if (wide) {
        put(out, 0x06064b50, 4);
        put(out, FV_ZIP_END64 - 12, 8);
        put(out, 45, 2);
        put(out, 45, 2);
        put(out, 0, 8);
        put(out, 1, 8);
        put(out, 1, 8);
        put(out, (uint64_t)length, 8);
        put(out, (uint64_t)start, 8);
        put(out, 0x07064b50, 4);
        put(out, 0, 4);
        put(out, (uint64_t)(start + length), 8);
        put(out, 1, 4);
    }
    put(out, 0x06054b50, 4);
    put(out, 0, 4);
    put(out, 1, 2);
    put(out, 1, 2);
    put(out, (uint64_t)length, 4);
    put(out, wide ? UINT32_MAX : (uint64_t)start, 4);
    put(out, 0, 2);
}

/* The header comes last, when checksum and sizes are known. */
static fv_status write_archive(int fd, const char *path, fv_pieces *pieces, fv_error *error) {
    fv_bytes head = { 0 }, tail = { 0 };
    int64_t  start = FV_ZIP_LOCAL + (int64_t)sizeof member_name - 1 + 20, end = start;
    uint32_t crc;
    uint64_t size;
    FV_TRY(fv__gzip_write_stream(fd, path, pieces, &end, &crc, &size, error));
    put(&head, 0x04034b50, 4);
    put_member(&head, crc, end - start, (int64_t)size, false);
    put_directory(&tail, crc, end - start, (int64_t)size, end);
    fv_status status = fv__file_write_at(fd, head.data, head.size, 0, path, error);
    if (status == FV_OK) status = fv__file_write_at(fd, tail.data, tail.size, end, path, error);
    fv__bytes_release(&head);
    fv__bytes_release(&tail);
    return status;
}

static fv_status assemble(fv_writer *base, fv_pieces *pieces, fv_error *error) {
    int              fd;
    fv_headed_pieces all;
    FV_TRY(fv__file_open_write(base->path, &fd, error));
    fv__volume_gz_headed(base, pieces, &all);
    fv_status status = write_archive(fd, base->path, &all.base, error);
    fv__bytes_release(&all.header);
    fv_status closed = fv__file_close(fd, base->path, status == FV_OK ? error : NULL);
    return status == FV_OK ? closed : status;
}

const fv_format fv_format_npz = {
    .name = "npz",
    .extensions = "npz",
    .brief = "numpy arrays in an archive",
    .reads = "stored arrays by region, deflated in order; `path` names one",
    .writes = "one array, on all cores",
    .keeps = "nothing",
    .compressions = "deflate",
    .open = open_reader,
    .read = read_block,
    .close = close_reader,
    .contents = contents,
    .layout = lay_out,
    .create = create,
    .encode = fv__volume_gz_encode,
    .assemble = assemble,
    .free_writer = fv__volume_gz_free,
};
