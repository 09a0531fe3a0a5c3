/* Which axes the pages of a TIFF are and how large a voxel is: what ImageJ, OME and tifffile write into the description.
 *
 * ImageJ:   lines "channels=2", "slices=30", "frames=5", "unit=micron", "spacing=0.5"; pages run t z c, c fastest.
 * OME:      XML with <Pixels DimensionOrder="XYZCT" SizeZ="30" ... PhysicalSizeX="0.1">.
 * tifffile: JSON {"shape": [5, 30, 400, 400], ...}; "names", "spacing", "origin", "unit" and "channels" in it are Fovea's.
 * Without any of them pages are z. A resolution in centimetres or inches counts as a measurement where pixels are smaller than
 * 20 micrometres; a larger one was made for a printer. */
#include "formats/tiff_parts.h"
#include "op/channels.h"
#include "op/place.h"
#include <cjson/cJSON.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- the type under construction */

static void set_axis(fv_image_type *type, int d, const char *name, double spacing, const char *unit) {
    snprintf(type->axis[d], sizeof type->axis[d], "%s", name);
    if (spacing > 0 && isfinite(spacing)) {
        type->spacing[d] = spacing;
        snprintf(type->unit[d], sizeof type->unit[d], "%s", unit);
    }
}

/* An axis in front; false if there is no room. */
static bool push_axis(fv_image_type *type, const char *name, int64_t size) {
    if (type->ndim == FV_MAX_DIMS) return false;
    for (int d = type->ndim; d > 0; d--) {
        type->shape[d] = type->shape[d - 1];
        type->spacing[d] = type->spacing[d - 1];
        type->origin[d] = type->origin[d - 1];
        memcpy(type->axis[d], type->axis[d - 1], sizeof type->axis[d]);
        memcpy(type->unit[d], type->unit[d - 1], sizeof type->unit[d]);
    }
    type->ndim++;
    type->shape[0] = size;
    type->spacing[0] = 1;
    type->origin[0] = 0;
    type->unit[0][0] = 0;
    snprintf(type->axis[0], sizeof type->axis[0], "%s", name);
    return true;
}

static int find_axis(const fv_image_type *type, const char *name) {
    for (int d = 0; d < type->ndim; d++)
        if (!strcmp(type->axis[d], name)) return d;
    return -1;
}

static void set_spacing(fv_image_type *type, const char *name, double spacing, const char *unit) {
    int d = find_axis(type, name);
    if (d >= 0) set_axis(type, d, name, spacing, unit);
}

/* Axes in front from sizes, slowest first; false (and nothing changed) if they do not multiply to the number of pages. */
static bool push_axes(fv_image_type *type, int n, const char *const *names, const int64_t *sizes, int64_t pages) {
    int64_t total = 1;
    int     axes = 0;
    for (int i = 0; i < n; i++) {
        if (sizes[i] < 1 || !fv__mul(total, sizes[i], &total)) return false;
        axes += sizes[i] > 1;
        if (sizes[i] > 1 && find_axis(type, names[i]) >= 0) return false;
    }
    if (total != pages || type->ndim + axes > FV_MAX_DIMS) return false;
    for (int i = n - 1; i >= 0; i--)
        if (sizes[i] > 1) push_axis(type, names[i], sizes[i]);
    return true;
}

/* ---------------------------------------------------------------- ImageJ */

/* Value of a line "key=value", or NULL. */
static const char *line_value(const char *text, const char *key, char value[64]) {
    size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) || line[length] != '=') continue;
        snprintf(value, 64, "%.*s", (int)FV_MIN(strcspn(line + length + 1, "\r\n"), (size_t)63), line + length + 1);
        return value;
    }
    return NULL;
}

static int64_t line_count(const char *text, const char *key) {
    char value[64];
    return line_value(text, key, value) ? atoll(value) : 1;
}

static double line_number(const char *text, const char *key) {
    char value[64];
    return line_value(text, key, value) ? atof(value) : 0;
}

int64_t fv__tiff_imagej_images(const char *description) {
    if (!description || strncmp(description, "ImageJ=", 7)) return 1;
    return FV_MAX(line_count(description, "images"), 1);
}

