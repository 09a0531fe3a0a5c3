/* VTI, VTK's image data, which opens in ParaView: read by region and written by many workers at once, with the voxels behind the
 * XML as they are (appended, raw) or in compressed blocks. PVTI, an image in several such files, is read by region.
 *
 * Axes are z y x, c where a point has several components; spacing and origin are kept. Of several arrays `path` names one, the
 * first if left out. Voxels in the XML itself, encoded as text or compressed by other than zlib cannot be read. bool is written
 * as UInt8. */
#include "formats/vti_blocks.h"
#include "formats/xml_tags.h"
#include "op/axes.h"
#include "op/dense_writer.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern const fv_format fv_format_vti, fv_format_pvti;
enum { MOST_XML = 4 << 20, MOST_PIECES = 65536 };

static const struct {
    const char *name;
    fv_dtype    dtype;
} types[] = {
    { "Int8", FV_INT8 },     { "UInt8", FV_UINT8 }, { "Int16", FV_INT16 },   { "UInt16", FV_UINT16 },   { "Int32", FV_INT32 },
    { "UInt32", FV_UINT32 }, { "Int64", FV_INT64 }, { "UInt64", FV_UINT64 }, { "Float32", FV_FLOAT32 }, { "Float64", FV_FLOAT64 },
};

typedef struct {
    fv_reader     base;
    int           fd;
    fv_dense      dense;
    bool          packed;
    fv_vti_blocks blocks;
} reader;

/* ---------------------------------------------------------------- what the XML says */

typedef struct {
    int64_t  extent[6]; /* of the whole, x y z from and to */
    double   origin[3], spacing[3];
    bool     big, wide, packed, ended; /* header_type UInt64; compressed; the appended part was reached */
    bool     has_image, has_array;
    fv_dtype dtype;
    int64_t  components, offset;
    int64_t  appended; /* in the file, behind the underscore */
    char     name[128];
} facts;

static fv_status wrong(const char *path, const char *what, const char *value, fv_error *error) {
    return fv_fail(error, FV_ERROR_INPUT, "%s: the VTK file has %s \"%.60s\", which cannot be read", path, what, value);
}

static bool six(const char *text, int64_t *values) {
    double numbers[6];
    int    n = 0;
    for (char *end; n < 6; n++, text = end) {
        numbers[n] = strtod(text, &end);
        if (end == text || fabs(numbers[n]) > 0x1p52 || numbers[n] != floor(numbers[n])) return false;
        values[n] = (int64_t)numbers[n];
    }
    return true;
}

static void three(const char *text, double *values) {
    for (int i = 0; i < 3; i++) {
        char  *end;
        double value = strtod(text, &end);
        if (end == text || !isfinite(value)) return;
        values[i] = value;
        text = end;
    }
}

static fv_status take_file(facts *f, const char *path, const fv_xml_tag *tag, const char *kind, fv_error *error) {
    char value[64] = "";
    if (!fv_xml_attribute(tag, "type", value, sizeof value) || strcmp(value, kind)) return wrong(path, "type", value, error);
    f->packed = fv_xml_attribute(tag, "compressor", value, sizeof value) && *value;
    if (f->packed && strcmp(value, "vtkZLibDataCompressor")) return wrong(path, "compressor", value, error);
    f->big = fv_xml_attribute(tag, "byte_order", value, sizeof value) && !strcmp(value, "BigEndian");
    f->wide = fv_xml_attribute(tag, "header_type", value, sizeof value) && !strcmp(value, "UInt64");
    return FV_OK;
}

static fv_status take_image(facts *f, const char *path, const fv_xml_tag *tag, fv_error *error) {
    char value[256] = "";
    if (!fv_xml_attribute(tag, "WholeExtent", value, sizeof value) || !six(value, f->extent))
        return wrong(path, "WholeExtent", value, error);
    for (int i = 0; i < 3; i++)
        if (f->extent[2 * i + 1] < f->extent[2 * i]) return wrong(path, "WholeExtent", value, error);
    for (int i = 0; i < 3; i++) f->spacing[i] = 1;
    if (fv_xml_attribute(tag, "Origin", value, sizeof value)) three(value, f->origin);
    if (fv_xml_attribute(tag, "Spacing", value, sizeof value)) three(value, f->spacing);
    if (fv_xml_attribute(tag, "Direction", value, sizeof value) && strcmp(value, "1 0 0 0 1 0 0 0 1"))
        return wrong(path, "Direction", value, error);
    f->has_image = true;
    return FV_OK;
}

