/* Checksummed slots and reading them in large pieces. */
#include "base/slots.h"
#include "base/file.h"
#include <sys/stat.h>

enum { CHECKED = FV_SLOT - sizeof(uint64_t), PIECE = 1 << 22 };

void fv__slot_seal(void *slot) {
    uint64_t check = fv__hash_bytes(slot, CHECKED).low;
    memcpy((char *)slot + CHECKED, &check, sizeof check);
}

bool fv__slot_valid(const void *slot, uint32_t magic) {
    uint32_t found;
    uint64_t check;
    memcpy(&found, slot, sizeof found);
    memcpy(&check, (const char *)slot + CHECKED, sizeof check);
    return found == magic && check == fv__hash_bytes(slot, CHECKED).low;
}

fv_status fv__slots_read(int fd, const char *path, int64_t *offset, int64_t end, fv_bytes *piece, fv_error *error) {
    struct stat s;
    fv__bytes_clear(piece);
    if (!fstat(fd, &s)) end = FV_MIN(end, s.st_size);
    int64_t size = FV_MIN(end - *offset, PIECE) / FV_SLOT * FV_SLOT;
    if (size <= 0) return FV_OK;
    fv__bytes_reserve(piece, (size_t)size);
    FV_TRY(fv__file_read_at(fd, piece->data, (size_t)size, *offset, path, error));
    piece->size = (size_t)size;
    *offset += size;
    return FV_OK;
}