static bool from_imagej(const char *text, const double resolution[2], int64_t pages, fv_image_type *type) {
    static const char *const names[] = { "t", "z", "c" };
    char                     value[64], unit[16];
    const int64_t            sizes[] = { line_count(text, "frames"), line_count(text, "slices"), line_count(text, "channels") };
    if (strncmp(text, "ImageJ=", 7)) return false;
    bool found = pages == 1 || push_axes(type, 3, names, sizes, pages);
    if (!found) found = push_axis(type, "z", pages);
    fv__unit_name(line_value(text, "unit", value), unit);
    if (unit[0] && strcmp(unit, "inch")) {
        set_spacing(type, "x", 1 / resolution[0], unit);
        set_spacing(type, "y", 1 / resolution[1], unit);
    }
    set_spacing(type, "z", fabs(line_number(text, "spacing")), unit);
    set_spacing(type, "t", line_number(text, "finterval"), "second");
    return found;
}

/* ---------------------------------------------------------------- OME */

/* Value of an attribute inside one tag, or NULL. */
static const char *attribute(const char *tag, const char *end, const char *name, char value[64]) {
    size_t length = strlen(name);
    for (const char *p = tag; (p = strstr(p, name)) && p < end; p += length) {
        if (!isspace((unsigned char)p[-1]) || p[length] != '=' || p[length + 1] != '"') continue;
        snprintf(value, 64, "%.*s", (int)FV_MIN(strcspn(p + length + 2, "\""), (size_t)63), p + length + 2);
        return value;
    }
    return NULL;
}

static bool from_ome(const char *text, int64_t pages, fv_image_type *type) {
    static const char *const lower[] = { "x", "y", "z", "c", "t" };
    static const char        letters[] = "XYZCT";
    const char              *tag = strstr(text, "<Pixels"), *end = tag ? strchr(tag, '>') : NULL;
    char                     order[64], value[64], key[32], unit[16];
    if (!strstr(text, "<OME") || !end || !attribute(tag, end, "DimensionOrder", order) || strlen(order) != 5) return false;
    const char *names[3];
    int64_t     sizes[3], inside = find_axis(type, "c") >= 0 ? type->shape[find_axis(type, "c")] : 1;
    for (int i = 0; i < 3; i++) { /* XYZCT: Z runs fastest, T slowest */
        const char *letter = strchr(letters, order[4 - i]);
        if (!letter) return false;
        snprintf(key, sizeof key, "Size%c", *letter);
        names[i] = lower[letter - letters];
        sizes[i] = attribute(tag, end, key, value) ? atoll(value) : 1;
        if (*letter == 'C') sizes[i] = FV_MAX(sizes[i] / inside, 1);
    }
    if (pages > 1 && !push_axes(type, 3, names, sizes, pages)) return false;
    for (int i = 0; i < 3; i++) {
        snprintf(key, sizeof key, "PhysicalSize%cUnit", letters[i]);
        fv__unit_name(attribute(tag, end, key, value) ? value : "um", unit);
        snprintf(key, sizeof key, "PhysicalSize%c", letters[i]);
        if (attribute(tag, end, key, value)) set_spacing(type, lower[i], atof(value), unit);
    }
    return true;
}

/* Metres of a unit; 0 where it is no length. */
static double metres(const char *unit) {
    static const struct {
        const char *unit;
        double      metres;
    } lengths[] = { { "angstrom", 1e-10 },  { "nanometer", 1e-9 }, { "micrometer", 1e-6 }, { "millimeter", 1e-3 },
                    { "centimeter", 1e-2 }, { "inch", 0.0254 },    { "meter", 1 } };
    for (int i = 0; i < FV_COUNT(lengths); i++)
        if (!strcmp(lengths[i].unit, unit)) return lengths[i].metres;
    return 0;
}

/* A position in pixels; one whose unit is no length counts in that of the pixels. */
static double in_pixels(double position, const char *word, const fv_image_type *type, int d) {
    char unit[16];
    fv__unit_name(word, unit);
    if (word && !strncmp(word, "pixel", 5)) return position;
    double here = metres(unit), pixel = metres(type->unit[d]);
    return position * (here > 0 && pixel > 0 ? here / pixel : 1) / type->spacing[d];
}

