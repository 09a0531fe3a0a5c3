/* Channels of OME-Zarr images. https://ngff.openmicroscopy.org/0.5/#omero-md */
#include "formats/zarr_channels.h"
#include "base/take.h"
#include "op/channels.h"
#include "op/kernels.h"
#include <float.h>
#include <stdio.h>
#include <stdlib.h>

static const cJSON *get(const cJSON *object, const char *name) { return cJSON_GetObjectItemCaseSensitive(object, name); }

/* ---------------------------------------------------------------- ranges that nobody has said */

typedef struct {
    double low[FV_MAX_CHANNELS], high[FV_MAX_CHANNELS];
} extremes;

enum { AT_ONCE = 1024 };

static void see_row(extremes *e, int channel, const char *row, fv_dtype dtype, int64_t n) {
    double value[AT_ONCE];
    for (int64_t i = 0; i < n; i += AT_ONCE) {
        int64_t count = FV_MIN(n - i, AT_ONCE);
        fv__kernels_current()->convert(value, FV_FLOAT64, row + (size_t)i * fv_dtype_size(dtype), dtype, count);
        for (int64_t k = 0; k < count; k++) {
            if (value[k] < e->low[channel]) e->low[channel] = value[k];
            if (value[k] > e->high[channel]) e->high[channel] = value[k];
        }
    }
}

static fv_status see_level(fv_reader *reader, int c, extremes *e, fv_error *error) {
    fv_image_type *type = &reader->type;
    fv_lattice     lattice;
    void          *memory;
    int64_t        voxels = 1;
    fv__lattice_init(&lattice, type->ndim, type->shape, reader->chunk);
    for (int d = 0; d < type->ndim; d++) voxels *= lattice.chunk[d];
    size_t bytes = (size_t)voxels * fv_dtype_size(type->dtype);
    FV_TRY(FV_TAKE_BUFFER(memory, bytes, error));
    fv_status status = FV_OK;
    for (int64_t i = 0; i < fv__lattice_count(&lattice) && status == FV_OK; i++) {
        fv_region region = fv__lattice_chunk(&lattice, i);
        fv_block  block;
        fv_rows   rows;
        fv__block_init(&block, type->dtype, &region, memory);
        status = reader->format->read(reader, &block, error);
        for (fv__rows_begin(&rows, &region); status == FV_OK && fv__rows_next(&rows);)
            see_row(e, c < 0 ? 0 : (int)rows.position[c], fv__block_at(&block, rows.position), type->dtype,
                    region.size[type->ndim - 1]);
    }
    fv__buffer_free(memory, bytes);
    return status;
}

static fv_status measure(const fv_zarr_writer *w, extremes *e, fv_error *error) {
    char      *folder = fv__zarr_level_folder(w, w->design.nlevels - 1);
    fv_reader *reader;
    int        c = -1;
    for (int d = 0; d < w->base.type.ndim; d++)
        if (!strcmp(w->base.type.axis[d], "c")) c = d;
    for (int k = 0; k < FV_MAX_CHANNELS; k++) {
        e->low[k] = DBL_MAX;
        e->high[k] = -DBL_MAX;
    }
    fv_status status = fv_format_zarr.open(folder, NULL, &reader, error);
    if (status == FV_OK) {
        status = see_level(reader, c, e, error);
        reader->format->close(reader);
    }
    free(folder);
    return status;
}

/* ---------------------------------------------------------------- writing */

static bool has_range(const fv_channel *channel) { return channel->low < channel->high; }

/* Between what the values of a type can be; of real numbers that is what they are. */
static cJSON *compose_window(fv_dtype dtype, double low, double high) {
    cJSON *window = cJSON_CreateObject();
    double least = low, most = high;
    if (dtype == FV_UINT8 || dtype == FV_UINT16) {
        least = 0;
        most = dtype == FV_UINT8 ? UINT8_MAX : UINT16_MAX;
    }
    cJSON_AddNumberToObject(window, "min", FV_MIN(least, low));
    cJSON_AddNumberToObject(window, "max", FV_MAX(most, high));
    cJSON_AddNumberToObject(window, "start", low);
    cJSON_AddNumberToObject(window, "end", high);
    return window;
}

static cJSON *compose_channel(const fv_image_type *type, int k, double low, double high) {
    cJSON *channel = cJSON_CreateObject();
    char   color[8];
    snprintf(color, sizeof color, "%06X", (unsigned)fv__channel_color(type, k) & 0xffffff);
    cJSON_AddBoolToObject(channel, "active", true);
    cJSON_AddStringToObject(channel, "color", color);
    if (type->channel[k].name[0]) cJSON_AddStringToObject(channel, "label", type->channel[k].name);
    cJSON_AddItemToObject(channel, "window", compose_window(type->dtype, low, high));
    return channel;
}

fv_status fv__zarr_channels_compose(const fv_zarr_writer *w, cJSON *ome, fv_error *error) {
    const fv_image_type *type = &w->base.type;
    extremes             found;
    bool                 known = true;
    if (!ome || !type->nchannels || w->design.label || fv_dtype_is_complex(type->dtype)) return FV_OK;
    for (int k = 0; k < type->nchannels; k++) known = known && has_range(&type->channel[k]);
    if (!known) FV_TRY(measure(w, &found, error));
    cJSON *omero = cJSON_AddObjectToObject(ome, "omero"), *channels = cJSON_AddArrayToObject(omero, "channels");
    for (int k = 0; k < type->nchannels; k++) {
        const fv_channel *channel = &type->channel[k];
        double            low = has_range(channel) ? channel->low : found.low[k];
        double            high = has_range(channel) ? channel->high : found.high[k];
        if (!(low < high)) high = (low = low == high ? low : 0) + 1; /* a constant channel, or one of nan alone */
        cJSON_AddItemToArray(channels, compose_channel(type, k, low, high));
    }
    cJSON_AddStringToObject(cJSON_AddObjectToObject(omero, "rdefs"), "model", "color");
    return FV_OK;
}

/* ---------------------------------------------------------------- reading */

static void parse_channel(const cJSON *from, fv_channel *to) {
    const char  *label = cJSON_GetStringValue(get(from, "label")), *color = cJSON_GetStringValue(get(from, "color"));
    const cJSON *low = get(get(from, "window"), "start"), *high = get(get(from, "window"), "end");
    char        *end;
    if (label) fv__channel_call(to, label, strlen(label));
    if (color && *color == '#') color++;
    unsigned long value = color ? strtoul(color, &end, 16) : 0;
    if (color && strlen(color) == 6 && end == color + 6) {
        to->has_color = true;
        to->color = (uint32_t)value;
    }
    if (cJSON_IsNumber(low) && cJSON_IsNumber(high) && low->valuedouble < high->valuedouble) {
        to->low = low->valuedouble;
        to->high = high->valuedouble;
    }
}

void fv__zarr_channels_parse(const cJSON *attributes, fv_image_type *type) {
    const cJSON *omero = get(get(attributes, "ome"), "omero"), *channel;
    if (!omero) omero = get(attributes, "omero");
    const cJSON *channels = get(omero, "channels");
    if (!cJSON_IsArray(channels) || cJSON_GetArraySize(channels) != fv__channels_count(type) || !fv__channels_begin(type)) return;
    int k = 0;
    cJSON_ArrayForEach(channel, channels) parse_channel(channel, &type->channel[k++]);
}
