/* The XML of VTI and PVTI files; see vti_xml.h. */
#include "formats/vti_xml.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_LISTED = 200, MOST_GAP = 4096 };

static const struct {
    const char *name;
    fv_dtype    dtype;
} types[] = {
    { "Int8", FV_INT8 },     { "UInt8", FV_UINT8 }, { "Int16", FV_INT16 },   { "UInt16", FV_UINT16 },   { "Int32", FV_INT32 },
    { "UInt32", FV_UINT32 }, { "Int64", FV_INT64 }, { "UInt64", FV_UINT64 }, { "Float32", FV_FLOAT32 }, { "Float64", FV_FLOAT64 },
};

static const struct {
    const char    *compressor;
    fv_vti_packing packing;
} packings[] = {
    { "vtkZLibDataCompressor", FV_VTI_ZLIB },
    { "vtkLZ4DataCompressor", FV_VTI_LZ4 },
    { "vtkLZMADataCompressor", FV_VTI_LZMA },
};

/* ---------------------------------------------------------------- attributes */

fv_status fv__vti_wrong(const char *path, const char *what, const char *value, fv_error *error) {
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

bool fv__vti_take_extent(const fv_xml_tag *tag, const char *attribute, int64_t extent[6], char value[256]) {
    *value = 0;
    if (!fv__xml_attribute(tag, attribute, value, 256) || !six(value, extent)) return false;
    for (int i = 0; i < 3; i++)
        if (extent[2 * i + 1] < extent[2 * i]) return false;
    return true;
}

fv_status fv__vti_take_file(fv_vti_facts *f, const char *path, const fv_xml_tag *tag, const char *kind, fv_error *error) {
    char value[64] = "";
    int  i = 0;
    if (!fv__xml_attribute(tag, "type", value, sizeof value) || strcmp(value, kind))
        return fv__vti_wrong(path, "type", value, error);
    if (fv__xml_attribute(tag, "compressor", value, sizeof value) && *value) {
        while (i < FV_COUNT(packings) && strcmp(packings[i].compressor, value)) i++;
        if (i == FV_COUNT(packings)) return fv__vti_wrong(path, "compressor", value, error);
        f->packing = packings[i].packing;
    }
    f->big = fv__xml_attribute(tag, "byte_order", value, sizeof value) && !strcmp(value, "BigEndian");
    f->wide = fv__xml_attribute(tag, "header_type", value, sizeof value) && !strcmp(value, "UInt64");
    return FV_OK;
}

fv_status fv__vti_take_image(fv_vti_facts *f, const char *path, const fv_xml_tag *tag, fv_error *error) {
    char value[256];
    if (!fv__vti_take_extent(tag, "WholeExtent", f->extent, value)) return fv__vti_wrong(path, "WholeExtent", value, error);
    for (int i = 0; i < 3; i++) f->spacing[i] = 1;
    if (fv__xml_attribute(tag, "Origin", value, sizeof value)) three(value, f->origin);
    if (fv__xml_attribute(tag, "Spacing", value, sizeof value)) three(value, f->spacing);
    if (fv__xml_attribute(tag, "Direction", value, sizeof value) && strcmp(value, "1 0 0 0 1 0 0 0 1"))
        return fv__vti_wrong(path, "Direction", value, error);
    f->has_image = true;
    return FV_OK;
}

static bool type_of(const fv_xml_tag *tag, fv_dtype *dtype, char value[64]) {
    *value = 0;
    fv__xml_attribute(tag, "type", value, 64);
    for (int i = 0; i < FV_COUNT(types); i++)
        if (!strcmp(types[i].name, value)) {
            *dtype = types[i].dtype;
            return true;
        }
    return false;
}

fv_status fv__vti_take_array(fv_vti_facts *f, const char *path, const fv_xml_tag *tag, const char *wanted, bool cells,
                             fv_error *error) {
    char value[64], name[128] = "";
    fv__xml_attribute(tag, "Name", name, sizeof name);
    bool better = !f->has_array || (f->cells && !cells); /* points before cells */
    if (!better || (wanted && strcmp(wanted, name))) return FV_OK;
    if (!type_of(tag, &f->dtype, value)) return fv__vti_wrong(path, "type", value, error);
    f->components = fv__xml_attribute(tag, "NumberOfComponents", value, sizeof value) ? atoll(value) : 1;
    if (f->components < 1 || f->components > 4096) return fv__vti_wrong(path, "NumberOfComponents", value, error);
    snprintf(f->name, sizeof f->name, "%s", name);
    f->has_array = true;
    f->cells = cells;
    return FV_OK;
}

/* How and where the voxels of an array are stored. behind: the place in the file behind the tag. */
static fv_status take_storage(fv_vti_facts *f, const char *path, const fv_xml_tag *tag, int64_t behind, fv_error *error) {
    char value[64] = "";
    fv__xml_attribute(tag, "format", value, sizeof value);
    f->appended = !strcmp(value, "appended");
    if (!f->appended && strcmp(value, "ascii") && strcmp(value, "binary")) return fv__vti_wrong(path, "format", value, error);
    f->coding = !strcmp(value, "ascii") ? FV_VTI_ASCII : FV_VTI_BASE64;
    f->place = behind;
    f->offset = f->appended && fv__xml_attribute(tag, "offset", value, sizeof value) ? atoll(value) : 0;
    return f->offset < 0 ? fv__vti_wrong(path, "offset", value, error) : FV_OK;
}

/* ---------------------------------------------------------------- the whole file */

/* The appended part begins at an underscore. */
static fv_status take_appended(fv_vti_facts *f, const fv_xml_file *xml, fv_error *error) {
    char    value[64] = "", gap[MOST_GAP];
    int64_t at = fv__xml_file_offset(xml);
    size_t  size = (size_t)FV_MIN(xml->size - at, MOST_GAP);
    if (!fv__xml_attribute(&xml->tag, "encoding", value, sizeof value) || (strcmp(value, "raw") && strcmp(value, "base64")))
        return fv__vti_wrong(xml->path, "encoding", value, error);
    f->coding = !strcmp(value, "raw") ? FV_VTI_RAW : FV_VTI_BASE64;
    FV_TRY(fv__file_read_at(xml->fd, gap, size, at, xml->path, error));
    const char *underscore = memchr(gap, '_', size);
    if (!underscore || !fv__add(at + (underscore - gap) + 1, f->offset, &f->place) || f->place > xml->size)
        return fv_fail(error, FV_ERROR_INPUT, "%s ends early: the appended data of the VTK file is missing", xml->path);
    return FV_OK;
}

/* Which group of arrays a tag opens or leaves: 'p' points, 'c' cells, 0 none; unchanged by others. */
static char group_of(const fv_xml_tag *tag, char group) {
    if (fv__xml_is(tag, "PointData")) return 'p';
    if (fv__xml_is(tag, "CellData")) return 'c';
    return fv__xml_is(tag, "/PointData") || fv__xml_is(tag, "/CellData") ? 0 : group;
}

static fv_status take_piece(fv_vti_facts *f, const char *path, const fv_xml_tag *tag, fv_error *error) {
    char    value[256];
    int64_t extent[6];
    if (++f->pieces > 1)
        return fv_fail(error, FV_ERROR_INPUT, "%s: the VTI file holds its image in several pieces; write it as one, or as PVTI",
                       path);
    if (!fv__vti_take_extent(tag, "Extent", extent, value)) return *value ? fv__vti_wrong(path, "Extent", value, error) : FV_OK;
    if (!f->has_image || !memcmp(extent, f->extent, sizeof extent)) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT, "%s: the piece of the VTI file has the Extent \"%s\", which is not its WholeExtent",
                   path, value);
}