/* wanted: name of an array, or NULL for the first. */
static fv_status take_array(facts *f, const char *path, const fv_xml_tag *tag, const char *wanted, bool stored, fv_error *error) {
    char value[64] = "", name[128] = "";
    int  type = 0;
    fv_xml_attribute(tag, "Name", name, sizeof name);
    if (f->has_array || (wanted && strcmp(wanted, name))) return FV_OK;
    if (!fv_xml_attribute(tag, "type", value, sizeof value)) return wrong(path, "type", value, error);
    while (type < FV_COUNT(types) && strcmp(types[type].name, value)) type++;
    if (type == FV_COUNT(types)) return wrong(path, "type", value, error);
    f->dtype = types[type].dtype;
    f->components = fv_xml_attribute(tag, "NumberOfComponents", value, sizeof value) ? atoll(value) : 1;
    if (f->components < 1 || f->components > 4096) return wrong(path, "NumberOfComponents", value, error);
    if (stored && (!fv_xml_attribute(tag, "format", value, sizeof value) || strcmp(value, "appended")))
        return wrong(path, "format", value, error);
    f->offset = stored && fv_xml_attribute(tag, "offset", value, sizeof value) ? atoll(value) : 0;
    if (f->offset < 0) return wrong(path, "offset", value, error);
    snprintf(f->name, sizeof f->name, "%s", name);
    f->has_array = true;
    return FV_OK;
}

/* The appended part begins at an underscore. */
static fv_status take_appended(facts *f, const char *path, const char *text, size_t size, const fv_xml_tag *tag,
                               fv_error *error) {
    char        value[64] = "";
    const char *at = tag->end;
    if (!fv_xml_attribute(tag, "encoding", value, sizeof value) || strcmp(value, "raw"))
        return wrong(path, "encoding", value, error);
    while (at < text + size && *at != '_') at++;
    if (at == text + size)
        return fv_fail(error, FV_ERROR_INPUT, "%s ends early: the appended data of the VTK file is missing", path);
    f->appended = at + 1 - text;
    f->ended = true;
    return FV_OK;
}

static fv_status take_vti(facts *f, const char *path, const char *text, size_t size, const char *wanted, fv_error *error) {
    fv_xml_tag tag = { .end = text };
    bool       inside = false;
    while (!f->ended && fv_xml_next(&tag, text + size)) {
        if (fv_xml_is(&tag, "VTKFile")) FV_TRY(take_file(f, path, &tag, "ImageData", error));
        if (fv_xml_is(&tag, "ImageData")) FV_TRY(take_image(f, path, &tag, error));
        if (fv_xml_is(&tag, "PointData") || fv_xml_is(&tag, "/PointData")) inside = fv_xml_is(&tag, "PointData");
        if (fv_xml_is(&tag, "DataArray") && inside) FV_TRY(take_array(f, path, &tag, wanted, true, error));
        if (fv_xml_is(&tag, "AppendedData")) FV_TRY(take_appended(f, path, text, size, &tag, error));
    }
    if (!f->has_image) return fv_fail(error, FV_ERROR_INPUT, "%s: not a VTI file (it has no ImageData)", path);
    if (!f->has_array)
        return fv_fail(error, FV_ERROR_INPUT, "%s: the VTI file has no point data%s%s", path, wanted ? " called " : "",
                       wanted ? wanted : "");
    return f->ended ? FV_OK : fv_fail(error, FV_ERROR_INPUT, "%s: the VTI file has no appended data", path);
}