bool fv__tiff_ome_stage(const char *description, const fv_image_type *type, double stage[3]) {
    static const char *const names[] = { "z", "y", "x" };
    const char              *tag = description && strstr(description, "<OME") ? strstr(description, "<Plane ") : NULL;
    const char              *end = tag ? strchr(tag, '>') : NULL;
    char                     value[64], unit[64], key[32];
    for (int i = 0; i < 3; i++) {
        int d = find_axis(type, names[i]);
        snprintf(key, sizeof key, "Position%c", "ZYX"[i]);
        bool known = end && d >= 0 && attribute(tag, end, key, value);
        snprintf(key, sizeof key, "Position%cUnit", "ZYX"[i]);
        stage[i] = known ? in_pixels(atof(value), attribute(tag, end, key, unit), type, d) : 0;
        if (i && !(known && isfinite(stage[i]))) return false;
    }
    if (!isfinite(stage[0])) stage[0] = 0;
    return true;
}

/* ---------------------------------------------------------------- tifffile's JSON */

static bool shape_fits(const cJSON *shape, int64_t pages, const fv_image_type *type) {
    int     n = cJSON_GetArraySize(shape), leading = n - type->ndim;
    int64_t total = 1;
    if (leading < 0 || n > FV_MAX_DIMS) return false;
    for (int i = 0; i < n; i++) {
        double size = cJSON_GetNumberValue(cJSON_GetArrayItem(shape, i));
        if (!(size >= 1 && size < 0x1p53)) return false;
        if (i < leading ? !fv__mul(total, (int64_t)size, &total) : (int64_t)size != type->shape[i - leading]) return false;
    }
    return total == pages;
}

static void channels_from_json(const cJSON *list, fv_image_type *type) {
    const cJSON *item;
    int          k = 0;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != fv__channels_count(type) || !fv__channels_begin(type)) return;
    cJSON_ArrayForEach(item, list) {
        fv_channel *channel = &type->channel[k++];
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "name"));
        double      color = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(item, "color")),
               low = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(item, "low")),
               high = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(item, "high"));
        if (name) fv__channel_call(channel, name, strlen(name));
        channel->has_color = color >= 0 && color <= 0xffffff;
        channel->color = channel->has_color ? (uint32_t)color : 0;
        if (low < high && isfinite(high - low)) channel->low = low;
        if (low < high && isfinite(high - low)) channel->high = high;
    }
}

static bool from_json(const char *text, int64_t pages, fv_image_type *type) {
    static const char *const defaults[] = { "z", "t", "p", "q" };
    cJSON                   *root = text[0] == '{' ? cJSON_Parse(text) : NULL;
    const cJSON             *shape = cJSON_GetObjectItemCaseSensitive(root, "shape"),
                *names = cJSON_GetObjectItemCaseSensitive(root, "names");
    const cJSON *spacing = cJSON_GetObjectItemCaseSensitive(root, "spacing"),
                *origin = cJSON_GetObjectItemCaseSensitive(root, "origin"),
                *unit = cJSON_GetObjectItemCaseSensitive(root, "unit");
    bool fits = cJSON_IsArray(shape) && shape_fits(shape, pages, type);
    if (fits) {
        for (int i = cJSON_GetArraySize(shape) - type->ndim - 1, k = 0; i >= 0; i--, k++)
            push_axis(type, defaults[k], (int64_t)cJSON_GetNumberValue(cJSON_GetArrayItem(shape, i)));
        for (int d = 0; d < type->ndim; d++) {
            const char *name = cJSON_GetStringValue(cJSON_GetArrayItem(names, d)),
                       *word = cJSON_GetStringValue(cJSON_GetArrayItem(unit, d));
            double step = cJSON_GetNumberValue(cJSON_GetArrayItem(spacing, d)),
                   from = cJSON_GetNumberValue(cJSON_GetArrayItem(origin, d));
            if (name && name[0] && strlen(name) < sizeof type->axis[d]) snprintf(type->axis[d], sizeof type->axis[d], "%s", name);
            if (step > 0 && isfinite(step)) type->spacing[d] = step;
            if (isfinite(from)) type->origin[d] = from;
            if (word && strlen(word) < sizeof type->unit[d]) snprintf(type->unit[d], sizeof type->unit[d], "%s", word);
        }
        channels_from_json(cJSON_GetObjectItemCaseSensitive(root, "channels"), type);
    }
    cJSON_Delete(root);
    return fits;
}