static fv_status take_tag(fv_vti_facts *f, const fv_xml_file *xml, char group, const char *wanted, bool *over, fv_error *error) {
    const fv_xml_tag *tag = &xml->tag;
    bool              had = f->has_array, cells = f->cells;
    if (fv__xml_is(tag, "VTKFile")) return fv__vti_take_file(f, xml->path, tag, "ImageData", error);
    if (fv__xml_is(tag, "ImageData")) return fv__vti_take_image(f, xml->path, tag, error);
    if (fv__xml_is(tag, "Piece")) return take_piece(f, xml->path, tag, error);
    if (fv__xml_is(tag, "DataArray") && group) {
        FV_TRY(fv__vti_take_array(f, xml->path, tag, wanted, group == 'c', error));
        if (f->has_array && (!had || f->cells != cells)) FV_TRY(take_storage(f, xml->path, tag, fv__xml_file_offset(xml), error));
        *over = f->has_array && !f->cells && !f->appended;
    }
    if (fv__xml_is(tag, "AppendedData")) {
        *over = true;
        return f->has_array && f->appended ? take_appended(f, xml, error) : FV_OK;
    }
    return FV_OK;
}

static fv_status check(const fv_vti_facts *f, const char *path, const char *wanted, bool over, fv_error *error) {
    if (!f->has_image) return fv_fail(error, FV_ERROR_INPUT, "%s: not a VTI file (it has no ImageData)", path);
    if (!f->has_array)
        return fv_fail(error, FV_ERROR_INPUT, "%s: the VTI file has no data of points or cells%s%s", path,
                       wanted ? " called " : "", wanted ? wanted : "");
    if (f->appended && !over) return fv_fail(error, FV_ERROR_INPUT, "%s: the VTI file has no appended data", path);
    return FV_OK;
}