/* z y x and components; a plane where z has one voxel. */
static void make_type(const facts *f, fv_image_type *type) {
    int64_t shape[4];
    int     n = 0, axes[3], spatial = 0;
    for (int i = 2; i >= 0; i--) {
        int64_t size = f->extent[2 * i + 1] - f->extent[2 * i] + 1;
        if (i == 2 && size == 1) continue;
        axes[spatial++] = i;
        shape[n++] = size;
    }
    if (f->components > 1) shape[n++] = f->components;
    fv_image_type_init(type, f->dtype, n, shape);
    for (int d = 0; d < spatial; d++) {
        int i = axes[d];
        snprintf(type->axis[d], sizeof type->axis[d], "%c", "xyz"[i]);
        if (f->spacing[i] > 0) type->spacing[d] = f->spacing[i];
        type->origin[d] = f->origin[i] + (double)f->extent[2 * i] * f->spacing[i];
    }
    if (f->components > 1) snprintf(type->axis[spatial], sizeof type->axis[0], "c");
}

static fv_status read_xml(int fd, const char *path, fv_bytes *text, int64_t *file_size, fv_error *error) {
    fv_file_id id;
    FV_TRY(fv_file_identify(path, &id, error));
    *file_size = id.size;
    size_t size = (size_t)FV_MIN(id.size, MOST_XML);
    fv_bytes_reserve(text, size + 1); /* there is a text, if only an empty one */
    return fv_file_read_at(fd, fv_bytes_append(text, NULL, size), size, 0, path, error);
}

/* ---------------------------------------------------------------- VTI */

static void close_reader(fv_reader *base) {
    reader *r = (reader *)base;
    if (r->fd >= 0) close(r->fd);
    fv_vti_blocks_release(&r->blocks);
    fv_reader_free(base);
}

static fv_status find_voxels(reader *r, const facts *f, int64_t file_size, fv_error *error) {
    bool    little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    int64_t start, end, bytes, front = f->packed ? 0 : f->wide ? 8 : 4; /* the number of bytes stands before the voxels */
    r->dense =
        (fv_dense){ .dtype = f->dtype, .swapped = fv_dtype_size(f->dtype) > 1 && f->big == little, .ndim = r->base.type.ndim };
    memcpy(r->dense.shape, r->base.type.shape, sizeof r->dense.shape);
    bytes = fv_dense_bytes(&r->dense);
    if (bytes < 0 || !fv_add(f->appended + front, f->offset, &start) || !fv_add(start, bytes, &end))
        return fv_fail(error, FV_ERROR_INPUT, "%s: the WholeExtent of the VTI file overflows", r->base.path);
    r->packed = f->packed;
    if (f->packed)
        return fv_vti_blocks_open(&r->blocks, r->fd, r->base.path, start, file_size, f->wide, f->big == little, bytes, error);
    if (end > file_size)
        return fv_fail(error, FV_ERROR_INPUT, "%s ends early: its header promises %lld bytes, the file has %lld", r->base.path,
                       (long long)end, (long long)file_size);
    r->dense.offset = start;
    return FV_OK;
}

static fv_status open_vti(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    reader     *r = fv_reader_new(sizeof *r, &fv_format_vti, path);
    fv_bytes    text = { 0 };
    facts       f = { 0 };
    int64_t     file_size = 0;
    const char *wanted = options ? options->path_inside : NULL;
    r->fd = -1;
    fv_status status = fv_file_open_read(path, &r->fd, error);
    if (status == FV_OK) status = read_xml(r->fd, path, &text, &file_size, error);
    if (status == FV_OK) status = take_vti(&f, path, (char *)text.data, text.size, wanted, error);
    if (status == FV_OK) {
        make_type(&f, &r->base.type);
        r->base.header = fv_hash_bytes(text.data, (size_t)f.appended);
        status = find_voxels(r, &f, file_size, error);
    }
    fv_bytes_release(&text);
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    memcpy(r->base.chunk, r->base.type.shape, sizeof r->base.chunk);
    r->base.read_memory = r->packed ? fv_vti_blocks_memory(&r->blocks) : FV_DENSE_MEMORY;
    fv_bytes_printf(&r->base.facts, "array: %s\ncompression: %s\nbyte order: %s\n", f.name, r->packed ? "zlib" : "none",
                    r->dense.swapped ? "swapped" : "native");
    *out = &r->base;
    return FV_OK;
}

