/* Logs made of slots: 128 bytes each, every one with its own checksum, so that a torn tail or a damaged middle costs the slots
 * it hit and no more. Bytes are in the order of the machine; a log from one of the other order has no valid slot.
 *
 *     typedef struct { uint32_t magic, kind; ...; uint64_t check; } line;   // FV_SLOT bytes
 *     fv__slot_seal(&line); ... append it at a multiple of FV_SLOT ...
 *     for (int64_t at = 0; fv__slots_read(fd, path, &at, end, &piece, &error) == FV_OK && piece.size > 0;)
 *         for (size_t i = 0; i < piece.size; i += FV_SLOT) if (fv__slot_valid(piece.data + i, MAGIC)) ...
 */
#ifndef FV_SLOTS_H
#define FV_SLOTS_H

#include "base/base.h"

enum { FV_SLOT = 128 };

/* A slot starts with its 32-bit magic and ends with 64 bits of checksum, which seal fills in. */
void fv__slot_seal(void *slot);
bool fv__slot_valid(const void *slot, uint32_t magic);

/* Reads the next whole slots of [*offset, end), a few megabytes at a time, and moves *offset on; piece->size 0 at the end. A file
 * that is shorter than `end` ends there. */
fv_status fv__slots_read(int fd, const char *path, int64_t *offset, int64_t end, fv_bytes *piece, fv_error *error);

#endif
