/* Names, colours and ranges of channels in a TIFF: OME's <Channel Name="DAPI" Color="65535">, ImageJ's own metadata, and
 * "channels" in the JSON that Fovea writes.
 *
 * ImageJ keeps its metadata in two tags. One lists sizes: of a header, then of each entry. The other holds the header (a magic
 * number, then kind and number of the entries of each kind) and the entries: "labl" a label of each plane in UTF-16, "rang" low
 * and high of each channel, "luts" 256 reds, greens and blues of each. All numbers are in the byte order of the file. */
#include "base/xml_tags.h"
#include "formats/tiff_parts.h"
#include "op/channels.h"
#include <stdlib.h>

enum { LUT = 768, MOST_LABELS = 1 << 16, LONGEST_LABEL = 128 };
static const uint32_t MAGIC = 0x494a494a, LABELS = 0x6c61626c, RANGES = 0x72616e67, LUTS = 0x6c757473;

/* ---------------------------------------------------------------- OME */

static void parse_ome(const char *text, fv_image_type *type) {
    fv_channel  found[FV_MAX_CHANNELS] = { 0 };
    fv_xml_tag  tag = { .end = text };
    const char *limit = text + strlen(text);
    char        value[256], *end;
    int         count = 0;
    bool        told = false;
    while (fv__xml_next(&tag, limit) && !fv__xml_is(&tag, "/Pixels")) {
        if (!fv__xml_is(&tag, "Channel")) continue;
        if (count == FV_MAX_CHANNELS) return;
        fv_channel *channel = &found[count++];
        if (fv__xml_attribute(&tag, "Name", value, sizeof value)) {
            fv__xml_unescape(value);
            fv__channel_call(channel, value, strlen(value));
        }
        if (fv__xml_attribute(&tag, "Color", value, sizeof value)) {
            long long color = strtoll(value, &end, 10);
            channel->has_color = end > value && color >= INT32_MIN && color <= UINT32_MAX;
            channel->color = channel->has_color ? (uint32_t)color >> 8 : 0; /* red, green, blue, alpha */
        }
        told = told || channel->name[0] || channel->has_color;
    }
    if (!told || count != fv__channels_count(type) || !fv__channels_begin(type)) return;
    memcpy(type->channel, found, sizeof found);
}

void fv__tiff_ome_channels(const fv_image_type *type, int64_t channels, int64_t samples, fv_bytes *out) {
    for (int64_t c = 0; c < channels; c++) {
        const fv_channel *channel = samples == 1 && channels == type->nchannels ? &type->channel[c] : NULL;
        fv__bytes_printf(out, "<Channel ID=\"Channel:0:%lld\" SamplesPerPixel=\"%lld\"", (long long)c, (long long)samples);
        if (channel && channel->name[0]) {
            char *name = fv__xml_escaped(channel->name);
            fv__bytes_printf(out, " Name=\"%s\"", name);
            free(name);
        }
        if (channel && channel->has_color) fv__bytes_printf(out, " Color=\"%d\"", (int)(channel->color << 8 | 0xff));
        fv__bytes_printf(out, "/>");
    }
}

/* ---------------------------------------------------------------- ImageJ's metadata, read */

typedef struct {
    const uint8_t *data;
    size_t         size;
    bool           big; /* endian */
} numbers;

static uint64_t number_at(const numbers *n, size_t at, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value = value << 8 | n->data[at + (size_t)(n->big ? i : bytes - 1 - i)];
    return value;
}

static void take_ranges(const numbers *n, size_t at, size_t size, fv_image_type *type) {
    for (int k = 0; k < type->nchannels && (size_t)(k + 1) * 16 <= size; k++) {
        uint64_t bits[2] = { number_at(n, at + (size_t)k * 16, 8), number_at(n, at + (size_t)k * 16 + 8, 8) };
        double   end[2];
        memcpy(end, bits, sizeof end);
        if (!(end[0] < end[1] && end[0] > -1e300 && end[1] < 1e300)) continue;
        type->channel[k].low = end[0];
        type->channel[k].high = end[1];
    }
}