static fv_status read_vti(fv_reader *base, const fv_block *block, fv_error *error) {
    reader *r = (reader *)base;
    return r->packed ? fv_vti_blocks_read(&r->blocks, &r->dense, r->fd, base->path, block, error)
                     : fv_dense_read(&r->dense, r->fd, base->path, block, error);
}

/* ---------------------------------------------------------------- writing */

enum { RAW, ZLIB };

static void free_writer(fv_writer *writer) {
    if (writer->parallel)
        fv_dense_free(writer);
    else
        fv_vti_blocks_free(writer);
}

static fv_status create(const char *path, const fv_image_type *type, const fv_write_options *options, fv_writer **out,
                        fv_error *error) {
    int         compression, colour = type->ndim > 1 && !strcmp(type->axis[type->ndim - 1], "c"), ndim = type->ndim - colour;
    const char *name = type->dtype == FV_BOOL ? "UInt8" : NULL;
    int64_t     size[3] = { 1, 1, 1 }, bytes = fv_image_type_bytes(type);
    double      spacing[3] = { 1, 1, 1 }, origin[3] = { 0 };
    fv_bytes    header = { 0 }, trailer = { 0 };
    FV_TRY(fv_compression_choose(&fv_format_vti, options, &compression, error));
    for (int i = 0; i < FV_COUNT(types); i++)
        if (types[i].dtype == type->dtype) name = types[i].name;
    if (!name || ndim < 1 || ndim > 3 || bytes < 0)
        return fv_fail(error, FV_ERROR_USAGE, "%s: VTI holds real numbers on 1 to 3 axes and colours, not %s on %d axes", path,
                       fv_dtype_name(type->dtype), ndim);
    for (int i = 0; i < ndim; i++) {
        size[i] = type->shape[ndim - 1 - i];
        spacing[i] = type->spacing[ndim - 1 - i];
        origin[i] = type->origin[ndim - 1 - i];
    }
    char *extent = fv_sprintf("0 %lld 0 %lld 0 %lld", (long long)size[0] - 1, (long long)size[1] - 1, (long long)size[2] - 1);
    fv_bytes_printf(&header, "<?xml version=\"1.0\"?>\n<VTKFile type=\"ImageData\" version=\"1.0\" byte_order=\"%s\" "
                    "header_type=\"UInt64\"%s>\n", __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? "LittleEndian" : "BigEndian",
                    compression == ZLIB ? " compressor=\"vtkZLibDataCompressor\"" : "");
    fv_bytes_printf(&header, "  <ImageData WholeExtent=\"%s\" Origin=\"%.17g %.17g %.17g\" Spacing=\"%.17g %.17g %.17g\">\n",
                    extent, origin[0], origin[1], origin[2], spacing[0], spacing[1], spacing[2]);
    fv_bytes_printf(&header, "    <Piece Extent=\"%s\">\n      <PointData Scalars=\"voxels\">\n        <DataArray type=\"%s\" "
                    "Name=\"voxels\" NumberOfComponents=\"%lld\" format=\"appended\" offset=\"0\"/>\n      </PointData>\n    "
                    "</Piece>\n  </ImageData>\n  <AppendedData encoding=\"raw\">\n   _", extent, name,
                    (long long)(colour ? type->shape[ndim] : 1));
    free(extent);
    fv_bytes_printf(&trailer, "\n  </AppendedData>\n</VTKFile>\n");
    if (compression == ZLIB) return fv_vti_blocks_create(&fv_format_vti, path, type, options, &header, &trailer, out, error);
    fv_bytes_append(&header, &(uint64_t){ (uint64_t)bytes }, 8);
    *out = fv_dense_writer_new(&fv_format_vti, path, type, options, &header);
    fv_dense_writer_store(*out, type->dtype, false, &trailer);
    return FV_OK;
}

