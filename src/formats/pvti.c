/* PVTI, VTK's image data in several VTI files, each of which a process of ParaView reads: read by region, written by many workers
 * at once.
 *
 * Pieces are boxes of a lattice; points on the border of two lie in both, since a cell must have all its points in one piece.
 * `chunk` gives their shape in voxels, otherwise they are slabs of some 32 MiB. They lie in a folder beside the .pvti file; see
 * op/output_parts.h. */
#include "formats/vti_xml.h"
#include "op/dense.h"
#include "op/output_parts.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern const fv_format fv_format_pvti, fv_format_vti;
enum { MOST_XML = 16 << 20, MOST_PIECES = 65536, SLAB_BYTES = 32 << 20, PUT_BYTES = 4 << 20 };

/* ---------------------------------------------------------------- reading */

typedef struct {
    int64_t extent[6];
    char   *path;
} piece;

typedef struct {
    fv_reader    base;
    fv_vti_facts facts;
    piece       *pieces;
    int          npieces;
    char        *array; /* name of the one asked for, or NULL */
} reader;

static void close_reader(fv_reader *base) {
    reader *r = (reader *)base;
    for (int i = 0; i < r->npieces; i++) free(r->pieces[i].path);
    free(r->pieces);
    free(r->array);
    fv__reader_free(base);
}

/* Values of an array along an axis of an extent. */
static int64_t along(const fv_vti_facts *f, const int64_t *extent, int i) {
    int64_t points = extent[2 * i + 1] - extent[2 * i] + 1;
    return f->cells ? FV_MAX(points - 1, 1) : points;
}

static double values_of(const fv_vti_facts *f, const int64_t *extent) {
    double values = 1;
    for (int i = 0; i < 3; i++) values *= (double)along(f, extent, i);
    return values;
}

static fv_status add_piece(reader *r, const fv_xml_tag *tag, fv_error *error) {
    char  extent[256], source[1024] = "";
    piece p;
    if (!fv__vti_take_extent(tag, "Extent", p.extent, extent)) return fv__vti_wrong(r->base.path, "Extent", extent, error);
    if (!fv__xml_attribute(tag, "Source", source, sizeof source) || !*source)
        return fv__vti_wrong(r->base.path, "Source", source, error);
    if (r->npieces == MOST_PIECES) return fv_fail(error, FV_ERROR_INPUT, "%s has more than %d pieces", r->base.path, MOST_PIECES);
    for (int i = 0; i < 3; i++)
        if (p.extent[2 * i] < r->facts.extent[2 * i] || p.extent[2 * i + 1] > r->facts.extent[2 * i + 1])
            return fv__vti_wrong(r->base.path, "Extent", extent, error);
    fv__xml_unescape(source);
    p.path = fv__path_beside(r->base.path, source);
    if (!(r->npieces & (r->npieces - 1)))
        r->pieces = fv__realloc(r->pieces, (size_t)FV_MAX(2 * r->npieces, 1) * sizeof *r->pieces);
    r->pieces[r->npieces++] = p;
    return FV_OK;
}

static fv_status take_xml(reader *r, const char *text, size_t size, fv_error *error) {
    fv_xml_tag    tag = { .end = text };
    fv_vti_facts *f = &r->facts;
    char          group = 0;
    while (fv__xml_next(&tag, text + size)) {
        if (fv__xml_is(&tag, "VTKFile")) FV_TRY(fv__vti_take_file(f, r->base.path, &tag, "PImageData", error));
        if (fv__xml_is(&tag, "PImageData")) FV_TRY(fv__vti_take_image(f, r->base.path, &tag, error));
        if (fv__xml_is(&tag, "PPointData")) group = 'p';
        if (fv__xml_is(&tag, "PCellData")) group = 'c';
        if (fv__xml_is(&tag, "/PPointData") || fv__xml_is(&tag, "/PCellData")) group = 0;
        if (fv__xml_is(&tag, "PDataArray") && group)
            FV_TRY(fv__vti_take_array(f, r->base.path, &tag, r->array, group == 'c', error));
        if (fv__xml_is(&tag, "Piece")) FV_TRY(add_piece(r, &tag, error));
    }
    if (!f->has_image || !f->has_array || !r->npieces)
        return fv_fail(error, FV_ERROR_INPUT, "%s: not a PVTI file with arrays and pieces", r->base.path);
    double covered = 0, all = values_of(f, f->extent);
    for (int i = 0; i < r->npieces; i++) covered += values_of(f, r->pieces[i].extent);
    if (covered >= all) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT, "%s: its pieces hold %.0f of the %.0f values of its WholeExtent", r->base.path, covered,
                   all);
}