fv_status fv__vti_scan(fv_vti_facts *f, int fd, const char *path, int64_t size, const char *wanted, fv_error *error) {
    fv_xml_file xml = { 0 };
    char        group = 0;
    bool        found = true, over = false;
    fv_status   status = FV_OK;
    fv__xml_file_init(&xml, fd, path, size);
    while (status == FV_OK && found && !over) {
        status = fv__xml_file_next(&xml, &found, error);
        if (status != FV_OK || !found) break;
        group = group_of(&xml.tag, group);
        status = take_tag(f, &xml, group, wanted, &over, error);
    }
    fv__xml_file_release(&xml);
    return status == FV_OK ? check(f, path, wanted, over, error) : status;
}

static void put_line(const fv_xml_tag *tag, char group, fv_bytes *lines) {
    char     name[128] = "", type[64], components[32] = "1", format[32] = "";
    fv_dtype dtype;
    fv__xml_attribute(tag, "Name", name, sizeof name);
    fv__xml_attribute(tag, "NumberOfComponents", components, sizeof components);
    fv__xml_attribute(tag, "format", format, sizeof format);
    fv__bytes_printf(lines, "%s: %s of the %s", name, type_of(tag, &dtype, type) ? fv_dtype_name(dtype) : type,
                     group == 'p' ? "points" : "cells");
    if (strcmp(components, "1")) fv__bytes_printf(lines, ", %s components", components);
    fv__bytes_printf(lines, ", %s\n", !strcmp(format, "binary") ? "base64" : format);
}

fv_status fv__vti_list(int fd, const char *path, int64_t size, fv_bytes *lines, fv_error *error) {
    fv_xml_file xml = { 0 };
    char        group = 0;
    bool        found = true;
    fv_status   status = FV_OK;
    fv__xml_file_init(&xml, fd, path, size);
    for (int n = 0; status == FV_OK && found && n < MOST_LISTED;) {
        status = fv__xml_file_next(&xml, &found, error);
        if (status != FV_OK || !found || fv__xml_is(&xml.tag, "AppendedData")) break;
        group = group_of(&xml.tag, group);
        if (!group || !fv__xml_is(&xml.tag, "DataArray")) continue;
        put_line(&xml.tag, group, lines);
        n++;
    }
    fv__xml_file_release(&xml);
    return status;
}

/* ---------------------------------------------------------------- the image */