const fv_format fv_format_vti = {
    .name = "vti",
    .extensions = "vti",
    .brief = "VTK image data, for ParaView",
    .reads = "by region; appended raw data, plain or zlib",
    .writes = "in parallel; zlib on all cores",
    .keeps = "spacing, origin",
    .compressions = "none|zlib",
    .open = open_vti,
    .read = read_vti,
    .close = close_reader,
    .create = create,
    .begin = fv_dense_begin,
    .put = fv_dense_put,
    .sync = fv_dense_sync,
    .finish = fv_dense_sync,
    .encode = fv_vti_blocks_encode,
    .assemble = fv_vti_blocks_assemble,
    .free_writer = free_writer,
};

/* ---------------------------------------------------------------- PVTI */

typedef struct {
    int64_t extent[6];
    char   *path;
} piece;

typedef struct {
    fv_reader base;
    facts     facts;
    piece    *pieces;
    int       npieces;
    char     *array; /* name of the one asked for, or NULL */
} parallel;

static void close_parallel(fv_reader *base) {
    parallel *r = (parallel *)base;
    for (int i = 0; i < r->npieces; i++) free(r->pieces[i].path);
    free(r->pieces);
    free(r->array);
    fv_reader_free(base);
}

static double points_of(const int64_t *extent) {
    double points = 1;
    for (int i = 0; i < 3; i++) points *= (double)(extent[2 * i + 1] - extent[2 * i] + 1);
    return points;
}

static fv_status add_piece(parallel *r, const fv_xml_tag *tag, fv_error *error) {
    char  extent[256] = "", source[1024] = "";
    piece p;
    if (!fv_xml_attribute(tag, "Extent", extent, sizeof extent) || !six(extent, p.extent))
        return wrong(r->base.path, "Extent", extent, error);
    if (!fv_xml_attribute(tag, "Source", source, sizeof source) || !*source) return wrong(r->base.path, "Source", source, error);
    if (r->npieces == MOST_PIECES) return fv_fail(error, FV_ERROR_INPUT, "%s has more than %d pieces", r->base.path, MOST_PIECES);
    for (int i = 0; i < 3; i++)
        if (p.extent[2 * i] < r->facts.extent[2 * i] || p.extent[2 * i + 1] > r->facts.extent[2 * i + 1] ||
            p.extent[2 * i + 1] < p.extent[2 * i])
            return wrong(r->base.path, "Extent", extent, error);
    p.path = *source == '/' ? fv_strdup(source)
                            : fv_sprintf("%.*s%s", (int)(fv_path_name(r->base.path) - r->base.path), r->base.path, source);
    if (!(r->npieces & (r->npieces - 1)))
        r->pieces = fv_realloc(r->pieces, (size_t)FV_MAX(2 * r->npieces, 1) * sizeof *r->pieces);
    r->pieces[r->npieces++] = p;
    return FV_OK;
}

static fv_status take_pvti(parallel *r, const char *text, size_t size, fv_error *error) {
    fv_xml_tag tag = { .end = text };
    bool       inside = false;
    while (fv_xml_next(&tag, text + size)) {
        if (fv_xml_is(&tag, "VTKFile")) FV_TRY(take_file(&r->facts, r->base.path, &tag, "PImageData", error));
        if (fv_xml_is(&tag, "PImageData")) FV_TRY(take_image(&r->facts, r->base.path, &tag, error));
        if (fv_xml_is(&tag, "PPointData") || fv_xml_is(&tag, "/PPointData")) inside = fv_xml_is(&tag, "PPointData");
        if (fv_xml_is(&tag, "PDataArray") && inside) FV_TRY(take_array(&r->facts, r->base.path, &tag, r->array, false, error));
        if (fv_xml_is(&tag, "Piece")) FV_TRY(add_piece(r, &tag, error));
    }
    if (!r->facts.has_image || !r->facts.has_array || !r->npieces)
        return fv_fail(error, FV_ERROR_INPUT, "%s: not a PVTI file with point data and pieces", r->base.path);
    double covered = 0;
    for (int i = 0; i < r->npieces; i++) covered += points_of(r->pieces[i].extent);
    if (covered >= points_of(r->facts.extent)) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT, "%s: its pieces hold %.0f of the %.0f points of its WholeExtent", r->base.path, covered,
                   points_of(r->facts.extent));
}