/* UTF-16 as UTF-8; what lies beyond the basic plane is left out. */
static void take_label(const numbers *n, size_t at, size_t size, char label[LONGEST_LABEL]) {
    int used = 0;
    for (size_t i = 0; i + 2 <= size && used < LONGEST_LABEL - 3; i += 2) {
        unsigned c = (unsigned)number_at(n, at + i, 2);
        if (c < 0x80)
            label[used++] = (char)c;
        else if (c < 0x800) {
            label[used++] = (char)(0xc0 | c >> 6);
            label[used++] = (char)(0x80 | (c & 63));
        } else if (c < 0xd800 || c > 0xdfff) {
            label[used++] = (char)(0xe0 | c >> 12);
            label[used++] = (char)(0x80 | (c >> 6 & 63));
            label[used++] = (char)(0x80 | (c & 63));
        }
    }
    label[used] = 0;
}

typedef struct {
    char name[FV_MAX_CHANNELS][LONGEST_LABEL];
    int  planes;
    bool same; /* every plane of a channel has the label of its first */
} labels;

static void see_label(labels *l, const numbers *n, size_t at, size_t size, int channels) {
    char label[LONGEST_LABEL];
    int  channel = l->planes++ % channels;
    take_label(n, at, size, label);
    if (l->planes <= channels)
        memcpy(l->name[channel], label, sizeof label);
    else if (strcmp(l->name[channel], label))
        l->same = false;
}

static void take_lut(const numbers *n, size_t at, fv_channel *channel) {
    const uint8_t *last = n->data + at + 255; /* of the reds */
    channel->color = (uint32_t)last[0] << 16 | (uint32_t)last[256] << 8 | last[512];
    channel->has_color = true;
}

/* Entries one after another, as the header counts them. type->nchannels is set. */
static void take_entries(const numbers *n, const uint32_t *sizes, uint32_t nsizes, labels *l, fv_image_type *type) {
    size_t   at = sizes[0];
    uint32_t entry = 1;
    for (size_t kind = 4; kind + 8 <= sizes[0]; kind += 8) {
        uint32_t what = (uint32_t)number_at(n, kind, 4), count = (uint32_t)number_at(n, kind + 4, 4);
        for (uint32_t i = 0; i < count && entry < nsizes; i++, entry++) {
            size_t size = sizes[entry];
            if (size > n->size - at) return;
            if (what == LABELS) see_label(l, n, at, size, type->nchannels);
            if (what == RANGES) take_ranges(n, at, size, type);
            if (what == LUTS && size == LUT && i < (uint32_t)type->nchannels) take_lut(n, at, &type->channel[i]);
            at += size;
        }
    }
}

static void parse_imagej(TIFF *tif, fv_image_type *type) {
    uint32_t  nsizes = 0, size = 0;
    uint32_t *sizes = NULL;
    void     *data = NULL;
    if (!TIFFGetField(tif, FV_TIFF_IMAGEJ_SIZES, &nsizes, &sizes) || !TIFFGetField(tif, FV_TIFF_IMAGEJ_METADATA, &size, &data))
        return;
    numbers n = { data, size, size && *(const uint8_t *)data == 'I' };
    if (nsizes < 2 || size < 12 || sizes[0] < 12 || sizes[0] > size || number_at(&n, 0, 4) != MAGIC) return;
    labels *l = fv__calloc(sizeof *l);
    l->same = true;
    if (fv__channels_begin(type)) {
        take_entries(&n, sizes, nsizes, l, type);
        bool told = false, named = l->same && l->planes >= type->nchannels;
        for (int k = 0; k < type->nchannels; k++) {
            fv_channel *channel = &type->channel[k];
            if (named) fv__channel_call(channel, l->name[k], strlen(l->name[k]));
            told = told || channel->name[0] || channel->has_color || channel->low < channel->high;
        }
        if (!told) type->nchannels = 0;
    }
    free(l);
}