/* ---------------------------------------------------------------- reading */

static void from_resolution(const double resolution[2], int unit, fv_image_type *type) {
    double micrometres = unit == RESUNIT_CENTIMETER ? 10000 : unit == RESUNIT_INCH ? 25400 : 0;
    for (int i = 0; i < 2; i++) {
        double spacing = micrometres / resolution[i];
        if (spacing > 0 && spacing < 20) set_spacing(type, i ? "y" : "x", spacing, "micrometer");
    }
}

void fv__tiff_axes_read(const char *description, const double resolution[2], int unit, int64_t pages, fv_image_type *type) {
    if (description && (from_imagej(description, resolution, pages, type) || from_ome(description, pages, type) ||
                        from_json(description, pages, type)))
        return;
    from_resolution(resolution, unit, type);
    if (pages > 1) push_axis(type, "z", pages);
}

/* ---------------------------------------------------------------- writing */

bool fv__tiff_hyperstack_axes(const fv_image_type *type, int leading) {
    bool good = !strcmp(type->axis[leading], "y") && !strcmp(type->axis[leading + 1], "x");
    for (int d = 0; d < leading; d++) good = good && strlen(type->axis[d]) == 1 && strchr("tzc", type->axis[d][0]);
    return good;
}

/* True if ImageJ's words say everything: leading axes among t z c in this order, then y x (c), no origin, one unit. */
static bool fits_imagej(const fv_image_type *type, int leading) {
    static const char *const order[] = { "t", "z", "c" };
    int                      next = 0;
    if (strcmp(type->axis[leading], "y") || strcmp(type->axis[leading + 1], "x")) return false;
    for (int d = 0; d < leading; d++) {
        while (next < 3 && strcmp(type->axis[d], order[next])) next++;
        if (next++ >= 3) return false;
    }
    for (int d = 0; d < type->ndim; d++) {
        bool time = !strcmp(type->axis[d], "t"), channel = !strcmp(type->axis[d], "c");
        if (type->origin[d] != 0) return false;
        if (channel ? type->spacing[d] != 1
            : time  ? strcmp(type->unit[d], type->spacing[d] == 1 ? "" : "second") != 0
                    : strcmp(type->unit[d], type->unit[leading + 1]) != 0)
            return false;
    }
    /* Without a unit ImageJ has no pixel size. */
    return type->unit[leading + 1][0] || (type->spacing[leading] == 1 && type->spacing[leading + 1] == 1);
}

enum { TOGETHER = 7 }; /* channels that ImageJ shows at once */

static void write_imagej(const fv_image_type *type, int leading, fv_bytes *out) {
    static const char *const short_units[][2] = { { "micrometer", "micron" }, { "nanometer", "nm" },   { "picometer", "pm" },
                                                  { "millimeter", "mm" },     { "centimeter", "cm" },  { "meter", "m" },
                                                  { "second", "sec" },        { "millisecond", "ms" }, { "inch", "in" } };
    int64_t                  images = 1;
    int                      t = -1, z = -1, c = -1;
    const char              *unit = type->unit[leading + 1];
    for (int d = 0; d < leading; d++) {
        images *= type->shape[d];
        if (!strcmp(type->axis[d], "t")) t = d;
        if (!strcmp(type->axis[d], "z")) z = d;
        if (!strcmp(type->axis[d], "c")) c = d;
    }
    for (int i = 0; i < FV_COUNT(short_units); i++)
        if (!strcmp(short_units[i][0], unit)) unit = short_units[i][1];
    fv__bytes_printf(out, "ImageJ=1.11a\nimages=%lld\n", (long long)images);
    if (c >= 0) fv__bytes_printf(out, "channels=%lld\n", (long long)type->shape[c]);
    if (z >= 0) fv__bytes_printf(out, "slices=%lld\n", (long long)type->shape[z]);
    if (t >= 0) fv__bytes_printf(out, "frames=%lld\n", (long long)type->shape[t]);
    if (leading > 1 || c >= 0)
        fv__bytes_printf(out, "hyperstack=true\nmode=%s\n",
                         c < 0 || !type->nchannels     ? "grayscale"
                         : type->nchannels <= TOGETHER ? "composite"
                                                       : "color");
    if (unit[0]) fv__bytes_printf(out, "unit=%s\n", unit);
    if (z >= 0 && (type->spacing[z] != 1 || unit[0])) fv__bytes_printf(out, "spacing=%.17g\n", type->spacing[z]);
    if (t >= 0 && type->spacing[t] != 1) fv__bytes_printf(out, "finterval=%.17g\n", type->spacing[t]);
}