static fv_status open_pvti(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    parallel *r = fv_reader_new(sizeof *r, &fv_format_pvti, path);
    fv_bytes  text = { 0 };
    if (options && options->path_inside) r->array = fv_strdup(options->path_inside);
    fv_status status = fv_file_read_all(path, MOST_XML, &text, error);
    if (status == FV_OK) status = take_pvti(r, (char *)text.data, text.size, error);
    if (status == FV_OK) {
        make_type(&r->facts, &r->base.type);
        r->base.header = fv_hash_bytes(text.data, text.size);
        if (fv_image_type_bytes(&r->base.type) < 0)
            status = fv_fail(error, FV_ERROR_INPUT, "%s: the WholeExtent of the PVTI file overflows", path);
    }
    fv_bytes_release(&text);
    if (status != FV_OK) {
        close_parallel(&r->base);
        return status;
    }
    memcpy(r->base.chunk, r->base.type.shape, sizeof r->base.chunk);
    r->base.read_memory = FV_DENSE_MEMORY;
    fv_bytes_printf(&r->base.facts, "array: %s\npieces: %d\n", r->facts.name, r->npieces);
    *out = &r->base;
    return FV_OK;
}

/* Where a piece lies in the image. */
static fv_region region_of(const parallel *r, const piece *p) {
    fv_region region = fv_region_whole(&r->base.type);
    for (int d = 0; d < region.ndim; d++) {
        if (!strcmp(r->base.type.axis[d], "c")) continue;
        int i = r->base.type.axis[d][0] - 'x';
        region.start[d] = p->extent[2 * i] - r->facts.extent[2 * i];
        region.size[d] = p->extent[2 * i + 1] - p->extent[2 * i] + 1;
    }
    return region;
}

static fv_status read_piece(const parallel *r, const piece *p, const fv_region *place, const fv_block *block, fv_error *error) {
    fv_region     common = fv_region_intersect(place, &block->region);
    fv_reader    *file;
    fv_image_type type = r->base.type;
    if (fv_region_empty(&common)) return FV_OK;
    FV_TRY(fv_reader_acquire(p->path, &(fv_read_options){ .path_inside = r->array }, &file, error));
    fv_block window = fv_block_window(block, &common);
    bool     same = file->type.dtype == type.dtype && file->type.ndim == type.ndim;
    for (int d = 0; same && d < type.ndim; d++) same = file->type.shape[d] == place->size[d];
    for (int d = 0; same && d < type.ndim; d++) window.region.start[d] -= place->start[d];
    fv_status status = same ? file->format->read(file, &window, error)
                            : fv_fail(error, FV_ERROR_INPUT, "%s: piece %s has another shape or type than the PVTI file says",
                                      r->base.path, p->path);
    fv_reader_release(file);
    return status;
}

/* Points on the border of two pieces are in both. What no piece holds is an error. */
static fv_status read_pvti(fv_reader *base, const fv_block *block, fv_error *error) {
    parallel *r = (parallel *)base;
    int64_t   covered = 0;
    for (int i = 0; i < r->npieces; i++) {
        fv_region place = region_of(r, &r->pieces[i]), common = fv_region_intersect(&place, &block->region);
        covered += fv_region_empty(&common) ? 0 : fv_region_voxels(&common);
        FV_TRY(read_piece(r, &r->pieces[i], &place, block, error));
    }
    if (covered >= fv_region_voxels(&block->region)) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT, "%s: its pieces leave a part of the image out", base->path);
}

const fv_format fv_format_pvti = {
    .name = "pvti",
    .extensions = "pvti",
    .brief = "VTK image data in several files",
    .reads = "by region",
    .keeps = "spacing, origin",
    .open = open_pvti,
    .read = read_pvti,
    .close = close_parallel,
};
