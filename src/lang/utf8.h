/* Walking through UTF-8 text that may be anything. */
#ifndef FV_UTF8_H
#define FV_UTF8_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of the character at p (1 to 4); *valid is false for a byte that is no UTF-8 (its length is 1). */
static inline int fv__utf8_length(const char *p, bool *valid) {
    const uint8_t *byte = (const uint8_t *)p;
    int            length = byte[0] < 0x80 ? 1 : byte[0] >= 0xc2 && byte[0] < 0xe0 ? 2 : (byte[0] & 0xf0) == 0xe0 ? 3 : 4;
    *valid = byte[0] < 0x80 || (byte[0] >= 0xc2 && byte[0] < 0xf5);
    for (int i = 1; *valid && i < length; i++) *valid = (byte[i] & 0xc0) == 0x80; /* stops at the closing NUL */
    if (*valid && length == 3) *valid = !(byte[0] == 0xe0 && byte[1] < 0xa0) && !(byte[0] == 0xed && byte[1] >= 0xa0);
    if (*valid && length == 4) *valid = !(byte[0] == 0xf0 && byte[1] < 0x90) && !(byte[0] == 0xf4 && byte[1] >= 0x90);
    return *valid ? length : 1;
}

#endif