/* Voxels change without the file that names them. */
static fv_status identify(reader *r, const fv_bytes *text, fv_error *error) {
    fv_hasher hasher;
    fv_status status = FV_OK;
    fv__hasher_init(&hasher);
    fv__hasher_add(&hasher, text->data, text->size);
    for (int i = 0; i < r->npieces && status == FV_OK; i++) {
        fv_file_id id = { 0 };
        status = fv__file_identify(r->pieces[i].path, &id, error);
        fv__hasher_int(&hasher, id.size);
        fv__hasher_int(&hasher, id.mtime_ns);
    }
    r->base.header = fv__hasher_finish(&hasher);
    return status;
}

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    reader  *r = fv__reader_new(sizeof *r, &fv_format_pvti, path);
    fv_bytes text = { 0 };
    if (options && options->path_inside) r->array = fv__strdup(options->path_inside);
    fv_status status = fv__file_read_all(path, MOST_XML, &text, error);
    if (status == FV_OK) status = take_xml(r, (char *)text.data, text.size, error);
    if (status == FV_OK) {
        fv__vti_type(&r->facts, &r->base.type);
        if (fv_image_type_bytes(&r->base.type) < 0)
            status = fv_fail(error, FV_ERROR_INPUT, "%s: the WholeExtent of the PVTI file overflows", path);
    }
    if (status == FV_OK) status = identify(r, &text, error);
    fv__bytes_release(&text);
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    memcpy(r->base.chunk, r->base.type.shape, sizeof r->base.chunk);
    r->base.read_memory = FV_DENSE_MEMORY;
    fv__bytes_printf(&r->base.facts, "array: %s, of the %s\npieces: %d\n", r->facts.name, r->facts.cells ? "cells" : "points",
                     r->npieces);
    *out = &r->base;
    return FV_OK;
}

/* Where a piece lies in the image. */
static fv_region region_of(const reader *r, const piece *p) {
    fv_region region = fv__region_whole(&r->base.type);
    for (int d = 0; d < region.ndim; d++) {
        if (!strcmp(r->base.type.axis[d], "c")) continue;
        int i = r->base.type.axis[d][0] - 'x';
        region.start[d] = p->extent[2 * i] - r->facts.extent[2 * i];
        region.size[d] = along(&r->facts, p->extent, i);
    }
    return region;
}

static fv_status read_piece(const reader *r, const piece *p, const fv_region *place, const fv_region *common,
                            const fv_block *block, fv_error *error) {
    fv_reader    *file;
    fv_image_type type = r->base.type;
    FV_TRY(fv__reader_acquire(p->path, &(fv_read_options){ .path_inside = r->array }, &file, error));
    if (file->format != &fv_format_vti) { /* such as this file itself */
        fv__reader_release(file);
        return fv_fail(error, FV_ERROR_INPUT, "%s: its piece %s is no VTI file", r->base.path, p->path);
    }
    fv_block window = fv__block_window(block, common);
    bool     flat = file->type.ndim == type.ndim - 1 && place->size[0] == 1; /* one plane: its file says y x */
    bool     same = file->type.dtype == type.dtype && (file->type.ndim == type.ndim || flat);
    for (int d = flat; same && d < type.ndim; d++) same = file->type.shape[d - flat] == place->size[d];
    for (int d = 0; same && d < type.ndim; d++) window.region.start[d] -= place->start[d];
    for (int d = flat; same && flat && d < type.ndim; d++) {
        window.region.start[d - 1] = window.region.start[d];
        window.region.size[d - 1] = window.region.size[d];
        window.stride[d - 1] = window.stride[d];
    }
    window.region.ndim -= flat;
    fv_status status = same ? fv__reader_read(file, &window, error)
                            : fv_fail(error, FV_ERROR_INPUT, "%s: piece %s has another shape or type than the PVTI file says",
                                      r->base.path, p->path);
    fv__reader_release(file);
    return status;
}

/* Adds the boxes that are left of one without another that lies inside it. */
static void cut(fv_region box, const fv_region *hole, fv_bytes *left) {
    for (int d = 0; d < box.ndim; d++) {
        fv_region before = box, behind = box;
        int64_t   end = hole->start[d] + hole->size[d];
        before.size[d] = hole->start[d] - box.start[d];
        behind.start[d] = end;
        behind.size[d] = box.start[d] + box.size[d] - end;
        if (before.size[d] > 0) fv__bytes_append(left, &before, sizeof before);
        if (behind.size[d] > 0) fv__bytes_append(left, &behind, sizeof behind);
        box.start[d] = hole->start[d];
        box.size[d] = hole->size[d];
    }
}

