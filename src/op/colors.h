/* Colours of channels as people write them: words, or #rrggbb. */
#ifndef FV_COLORS_H
#define FV_COLORS_H

#include "op/op.h"

#define FV__COLORS_DOC "red, green, blue, cyan, magenta, yellow, orange, white, or #rrggbb"
#define FV__COLORS_MOST 16

static inline bool fv__color_parse(const char *word, size_t length, uint32_t *color) {
    static const struct {
        const char *name;
        uint32_t    color;
    } known[] = {
        { "red", 0xff0000 },    { "green", 0x00ff00 },  { "blue", 0x0000ff },  { "cyan", 0x00ffff }, { "magenta", 0xff00ff },
        { "yellow", 0xffff00 }, { "orange", 0xff8000 }, { "white", 0xffffff }, { "grey", 0xffffff }, { "gray", 0xffffff },
    };
    for (int i = 0; i < FV_COUNT(known); i++)
        if (strlen(known[i].name) == length && !strncmp(word, known[i].name, length)) {
            *color = known[i].color;
            return true;
        }
    *color = 0;
    for (size_t i = 1; i < length; i++) {
        const char *digits = "0123456789abcdef", *at = word[i] ? strchr(digits, word[i] | (word[i] >= 'A' ? 0x20 : 0)) : NULL;
        if (!at) return false;
        *color = *color << 4 | (uint32_t)(at - digits);
    }
    return length == 7 && *word == '#';
}

/* All colours of a text; parameter: what the user calls it. */
static inline fv_status fv__colors_parse(const char *text, const char *parameter, uint32_t color[FV__COLORS_MOST], int *count,
                                         fv_error *error) {
    *count = 0;
    for (const char *at = text + strspn(text, " ,"); *at; at += strspn(at, " ,")) {
        size_t length = strcspn(at, " ,");
        if (*count == FV__COLORS_MOST)
            return fv_fail(error, FV_ERROR_USAGE, "%s = \"%.60s\": at most %d colours", parameter, text, FV__COLORS_MOST);
        if (!fv__color_parse(at, length, &color[(*count)++]))
            return fv_fail(error, FV_ERROR_USAGE, "%s: \"%.*s\" is no colour; possible are %s", parameter,
                           (int)FV_MIN(length, 40), at, FV__COLORS_DOC);
        at += length;
    }
    return FV_OK;
}

/* Of a label: hue, paleness and brightness from a hash of it; 0 is black. */
static inline void fv__label_color(uint64_t label, uint8_t colour[3]) {
    uint64_t h = label * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
    h ^= h >> 32;
    int       bright = 255 - 30 * (int)(h >> 11 & 3), low = bright * (int)(h >> 13 & 3) / 6; /* low: the weakest of the three */
    int       hue = (int)((h & 0x7ff) * 1536 >> 11), ramp = low + (bright - low) * (hue & 255) / 255, fall = bright + low - ramp;
    const int third[6][3] = { { bright, ramp, low }, { fall, bright, low }, { low, bright, ramp },
                              { low, fall, bright }, { ramp, low, bright }, { bright, low, fall } };
    for (int c = 0; c < 3; c++) colour[c] = label ? (uint8_t)third[hue >> 8][c] : 0;
}

/* Colours for channels about which nobody said anything. */
static inline uint32_t fv__color_default(int channel, int count) {
    static const uint32_t few[3][2] = { { 0 }, { 0xffffff }, { 0x00ff00, 0xff00ff } };
    static const uint32_t many[] = { 0xff0000, 0x00ff00, 0x0000ff, 0xffffff, 0x00ffff, 0xff00ff, 0xffff00, 0xff8000 };
    return count < 3 ? few[count][channel] : many[channel % FV_COUNT(many)];
}

#endif
