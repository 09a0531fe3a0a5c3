/* Messages over pipes. */
#include "engines/processes/frames.h"

enum { LONGEST = 1 << 26 }; /* no message is; what is longer was not written by us */

bool fv__frame_send(FILE *to, const void *message, size_t size) {
    uint64_t length = size;
    return fwrite(&length, sizeof length, 1, to) == 1 && fwrite(message, 1, size, to) == size && !fflush(to);
}

bool fv__frame_receive(FILE *from, fv_bytes *message) {
    uint64_t length;
    fv__bytes_clear(message);
    if (fread(&length, sizeof length, 1, from) != 1 || length > LONGEST) return false;
    uint8_t part[4096];
    while (length > 0) {
        size_t n = fread(part, 1, FV_MIN(length, sizeof part), from);
        if (!n) return false;
        fv__bytes_append(message, part, n);
        length -= n;
    }
    return true;
}