/* Of the boxes that are missing yet, those without this one. */
static void strike(fv_bytes *missing, const fv_region *there) {
    fv_bytes left = { 0 };
    for (size_t i = 0; i < missing->size / sizeof(fv_region); i++) {
        fv_region box = ((const fv_region *)(const void *)missing->data)[i], common = fv__region_intersect(&box, there);
        if (fv__region_empty(&common))
            fv__bytes_append(&left, &box, sizeof box);
        else
            cut(box, &common, &left);
    }
    fv__bytes_release(missing);
    *missing = left;
}

/* Points on the border of two pieces are in both. What no piece holds is an error. */
static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    reader   *r = (reader *)base;
    fv_bytes  missing = { 0 };
    fv_status status = FV_OK;
    fv__bytes_append(&missing, &block->region, sizeof block->region);
    for (int i = 0; i < r->npieces && status == FV_OK; i++) {
        fv_region place = region_of(r, &r->pieces[i]), common = fv__region_intersect(&place, &block->region);
        if (fv__region_empty(&common)) continue;
        status = read_piece(r, &r->pieces[i], &place, &common, block, error);
        strike(&missing, &common);
    }
    if (status == FV_OK && missing.size)
        status = fv_fail(error, FV_ERROR_INPUT, "%s: its pieces leave a part of the image out", base->path);
    fv__bytes_release(&missing);
    return status;
}

/* ---------------------------------------------------------------- writing */

typedef struct {
    fv_writer       base;
    fv_vti_shape    shape;
    fv_lattice      cells;   /* of pieces, on all axes of the image; an axis of one point counts as a cell */
    pthread_mutex_t mutex;   /* guards what follows */
    uint8_t        *touched; /* by piece: not made durable yet */
} writer;

static char *piece_path(const writer *w, int64_t index) {
    return fv__sprintf("%s/piece-%04lld.vti", w->base.path, (long long)index);
}

/* The points of a piece: one more than its cells. */
static fv_region points_of(const writer *w, int64_t index) {
    fv_region region = fv__lattice_chunk(&w->cells, index);
    for (int d = 0; d < w->shape.ndim; d++) region.size[d] += w->base.type.shape[d] > 1;
    return region;
}

static void extent_of(const writer *w, const fv_region *points, int64_t extent[6]) {
    memset(extent, 0, 6 * sizeof *extent);
    for (int i = 0; i < w->shape.ndim; i++) {
        int d = w->shape.ndim - 1 - i;
        extent[2 * i] = points->start[d];
        extent[2 * i + 1] = points->start[d] + points->size[d] - 1;
    }
}

/* The XML of a piece and the number of bytes behind it; where its voxels lie. */
static fv_dense lay_out(const writer *w, const fv_region *points, fv_bytes *front) {
    fv_dense dense = { .dtype = w->base.type.dtype, .ndim = points->ndim };
    int64_t  extent[6];
    memcpy(dense.shape, points->size, sizeof dense.shape);
    extent_of(w, points, extent);
    fv__vti_put_front(front, &w->shape, extent, false);
    fv__bytes_append(front, &(uint64_t){ (uint64_t)fv__dense_bytes(&dense) }, 8);
    dense.offset = (int64_t)front->size;
    return dense;
}

static void free_writer(fv_writer *base) {
    writer *w = (writer *)base;
    pthread_mutex_destroy(&w->mutex);
    free(w->touched);
    fv__writer_free(base);
}

