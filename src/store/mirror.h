/* The copy of a store behind an address (s3://, hdfs://): what is committed here is sent there at once, and what other machines
 * have sent is there to be read. So a run goes on wherever the address can be reached.
 *
 * FOLDER/address names it: the address, and a time before which nothing there counts any more. Objects below ADDRESS/store:
 *     WRITER.START-SIZE.pack     bytes of the writer's pack
 *     WRITER.START-SIZE.log      bytes of its log
 *
 * Invariants
 * 1. An object is never changed once it is there, and each process sends objects of its own writer only.
 * 2. Lines of a log are sent after the bytes that they point at, and in order: what is there is the beginning of a log.
 * 3. Nothing counts as committed in this process before it is there.
 */
#ifndef FV_MIRROR_H
#define FV_MIRROR_H

#include "base/base.h"

typedef struct fv_mirror fv_mirror;
struct fv_pack;

/* Says that the store of a folder has a copy behind an address; without_old: what is there by now does not count. */
fv_status fv__mirror_name(const char *folder, const char *address, bool without_old, fv_error *error);
/* The address; NULL: there is none. The caller frees. */
char *fv__mirror_address(const char *folder);

/* Of the store in FOLDER/store: looks at what is there and fetches the logs that are missing here. *mirror is NULL if the folder
 * has no address. */
fv_status fv__mirror_open(const char *folder, fv_mirror **mirror, fv_error *error);
void      fv__mirror_close(fv_mirror *mirror);
/* Sends what the pack has of the log's lines before log_end that were not sent yet. One thread at a time. */
fv_status fv__mirror_push(fv_mirror *mirror, const struct fv_pack *pack, int64_t log_end, fv_error *error);

/* Where the bytes end that are there of a writer's pack; 0: none are. */
int64_t fv__mirror_extent(const fv_mirror *mirror, const char *writer);
/* Bytes of it. FV_ERROR_INPUT if they are not there. */
fv_status fv__mirror_read(const fv_mirror *mirror, const char *writer, int64_t offset, void *data, size_t size, fv_error *error);

#endif