void fv__tiff_channels_read(TIFF *tif, const char *description, fv_image_type *type) {
    if (!description) return;
    if (strstr(description, "<OME")) parse_ome(description, type);
    if (!strncmp(description, "ImageJ=", 7)) parse_imagej(tif, type);
}

/* ---------------------------------------------------------------- and written */

typedef struct {
    fv_bytes sizes, header, entries;
} metadata;

static void add_entry(metadata *m, const void *data, size_t size) {
    uint32_t n = (uint32_t)size;
    fv__bytes_append(&m->sizes, &n, sizeof n);
    fv__bytes_append(&m->entries, data, size);
}

static void add_kind(metadata *m, uint32_t kind, uint32_t count) {
    uint32_t both[] = { kind, count };
    fv__bytes_append(&m->header, both, sizeof both);
}

/* The characters of the basic plane, which are those that labels are read with. */
static void add_label(metadata *m, const char *name) {
    uint16_t text[sizeof((fv_channel *)0)->name];
    size_t   n = 0;
    for (const unsigned char *p = (const unsigned char *)name; *p;) {
        unsigned c = *p++;
        int      more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
        unsigned value = more ? c & (0x3fu >> more) : c;
        for (; more && (*p & 0xc0) == 0x80; more--) value = value << 6 | (*p++ & 63);
        text[n++] = (uint16_t)(value < 0x10000 ? value : '?');
    }
    add_entry(m, text, n * sizeof *text);
}

static void add_lut(metadata *m, uint32_t color) {
    uint8_t lut[LUT];
    for (unsigned i = 0; i < 256; i++)
        for (unsigned k = 0; k < 3; k++) lut[k * 256 + i] = (uint8_t)((i * (color >> (16 - 8 * k) & 255) + 127) / 255);
    add_entry(m, lut, sizeof lut);
}

static void add_kinds(metadata *m, const fv_image_type *type, int64_t pages) {
    int    n = type->nchannels, names = 0, ranges = 0;
    double ends[2 * FV_MAX_CHANNELS];
    for (int k = 0; k < n; k++) {
        names += type->channel[k].name[0] != 0;
        ranges += type->channel[k].low < type->channel[k].high;
        ends[2 * k] = type->channel[k].low;
        ends[2 * k + 1] = type->channel[k].high;
    }
    bool labelled = names && pages <= MOST_LABELS;
    if (labelled) add_kind(m, LABELS, (uint32_t)pages);
    for (int64_t page = 0; page < pages && labelled; page++) add_label(m, type->channel[page % n].name);
    if (ranges == n) add_kind(m, RANGES, 1);
    if (ranges == n) add_entry(m, ends, 2 * (size_t)n * sizeof *ends);
    add_kind(m, LUTS, (uint32_t)n);
    for (int k = 0; k < n; k++) add_lut(m, fv__channel_color(type, k));
}

bool fv__tiff_imagej_metadata(const fv_image_type *type, int64_t pages, fv_bytes *sizes, fv_bytes *data) {
    metadata m = { 0 };
    uint32_t header = 0;
    if (!type->nchannels) return false;
    fv__bytes_append(&m.sizes, &header, sizeof header);
    fv__bytes_append(&m.header, &MAGIC, sizeof MAGIC);
    add_kinds(&m, type, pages);
    header = (uint32_t)m.header.size;
    memcpy(m.sizes.data, &header, sizeof header);
    fv__bytes_append(data, m.header.data, m.header.size);
    fv__bytes_append(data, m.entries.data, m.entries.size);
    fv__bytes_append(sizes, m.sizes.data, m.sizes.size);
    fv__bytes_release(&m.sizes);
    fv__bytes_release(&m.header);
    fv__bytes_release(&m.entries);
    return true;
}
