/* Words and sizes as people read and write them. */
#ifndef FOVEA_TEXT_H
#define FOVEA_TEXT_H

#include <fovea/api.h>
#include <stdbool.h>
#include <stdint.h>

/* Edit distance, for "did you mean": the candidate nearest to word, or NULL if none is near. */
FV_API const char *fv_nearest_word(const char *word, const char *const *candidates, int count);

/* Words broken into lines of at most `width` columns, every line after the first indented; the first one starts at column
 * `indent` wherever it is printed. A line break in the text stays. Control characters become '?', so that nothing upsets a
 * terminal. No line break at the end. The caller frees. */
FV_API char *fv_text_wrap(const char *text, int indent, int width);

/* Copies a text; if it takes more than size - 1 bytes, its start and "...". Never half a character. */
FV_API void fv_text_cut(const char *text, char *to, int size);

/* 1536 is "1.5 KiB"; a count of bytes below 1024 is exact. */
FV_API void fv_size_format(int64_t bytes, char text[24]);
/* "4096", "512M", "1.5G", "2 GiB": powers of 1024. False if it is no size or does not fit. */
FV_API bool fv_size_parse(const char *text, int64_t *bytes);
/* "30s", "90m", "12h", "7d", "2w" in seconds. False if it is no time. */
FV_API bool fv_time_parse(const char *text, double *seconds);

#endif