static fv_status choose_cells(const fv_image_file *file, const fv_vti_shape *shape, fv_lattice *pieces, fv_error *error) {
    const fv_write_options *o = file->options;
    const fv_image_type    *type = file->type;
    int64_t                 cells[FV_MAX_DIMS], size[FV_MAX_DIMS], count;
    if (o->chunk_ndim > type->ndim)
        return fv_fail(error, FV_ERROR_USAGE, "chunk has %d numbers; the image has %d axes", o->chunk_ndim, type->ndim);
    fv__dense_piece(type, SLAB_BYTES, size);
    for (int d = 0; d < type->ndim; d++) {
        int given = d - (type->ndim - o->chunk_ndim);
        cells[d] = type->shape[d] - (d < shape->ndim && type->shape[d] > 1);
        if (o->chunk_ndim == 1 && d < shape->ndim)
            size[d] = o->chunk[0];
        else if (o->chunk_ndim > 1)
            size[d] = given >= 0 && d < shape->ndim ? o->chunk[given] : type->shape[d];
    }
    fv__lattice_init(pieces, type->ndim, cells, size);
    for (count = fv__lattice_count(pieces); !o->chunk_ndim && count > 1024; count = fv__lattice_count(pieces)) {
        int d = 0; /* slabs, and not too many of them */
        while (d < type->ndim - 1 && pieces->chunk[d] >= cells[d]) d++;
        pieces->chunk[d] = FV_MIN(pieces->chunk[d] * 2, cells[d]);
    }
    if (count <= MOST_PIECES) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE, "chunk: it would make %lld pieces; at most %d are written", (long long)count,
                   MOST_PIECES);
}

static fv_status choose(const fv_image_file *file, fv_vti_shape *shape, fv_lattice *pieces, fv_error *error) {
    int unused;
    FV_TRY(fv__compression_choose(&fv_format_pvti, file->options, &unused, error));
    FV_TRY(fv__vti_describe(file->path, file->type, shape, error));
    return choose_cells(file, shape, pieces, error);
}

static fv_status lay_out_file(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    fv_vti_shape shape;
    fv_lattice   pieces;
    FV_TRY(choose(file, &shape, &pieces, error));
    fv__dense_piece(file->type, PUT_BYTES, layout->piece);
    layout->parallel = layout->any_region = true;
    return FV_OK;
}

static fv_status create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **out,
                        fv_error *error) {
    fv_vti_shape shape;
    fv_lattice   pieces;
    FV_TRY(choose(file, &shape, &pieces, error));
    writer *w = fv__writer_new(sizeof *w, &fv_format_pvti, file, layout, temporary);
    w->shape = shape;
    w->cells = pieces;
    pthread_mutex_init(&w->mutex, NULL);
    w->touched = fv__calloc((size_t)fv__lattice_count(&w->cells));
    *out = &w->base;
    return FV_OK;
}

static fv_status begin_piece(const writer *w, int64_t index, fv_error *error) {
    fv_bytes  front = { 0 }, back = { 0 };
    fv_region points = points_of(w, index);
    fv_dense  dense = lay_out(w, &points, &front);
    int64_t   end = dense.offset + fv__dense_bytes(&dense);
    char     *path = piece_path(w, index);
    int       fd = -1;
    fv__vti_put_back(&back);
    fv_status status = fv__file_open_update(path, &fd, error);
    if (status == FV_OK) status = fv__file_resize(fd, end + (int64_t)back.size, path, error);
    if (status == FV_OK) status = fv__file_write_at(fd, front.data, front.size, 0, path, error);
    if (status == FV_OK) status = fv__file_write_at(fd, back.data, back.size, end, path, error);
    fv_status closed = fd < 0 ? FV_OK : fv__file_close(fd, path, status == FV_OK ? error : &(fv_error){ 0 });
    fv__bytes_release(&front);
    fv__bytes_release(&back);
    free(path);
    return status == FV_OK ? closed : status;
}

static void touch(writer *w, int64_t index) {
    pthread_mutex_lock(&w->mutex);
    w->touched[index] = 1;
    pthread_mutex_unlock(&w->mutex);
}

static fv_status begin(fv_writer *base, fv_error *error) {
    writer *w = (writer *)base;
    FV_TRY(fv__parts_begin(base->path, error));
    for (int64_t i = 0, n = fv__lattice_count(&w->cells); i < n; i++) {
        FV_TRY(begin_piece(w, i, error));
        touch(w, i);
    }
    return FV_OK;
}

static fv_status put_piece(const writer *w, int64_t index, const fv_block *block, fv_error *error) {
    fv_region points = points_of(w, index), common = fv__region_intersect(&points, &block->region);
    fv_bytes  front = { 0 };
    if (fv__region_empty(&common)) return FV_OK;
    fv_dense dense = lay_out(w, &points, &front);
    fv_block window = fv__block_window(block, &common);
    for (int d = 0; d < points.ndim; d++) window.region.start[d] -= points.start[d];
    char     *path = piece_path(w, index);
    int       fd = -1;
    fv_status status = fv__file_open_update(path, &fd, error);
    if (status == FV_OK) status = fv__dense_write(&dense, fd, path, &window, error);
    fv_status closed = fd < 0 ? FV_OK : fv__file_close(fd, path, status == FV_OK ? error : &(fv_error){ 0 });
    fv__bytes_release(&front);
    free(path);
    return status == FV_OK ? closed : status;
}

