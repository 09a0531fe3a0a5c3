/* OME-TIFF: a TIFF whose description is OME's XML, which Bio-Formats, napari and QuPath read. It is read as any TIFF is. */
#include "formats/tiff_parts.h"

static const char *pixel_type(fv_dtype dtype) {
    static const char *const names[] = {
        [FV_BOOL] = "uint8",    [FV_UINT8] = "uint8", [FV_INT8] = "int8",     [FV_UINT16] = "uint16", [FV_INT16] = "int16",
        [FV_UINT32] = "uint32", [FV_INT32] = "int32", [FV_FLOAT32] = "float", [FV_FLOAT64] = "double"
    };
    return (int)dtype < FV_COUNT(names) ? names[dtype] : NULL;
}

static fv_status check_axes(const char *path, const fv_image_type *type, fv_error *error) {
    bool inside = type->ndim >= 3 && !strcmp(type->axis[type->ndim - 1], "c");
    int  leading = type->ndim - (inside ? 3 : 2), seen[3] = { 0 };
    bool good = leading >= 0 && leading <= 3 && !strcmp(type->axis[leading], "y") && !strcmp(type->axis[leading + 1], "x");
    for (int d = 0; d < leading && good; d++) {
        const char *letter = strlen(type->axis[d]) == 1 ? strchr("tzc", type->axis[d][0]) : NULL;
        good = letter && !seen[letter - "tzc"]++ && !(inside && *letter == 'c');
    }
    if (good) return FV_OK;
    fv_bytes axes = { 0 };
    for (int d = 0; d < type->ndim; d++) fv__bytes_printf(&axes, "%s%s", d ? " " : "", type->axis[d]);
    fv_fail(
        error, FV_ERROR_USAGE,
        "%s: OME-TIFF holds images with the axes t, z, c before y x, or with colours as y x c, and this one has %s; name_axes() "
        "gives them other names, and a plain .tif holds any",
        path, axes.data ? (char *)axes.data : "none");
    fv__bytes_release(&axes);
    return FV_ERROR_USAGE;
}

static fv_status layout(const fv_image_file *file, fv_file_layout *chosen, fv_error *error) {
    FV_TRY(check_axes(file->path, file->type, error));
    if (!pixel_type(file->type->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "%s: OME-TIFF has no pixels of type %s; convert(image, \"%s\") can be written",
                       file->path, fv_dtype_name(file->type->dtype),
                       fv_dtype_is_integer(file->type->dtype) ? "int32" : "float32");
    return fv__tiff_ome_layout(file, chosen, error);
}

/* ---------------------------------------------------------------- the description */

static const char *unit_sign(const char *unit) {
    static const char *const signs[][2] = { { "micrometer", "µm" }, { "nanometer", "nm" }, { "millimeter", "mm" },
                                            { "centimeter", "cm" }, { "meter", "m" },      { "angstrom", "Å" },
                                            { "second", "s" },      { "inch", "in" } };
    for (int i = 0; i < FV_COUNT(signs); i++)
        if (!strcmp(signs[i][0], unit)) return signs[i][1];
    return "pixel";
}

/* Nothing is said about an axis of which nothing is known. */
static void put_spacing(fv_bytes *out, const fv_image_type *type, int d) {
    char letter = (char)(type->axis[d][0] - 'a' + 'A');
    if (letter == 'C' || (type->spacing[d] == 1 && !type->unit[d][0])) return;
    if (letter == 'T')
        fv__bytes_printf(out, " TimeIncrement=\"%.17g\" TimeIncrementUnit=\"s\"", type->spacing[d]);
    else
        fv__bytes_printf(out, " PhysicalSize%c=\"%.17g\" PhysicalSize%cUnit=\"%s\"", letter, type->spacing[d], letter,
                         unit_sign(type->unit[d]));
}

void fv__tiff_ome_write(const fv_image_type *type, int leading, int64_t samples, fv_bytes *out) {
    int64_t sizes[3] = { 1, 1, samples }; /* t, z, c */
    char    order[8] = "XY";
    int     n = 2;
    for (int d = leading - 1; d >= 0; d--) { /* the last page axis runs fastest */
        order[n++] = (char)(type->axis[d][0] - 'a' + 'A');
        sizes[strchr("tzc", type->axis[d][0]) - "tzc"] = type->shape[d];
    }
    for (const char *rest = "CZT"; *rest; rest++)
        if (!strchr(order, *rest)) order[n++] = *rest;
    fv__bytes_printf(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\" "
        "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:schemaLocation=\"http://www.openmicroscopy.org/"
        "Schemas/OME/2016-06 http://www.openmicroscopy.org/Schemas/OME/2016-06/ome.xsd\" Creator=\"fovea\">"
        "<Image ID=\"Image:0\" Name=\"image\"><Pixels ID=\"Pixels:0\" DimensionOrder=\"%s\" Type=\"%s\" SizeX=\"%lld\" "
        "SizeY=\"%lld\" SizeZ=\"%lld\" SizeC=\"%lld\" SizeT=\"%lld\" BigEndian=\"%s\"",
        order, pixel_type(type->dtype), (long long)type->shape[leading + 1], (long long)type->shape[leading], (long long)sizes[1],
        (long long)sizes[2], (long long)sizes[0], __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? "false" : "true");
    for (int d = 0; d < type->ndim; d++) put_spacing(out, type, d);
    fv__bytes_printf(out, ">");
    fv__tiff_ome_channels(type, sizes[2] / samples, samples, out);
    fv__bytes_printf(out, "<TiffData/></Pixels></Image></OME>");
}

const fv_format fv_format_ome_tiff = {
    .name = "ome_tiff",
    .extensions = "ome.tif ome.tiff",
    .brief = "OME-TIFF: a TIFF with OME's description; it is read as any TIFF",
    .writes = "with a pyramid if longer than 2048 pixels; `levels`",
    .keeps = "axes t z c y x, spacing, units, names and colours of channels",
    .compressions = "deflate|zstd|lzw|none",
    .takes = "levels",
    .layout = layout,
    .create = fv__tiff_ome_create,
    .encode = fv__tiff_encode,
    .assemble = fv__tiff_assemble,
    .begin = fv__tiff_begin,
    .put = fv__tiff_put,
    .sync = fv__tiff_sync,
    .finish = fv__tiff_sync,
    .free_writer = fv__tiff_free_writer,
};
