/* gzip for formats: a file read by offset of its contents, and one member written from pieces encoded anywhere.
 *
 * Reading inflates in order; an offset behind the position starts over. Several members count as one stream. One thread at a
 * time.
 *
 * Writing: every piece is deflated by one call without history and ends at a byte, so the file's bytes depend on where the
 * contents are cut and on nothing else. The encoded piece carries its checksum and length in front; assembling combines them.
 */
#ifndef FV_GZIP_H
#define FV_GZIP_H

#include "op/format.h"

/* Deflate cannot do better than one byte for this many, so a file's size bounds its contents. */
#define FV_GZIP_MOST_RATIO 1032

typedef struct fv_gzip fv_gzip;

/* fd and path are borrowed; size is the file's. */
fv_gzip *fv__gzip_new(int fd, int64_t size, const char *path);
/* A stream that begins at a place in the file and ends before another. */
typedef enum fv_gzip_form { FV_GZIP_GZIP, FV_GZIP_ZLIB, FV_GZIP_RAW } fv_gzip_form;
fv_gzip    *fv__gzip_new_at(int fd, int64_t start, int64_t end, fv_gzip_form form, const char *path);
void        fv__gzip_free(fv_gzip *gzip);
const char *fv__gzip_name(const fv_gzip *gzip); /* of its form: "gzip", "zlib" or "deflate" */
size_t      fv__gzip_memory(void);              /* what an open stream occupies */
/* Exactly size bytes of the contents at offset. */
fv_status fv__gzip_read(fv_gzip *gzip, int64_t offset, void *to, size_t size, fv_error *error);
/* Verifies the checksum if the contents end soon after what was read. */
fv_status fv__gzip_check_end(fv_gzip *gzip, fv_error *error);

/* Contents in memory, gzip or zlib: true if they inflate to exactly to_size bytes and the checksum is right. */
bool fv__gzip_inflate(const void *from, size_t from_size, bool zlib, void *to, size_t to_size);

#define FV_GZIP_LEVELS 3 /* 1 to this many */
/* Appends one piece. */
void    fv__gzip_encode(int level, const void *data, size_t size, fv_bytes *out);
int64_t fv__gzip_encode_memory(int64_t size); /* for a piece of that size, output included */
/* Writes the deflated stream of the pieces alone, from *offset on, which ends up behind it; gives checksum and length of what it
 * holds. */
fv_status fv__gzip_write_stream(int fd, const char *path, fv_pieces *pieces, int64_t *offset, uint32_t *crc, uint64_t *total,
                                fv_error *error);
/* Writes the file from its pieces. prefix: bytes that stand uncompressed before the stream; may be NULL. */
fv_status fv__gzip_assemble(const char *path, const fv_bytes *prefix, fv_pieces *pieces, fv_error *error);

#endif