static void write_json_channels(const fv_image_type *type, fv_bytes *out) {
    cJSON *list = cJSON_CreateArray();
    for (int k = 0; k < type->nchannels; k++) {
        const fv_channel *channel = &type->channel[k];
        cJSON            *item = cJSON_CreateObject();
        if (channel->name[0]) cJSON_AddStringToObject(item, "name", channel->name);
        if (channel->has_color) cJSON_AddNumberToObject(item, "color", channel->color);
        if (channel->low < channel->high) cJSON_AddNumberToObject(item, "low", channel->low);
        if (channel->low < channel->high) cJSON_AddNumberToObject(item, "high", channel->high);
        cJSON_AddItemToArray(list, item);
    }
    char *text = cJSON_PrintUnformatted(list);
    fv__bytes_printf(out, ", \"channels\": %s", text);
    cJSON_free(text);
    cJSON_Delete(list);
}

static void write_json(const fv_image_type *type, fv_bytes *out) {
    fv__bytes_printf(out, "{\"shape\": [");
    for (int d = 0; d < type->ndim; d++) fv__bytes_printf(out, "%s%lld", d ? ", " : "", (long long)type->shape[d]);
    fv__bytes_printf(out, "], \"names\": [");
    for (int d = 0; d < type->ndim; d++) fv__bytes_printf(out, "%s\"%s\"", d ? ", " : "", type->axis[d]);
    fv__bytes_printf(out, "], \"spacing\": [");
    for (int d = 0; d < type->ndim; d++) fv__bytes_printf(out, "%s%.17g", d ? ", " : "", type->spacing[d]);
    fv__bytes_printf(out, "], \"origin\": [");
    for (int d = 0; d < type->ndim; d++) fv__bytes_printf(out, "%s%.17g", d ? ", " : "", type->origin[d]);
    fv__bytes_printf(out, "], \"unit\": [");
    for (int d = 0; d < type->ndim; d++) fv__bytes_printf(out, "%s\"%s\"", d ? ", " : "", type->unit[d]);
    fv__bytes_printf(out, "]");
    if (type->nchannels) write_json_channels(type, out);
    fv__bytes_printf(out, "}");
}

void fv__tiff_axes_write(const fv_image_type *type, int channels_inside, bool hyperstack, fv_bytes *description,
                         double resolution[2], int *unit) {
    int  leading = type->ndim - 2 - (channels_inside > 0);
    bool plain = !hyperstack && !type->nchannels && leading == 0 && !strcmp(type->axis[0], "y") && !strcmp(type->axis[1], "x");
    for (int d = 0; d < type->ndim; d++) plain = plain && type->spacing[d] == 1 && type->origin[d] == 0 && !type->unit[d][0];
    *unit = RESUNIT_NONE;
    resolution[0] = resolution[1] = 1;
    if (plain) return;
    if (!hyperstack && !fits_imagej(type, leading)) {
        write_json(type, description);
        return;
    }
    write_imagej(type, leading, description);
    resolution[0] = 1 / type->spacing[leading + 1];
    resolution[1] = 1 / type->spacing[leading];
}