/* Pieces that hold a point of the region are, along each axis, those from one before its first cell to that of its last. */
static fv_status put(fv_writer *base, const fv_block *block, fv_error *error) {
    writer   *w = (writer *)base;
    fv_region numbers = { .ndim = w->cells.ndim };
    fv_rows   rows;
    for (int d = 0; d < numbers.ndim; d++) {
        int64_t first = FV_MAX(block->region.start[d] - 1, 0), last = block->region.start[d] + block->region.size[d] - 1;
        numbers.start[d] = first / w->cells.chunk[d];
        numbers.size[d] = FV_MIN(last, w->cells.shape[d] - 1) / w->cells.chunk[d] - numbers.start[d] + 1;
    }
    for (fv__rows_begin(&rows, &numbers); fv__rows_next(&rows);)
        for (int64_t i = 0; i < numbers.size[numbers.ndim - 1]; i++) {
            int64_t position[FV_MAX_DIMS];
            for (int d = 0; d < numbers.ndim; d++)
                position[d] = (rows.position[d] + (d == numbers.ndim - 1 ? i : 0)) * w->cells.chunk[d];
            int64_t index = fv__lattice_index(&w->cells, position);
            FV_TRY(put_piece(w, index, block, error));
            touch(w, index);
        }
    return FV_OK;
}

static fv_status sync_pieces(fv_writer *base, fv_error *error) {
    writer *w = (writer *)base;
    int64_t count = fv__lattice_count(&w->cells);
    size_t  n = 0;
    char  **paths = fv__calloc((size_t)count * sizeof *paths);
    pthread_mutex_lock(&w->mutex);
    for (int64_t i = 0; i < count; i++) {
        if (w->touched[i]) paths[n++] = piece_path(w, i);
        w->touched[i] = 0;
    }
    pthread_mutex_unlock(&w->mutex);
    fv_status status = n ? fv__paths_sync(paths, n, error) : FV_OK;
    for (size_t i = 0; i < n; i++) free(paths[i]);
    free(paths);
    return status;
}

static fv_status finish(fv_writer *base, fv_error *error) {
    writer   *w = (writer *)base;
    fv_bytes  text = { 0 };
    fv_region whole = fv__region_whole(&base->type);
    int64_t   extent[6];
    char     *folder = fv__parts_folder(base->path), *escaped = fv__xml_escaped(folder);
    extent_of(w, &whole, extent);
    fv__vti_put_opening(&text, "PImageData", false);
    fv__vti_put_image(&text, "PImageData GhostLevel=\"0\"", &w->shape, extent);
    fv__bytes_printf(&text,
                     "    <PPointData Scalars=\"voxels\">\n      <PDataArray type=\"%s\" Name=\"voxels\" "
                     "NumberOfComponents=\"%lld\"/>\n    </PPointData>\n",
                     w->shape.dtype, (long long)w->shape.components);
    for (int64_t i = 0, n = fv__lattice_count(&w->cells); i < n; i++) {
        fv_region points = points_of(w, i);
        extent_of(w, &points, extent);
        fv__bytes_printf(&text, "    <Piece Extent=\"");
        fv__vti_put_extent(&text, extent);
        fv__bytes_printf(&text, "\" Source=\"%s/piece-%04lld.vti\"/>\n", escaped, (long long)i);
    }
    fv__bytes_printf(&text, "  </PImageData>\n</VTKFile>\n");
    fv_status status = sync_pieces(base, error);
    if (status == FV_OK) status = fv__parts_write_header(base->path, text.data, text.size, error);
    fv__bytes_release(&text);
    free(escaped);
    free(folder);
    return status;
}

const fv_format fv_format_pvti = {
    .name = "pvti",
    .extensions = "pvti",
    .brief = "VTK image data in several files",
    .reads = "by region; every kind of VTI",
    .writes = "in parallel, `chunk` is the shape of a piece",
    .keeps = "spacing, origin",
    .compressions = "none",
    .parts = "pvti",
    .takes = "every",
    .open = open_reader,
    .read = read_block,
    .close = close_reader,
    .layout = lay_out_file,
    .create = create,
    .begin = begin,
    .put = put,
    .sync = sync_pieces,
    .finish = finish,
    .free_writer = free_writer,
};
