/* LZW as TIFF has it: codes of 9 to 12 bits, most significant bit first, widened one code early. Written out here, because no
 * packaged library offers this form without a TIFF file around it, and pieces are decoded by many threads. */
#include "formats/tiff_parts.h"
#include <stdlib.h>

enum { CLEAR = 256, END = 257, FIRST = 258, LAST = 4094, SLOTS = 1 << 14 };

typedef struct {
    uint8_t *to;
    uint64_t held;
    int      count, width, next;
    uint32_t key[SLOTS]; /* prefix << 8 | byte, plus one; 0: free */
    uint16_t code[SLOTS];
} encoder;

static void put_code(encoder *e, int code) {
    e->held = e->held << e->width | (uint64_t)code;
    e->count += e->width;
    while (e->count >= 8) {
        e->count -= 8;
        *e->to++ = (uint8_t)(e->held >> e->count);
    }
}

static void clear(encoder *e) {
    put_code(e, CLEAR);
    memset(e->key, 0, sizeof e->key);
    e->width = 9;
    e->next = FIRST;
}

/* Slot of the string prefix + byte, taken or free. */
static int slot_of(const encoder *e, int prefix, uint8_t byte) {
    uint32_t key = ((uint32_t)prefix << 8 | byte) + 1;
    uint32_t slot = (key * 2654435761u) >> 18;
    while (e->key[slot] && e->key[slot] != key) slot = (slot + 1) & (SLOTS - 1);
    return (int)slot;
}

void fv__tiff_lzw(const uint8_t *data, size_t size, fv_bytes *out) {
    size_t   room = (size + size / 2048 + 4) * 3 / 2; /* a code of 12 bits for every byte, and the table cleared now and then */
    encoder *e = fv__alloc(sizeof *e);
    e->to = fv__bytes_append(out, NULL, room);
    e->held = 0;
    e->count = 0;
    e->width = 9;
    clear(e);
    int prefix = size ? data[0] : -1;
    for (size_t i = 1; i < size; i++) {
        int slot = slot_of(e, prefix, data[i]);
        if (e->key[slot]) {
            prefix = e->code[slot];
            continue;
        }
        put_code(e, prefix);
        e->key[slot] = ((uint32_t)prefix << 8 | data[i]) + 1;
        e->code[slot] = (uint16_t)e->next++;
        prefix = data[i];
        if (e->next == LAST)
            clear(e);
        else if (e->next + 1 > 1 << e->width)
            e->width++;
    }
    if (prefix >= 0) {
        put_code(e, prefix);
        if (++e->next + 1 > 1 << e->width && e->width < 12) e->width++;
    }
    put_code(e, END);
    if (e->count) *e->to++ = (uint8_t)(e->held << (8 - e->count));
    out->size = (size_t)(e->to - out->data);
    free(e);
}
