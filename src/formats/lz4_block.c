/* One block of LZ4 (https://github.com/lz4/lz4, "LZ4 Block Format Description"): sequences of literals and of copies of what was
 * unpacked before; the last one has literals alone. */
#include "formats/lz4_block.h"
#include <stdint.h>
#include <string.h>

typedef struct {
    const uint8_t *at, *end;
} input;

/* A length of 15 goes on in bytes, up to one that is not 255. */
static bool take_length(input *in, size_t *length) {
    if (*length < 15) return true;
    while (in->at < in->end && *length < SIZE_MAX / 2) {
        uint8_t more = *in->at++;
        *length += more;
        if (more != 255) return true;
    }
    return false;
}

bool fv_lz4_unpack(const void *from, size_t from_size, void *to, size_t to_size) {
    input    in = { from, (const uint8_t *)from + from_size };
    uint8_t *out = to, *out_end = out + to_size;
    while (in.at < in.end) {
        uint8_t token = *in.at++;
        size_t  literals = token >> 4, copied = token & 15;
        if (!take_length(&in, &literals)) return false;
        if (literals > (size_t)(in.end - in.at) || literals > (size_t)(out_end - out)) return false;
        if (literals) memcpy(out, in.at, literals);
        out += literals;
        in.at += literals;
        if (in.at == in.end) break;
        if (in.end - in.at < 2) return false;
        size_t back = in.at[0] | (size_t)in.at[1] << 8;
        in.at += 2;
        if (!take_length(&in, &copied)) return false;
        copied += 4;
        if (!back || back > (size_t)(out - (uint8_t *)to) || copied > (size_t)(out_end - out)) return false;
        for (; copied; copied--, out++) *out = out[-(ptrdiff_t)back]; /* may overlap: a run of one byte has back 1 */
    }
    return out == out_end;
}
