/* Units of the columns of a table. */
#include "op/column_units.h"
#include <cjson/cJSON.h>
#include <stdio.h>

/* Whether a name is what the pattern of a column's description stands for; see fv_column_doc. */
static bool stands_for(const char *pattern, const char *name, const fv_image_type *image) {
    bool axes = !strcmp(pattern, "<axes of the image>");
    for (int d = 0; image && axes && d < image->ndim; d++)
        if (!strcmp(image->axis[d], name)) return true;
    const char *axis = strstr(pattern, "AXIS");
    size_t      length = strlen(pattern), before = axis ? (size_t)(axis - pattern) : 0;
    if (axis && image && !strncmp(pattern, name, before))
        for (int d = 0; d < image->ndim; d++)
            if (!strcmp(image->axis[d], name + before)) return true;
    bool numbered = length > 2 && !strcmp(pattern + length - 2, "_N");
    if (numbered)
        return !strncmp(pattern, name, length - 1) && name[length - 1] &&
               !name[length - 1 + strspn(name + length - 1, "0123456789")];
    return !strcmp(pattern, name);
}

/* What people write for the unit of the image's spacing, if all axes in space have the same; NULL: it is not known. */
static const char *unit_of_length(const fv_image_type *image) {
    static const char *const known[][2] = {
        { "micrometer", "µm" }, { "nanometer", "nm" }, { "millimeter", "mm" }, { "centimeter", "cm" },
        { "meter", "m" },       { "angstrom", "Å" },   { "pixel", "px" },      { "inch", "in" },
    };
    int spatial[FV_MAX_DIMS], count = image ? fv_image_type_spatial(image, spatial) : 0;
    for (int i = 1; i < count; i++)
        if (strcmp(image->unit[spatial[i]], image->unit[spatial[0]])) return NULL;
    if (!count) return NULL;
    const char *unit = image->unit[spatial[0]];
    bool        plain = !*unit;
    for (int i = 0; i < count; i++) plain = plain && image->spacing[spatial[i]] == 1;
    if (plain) return "px";
    for (int i = 0; i < FV_COUNT(known); i++)
        if (!strcmp(known[i][0], unit)) return known[i][1];
    return *unit ? unit : NULL;
}

/* A volume of a plane is its area, and the area of a contact there a length. */
static int exponent_of(const char *unit, const fv_image_type *image) {
    int spatial[FV_MAX_DIMS], count = image ? fv_image_type_spatial(image, spatial) : 0;
    return !strcmp(unit, "volume") ? count : !strcmp(unit, "area") ? FV_MAX(FV_MIN(2, count), 1) : !strcmp(unit, "length");
}

static void add_unit(cJSON *metadata, const char *column, const char *unit, const fv_image_type *image) {
    static const char *const powers[] = { "", "", "²", "³" };
    int                      exponent = exponent_of(unit, image);
    const char              *length = unit_of_length(image);
    char                     name[64], text[32];
    if (exponent && (!length || exponent >= FV_COUNT(powers))) return;
    snprintf(name, sizeof name, FV_UNIT_PREFIX "%s", column);
    snprintf(text, sizeof text, "%.20s%s", exponent ? length : unit, exponent ? powers[exponent] : "");
    cJSON_DeleteItemFromObjectCaseSensitive(metadata, name);
    cJSON_AddStringToObject(metadata, name, text);
}

static void add_units(cJSON *metadata, const fv_op *op, const fv_table_type *table, const fv_image_type *image) {
    for (int c = 0; c < table->ncolumns; c++)
        for (const fv_column_doc *doc = op->columns; doc->name; doc++)
            if (doc->unit && stands_for(doc->name, table->column[c].name, image))
                add_unit(metadata, table->column[c].name, doc->unit, image);
}

void fv__column_units(const fv_op *op, const fv_type *const *in, int ninputs, fv_type *out, fv_arena *arena) {
    const fv_image_type *image = NULL;
    for (int i = 0; i < ninputs && !image; i++)
        if (in[i] && in[i]->kind == FV_KIND_IMAGE) image = &in[i]->image;
    if (!image || !op->columns || out->kind != FV_KIND_TABLE || !out->table) return;
    cJSON *metadata = cJSON_Parse(out->table->metadata ? out->table->metadata : "{}");
    if (metadata) add_units(metadata, op, out->table, image);
    if (metadata && metadata->child) {
        fv_table_type *table = fv__arena_alloc(arena, sizeof *table);
        char          *text = cJSON_PrintUnformatted(metadata);
        *table = *out->table;
        table->metadata = fv__arena_strdup(arena, text);
        out->table = table;
        cJSON_free(text);
    }
    cJSON_Delete(metadata);
}
