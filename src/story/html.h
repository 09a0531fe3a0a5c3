/* Pieces of an HTML page: texts that can hold nothing but text, pictures inside of it, and how numbers are said. */
#ifndef FV_HTML_H
#define FV_HTML_H

#include "base/base.h"

/* The text with all that means something in HTML escaped, also for attributes in quotes. Bytes that are no UTF-8, control
 * characters, and those that turn the direction of writing become U+FFFD. */
void fv__html_text(fv_bytes *out, const char *text);
/* printf, then escaped. */
void fv__html_printf(fv_bytes *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fv__html_base64(fv_bytes *out, const void *data, size_t size);

/* A PNG of 8-bit pixels, 1 or 3 channels. */
void fv__html_png(fv_bytes *out, const uint8_t *pixels, int width, int height, int channels);

enum { FV_WORDS = 40 };
const char *fv__say_seconds(double seconds, char text[FV_WORDS]); /* "3 min 20 s" */
const char *fv__say_bytes(double bytes, char text[FV_WORDS]);
const char *fv__say_time(double time, char text[FV_WORDS]);    /* "2026-01-31 12:30:00 UTC" */
const char *fv__say_count(int64_t count, char text[FV_WORDS]); /* "1,000,000" */

#endif
