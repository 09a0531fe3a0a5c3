/* One block of LZ4, unpacked. */
#ifndef FV_LZ4_BLOCK_H
#define FV_LZ4_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

/* True if the block holds exactly to_size bytes. Damaged ones are noticed, never followed out of either memory. */
bool fv_lz4_unpack(const void *from, size_t from_size, void *to, size_t to_size);

#endif