void fv__vti_type(const fv_vti_facts *f, fv_image_type *type) {
    int64_t shape[4];
    int     n = 0, axes[3], spatial = 0;
    for (int i = 2; i >= 0; i--) {
        int64_t points = f->extent[2 * i + 1] - f->extent[2 * i] + 1, size = f->cells ? FV_MAX(points - 1, 1) : points;
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
        type->origin[d] = f->origin[i] + ((double)f->extent[2 * i] + (f->cells ? 0.5 : 0)) * f->spacing[i];
    }
    if (f->components > 1) snprintf(type->axis[spatial], sizeof type->axis[0], "c");
}

fv_status fv__vti_describe(const char *path, const fv_image_type *type, fv_vti_shape *s, fv_error *error) {
    bool colour = type->ndim > 1 && !strcmp(type->axis[type->ndim - 1], "c");
    *s = (fv_vti_shape){ .ndim = type->ndim - colour, .size = { 1, 1, 1 }, .spacing = { 1, 1, 1 } };
    if (type->dtype == FV_BOOL) s->dtype = "UInt8";
    for (int i = 0; i < FV_COUNT(types); i++)
        if (types[i].dtype == type->dtype) s->dtype = types[i].name;
    if (!s->dtype || s->ndim < 1 || s->ndim > 3 || fv_image_type_bytes(type) < 0)
        return fv_fail(error, FV_ERROR_USAGE, "%s: VTI holds real numbers on 1 to 3 axes and colours, not %s on %d axes", path,
                       fv_dtype_name(type->dtype), s->ndim);
    for (int i = 0; i < s->ndim; i++) {
        s->size[i] = type->shape[s->ndim - 1 - i];
        s->spacing[i] = type->spacing[s->ndim - 1 - i];
        s->origin[i] = type->origin[s->ndim - 1 - i];
    }
    s->components = colour ? type->shape[s->ndim] : 1;
    return FV_OK;
}

/* ---------------------------------------------------------------- writing */

void fv__vti_put_extent(fv_bytes *out, const int64_t extent[6]) {
    for (int i = 0; i < 6; i++) fv__bytes_printf(out, "%s%lld", i ? " " : "", (long long)extent[i]);
}

void fv__vti_put_opening(fv_bytes *out, const char *kind, bool zlib) {
    fv__bytes_printf(out,
                     "<?xml version=\"1.0\"?>\n<VTKFile type=\"%s\" version=\"1.0\" byte_order=\"%s\" "
                     "header_type=\"UInt64\"%s>\n",
                     kind, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? "LittleEndian" : "BigEndian",
                     zlib ? " compressor=\"vtkZLibDataCompressor\"" : "");
}

void fv__vti_put_image(fv_bytes *out, const char *tag, const fv_vti_shape *s, const int64_t extent[6]) {
    fv__bytes_printf(out, "  <%s WholeExtent=\"", tag);
    fv__vti_put_extent(out, extent);
    fv__bytes_printf(out, "\" Origin=\"%.17g %.17g %.17g\" Spacing=\"%.17g %.17g %.17g\">\n", s->origin[0], s->origin[1],
                     s->origin[2], s->spacing[0], s->spacing[1], s->spacing[2]);
}

void fv__vti_put_front(fv_bytes *out, const fv_vti_shape *s, const int64_t extent[6], bool zlib) {
    fv__vti_put_opening(out, "ImageData", zlib);
    fv__vti_put_image(out, "ImageData", s, extent);
    fv__bytes_printf(out, "    <Piece Extent=\"");
    fv__vti_put_extent(out, extent);
    fv__bytes_printf(out,
                     "\">\n      <PointData Scalars=\"voxels\">\n        <DataArray type=\"%s\" Name=\"voxels\" "
                     "NumberOfComponents=\"%lld\" format=\"appended\" offset=\"0\"/>\n      </PointData>\n    "
                     "</Piece>\n  </ImageData>\n  <AppendedData encoding=\"raw\">\n   _",
                     s->dtype, (long long)s->components);
}

void fv__vti_put_back(fv_bytes *out) { fv__bytes_printf(out, "\n  </AppendedData>\n</VTKFile>\n"); }
