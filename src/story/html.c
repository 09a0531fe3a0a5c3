/* Texts and pictures of HTML pages. */
#include "story/html.h"
#include "base/deflate.h"
#include "base/png_chunks.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Length of the UTF-8 sequence here and its character; 0: it is none. */
static int decode(const unsigned char *s, uint32_t *code) {
    int length = *s < 0x80 ? 1 : *s >= 0xc2 && *s < 0xe0 ? 2 : *s >= 0xe0 && *s < 0xf0 ? 3 : *s >= 0xf0 && *s < 0xf5 ? 4 : 0;
    *code = length == 1 ? *s : length == 2 ? *s & 0x1f : length == 3 ? *s & 0x0f : *s & 7;
    for (int i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        *code = *code << 6 | (s[i] & 0x3f);
    }
    bool bad = (length == 3 && (*code < 0x800 || (*code >= 0xd800 && *code < 0xe000))) ||
               (length == 4 && (*code < 0x10000 || *code > 0x10ffff));
    return bad ? 0 : length;
}

static bool hidden(uint32_t c) {
    return (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f || c == 0xfffe || c == 0xffff;
}

void fv__html_text(fv_bytes *out, const char *text) {
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        uint32_t    code;
        int         length = decode(s, &code);
        const char *instead = !length || hidden(code) ? "\xef\xbf\xbd"
                              : code == '&'           ? "&amp;"
                              : code == '<'           ? "&lt;"
                              : code == '>'           ? "&gt;"
                              : code == '"'           ? "&quot;"
                              : code == '\''          ? "&#39;"
                                                      : NULL;
        fv__bytes_append(out, instead ? instead : (const char *)s, instead ? strlen(instead) : (size_t)length);
        s += FV_MAX(length, 1);
    }
}

void fv__html_printf(fv_bytes *out, const char *format, ...) {
    fv_bytes text = { 0 };
    va_list  arguments;
    va_start(arguments, format);
    fv__bytes_vprintf(&text, format, arguments);
    va_end(arguments);
    fv__bytes_append(&text, "", 1);
    fv__html_text(out, (char *)text.data);
    fv__bytes_release(&text);
}

void fv__html_base64(fv_bytes *out, const void *data, size_t size) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t    *at = data;
    for (size_t i = 0; i < size; i += 3) {
        uint32_t three = (uint32_t)at[i] << 16 | (i + 1 < size ? (uint32_t)at[i + 1] << 8 : 0) | (i + 2 < size ? at[i + 2] : 0);
        char     four[4] = { letters[three >> 18], letters[three >> 12 & 63], i + 1 < size ? letters[three >> 6 & 63] : '=',
                         i + 2 < size ? letters[three & 63] : '=' };
        fv__bytes_append(out, four, 4);
    }
}

static size_t begin_chunk(fv_bytes *out, const char *type) {
    size_t begin = out->size;
    fv__png_append_number(out, 0);
    fv__bytes_append(out, type, 4);
    return begin;
}

void fv__html_png(fv_bytes *out, const uint8_t *pixels, int width, int height, int channels) {
    static const uint8_t signature[] = { 137, 'P', 'N', 'G', 13, 10, 26, 10 };
    fv_bytes             rows = { 0 };
    size_t               row = (size_t)width * (size_t)channels;
    fv__bytes_append(out, signature, sizeof signature);
    size_t begin = begin_chunk(out, "IHDR");
    fv__png_append_number(out, (uint32_t)width);
    fv__png_append_number(out, (uint32_t)height);
    fv__bytes_append(out, (uint8_t[]){ 8, channels == 3 ? 2 : 0, 0, 0, 0 }, 5);
    fv__png_close_chunk(out, begin);
    for (int y = 0; y < height; y++) { /* each row as differences to its left neighbours, which compress better */
        const uint8_t *from = pixels + (size_t)y * row;
        uint8_t       *to = fv__bytes_append(&rows, NULL, row + 1);
        to[0] = 1;
        for (size_t x = 0; x < row; x++)
            to[x + 1] = (uint8_t)(from[x] - (x >= (size_t)channels ? from[x - (size_t)channels] : 0));
    }
    begin = begin_chunk(out, "IDAT");
    fv__deflate(rows.data, rows.size, 6, FV_DEFLATE_ZLIB, out);
    fv__png_close_chunk(out, begin);
    fv__png_close_chunk(out, begin_chunk(out, "IEND"));
    fv__bytes_release(&rows);
}

/* ---------------------------------------------------------------- numbers in words */

const char *fv__say_seconds(double seconds, char text[FV_WORDS]) {
    long long s = llround(seconds);
    if (seconds < 0.000995)
        snprintf(text, FV_WORDS, "%.0f \xc2\xb5s", seconds * 1e6);
    else if (seconds < 0.0995)
        snprintf(text, FV_WORDS, "%.2g ms", seconds * 1e3);
    else if (seconds < 9.95)
        snprintf(text, FV_WORDS, "%.2g s", seconds);
    else if (s < 60)
        snprintf(text, FV_WORDS, "%lld s", s);
    else if (s < 3600)
        snprintf(text, FV_WORDS, "%lld min %02lld s", s / 60, s % 60);
    else
        snprintf(text, FV_WORDS, "%lld h %02lld min", s / 3600, s / 60 % 60);
    return text;
}

const char *fv__say_bytes(double bytes, char text[FV_WORDS]) {
    fv_size_format((int64_t)fmin(fmax(bytes, 0), 9e18), text);
    return text;
}

const char *fv__say_time(double time, char text[FV_WORDS]) {
    time_t    seconds = (time_t)time;
    struct tm parts;
    if (!gmtime_r(&seconds, &parts) || !strftime(text, FV_WORDS, "%Y-%m-%d %H:%M:%S UTC", &parts)) text[0] = 0;
    return text;
}

const char *fv__say_count(int64_t count, char text[FV_WORDS]) {
    char digits[24];
    int  length = snprintf(digits, sizeof digits, "%lld", (long long)count), at = 0;
    for (int i = 0; i < length; i++) {
        if (i && digits[i - 1] != '-' && (length - i) % 3 == 0) text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = 0;
    return text;
}
