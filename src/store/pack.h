/* The two files of one writer: WRITER.pack holds bytes of blobs, WRITER.log one line (slot) for each of them.
 *
 * Both are made when first needed, the log first: it carries a lock (flock) as long as its writer lives, and a pack without a log
 * belongs to nobody. If the name is taken by files of an earlier process, a number is added.
 * Calls that append must not overlap; syncing may go on beside them. A nameless pack is for spilling alone: it has no log.
 */
#ifndef FV_PACK_H
#define FV_PACK_H

#include "base/slots.h"

#define FV_LINE_MAGIC 0x31565046u /* "FPV1" */
enum fv_line_kind {
    FV_LINE_WRITER = 1, /* the first line: key is the boot id, source the hash of the host's name */
    FV_LINE_COMMITTED,  /* the blob, and whatever else the key stands for, is durable */
    FV_LINE_SHARED,     /* the blob is there for others to read; durable once a later line says so */
    FV_LINE_SYNCED,     /* all shared lines of this log before `offset` are durable */
    FV_LINE_DROPPED,    /* the line for this key in the log of the writer whose name hashes to `source`, up to `time`, is void */
};

typedef struct fv_line {
    uint32_t magic, kind;
    fv_hash  key;
    int64_t  offset, size; /* in the pack of the same writer */
    uint64_t content;      /* hash of the blob */
    double   seconds;      /* work that went into it */
    int64_t  time;         /* nanoseconds since the epoch, rising within a log */
    uint64_t source;
    uint64_t spare[6];
    uint64_t check;
} fv_line;
_Static_assert(sizeof(fv_line) == FV_SLOT, "a line is a slot");

typedef struct fv_pack {
    const char *folder;
    char       *writer;               /* as asked for; with a number once made, if need be */
    char       *pack_path, *log_path; /* NULL: not made yet */
    bool        nameless;             /* the pack has no name and there is no log: nobody else sees them */
    int         pack_fd, log_fd;
    int64_t     pack_end, log_end;
    int64_t     time;         /* of the last line */
    bool        unnamed;      /* a file was made: the folder is to be synced */
    bool        log_unsynced; /* the caller clears both when it syncs */
    fv_bytes    staging;
} fv_pack;

typedef struct fv_pack_item {
    void       *owner;
    const void *data;
    int64_t     size;
    int64_t     offset;  /* out */
    uint64_t    content; /* out */
} fv_pack_item;

void      fv__pack_init(fv_pack *pack, const char *folder, const char *writer, bool nameless);
void      fv__pack_release(fv_pack *pack); /* closes; files that say nothing are removed */
fv_status fv__pack_write(fv_pack *pack, fv_pack_item *items, int64_t count, fv_error *error);
/* Seals and stamps the lines. */
fv_status fv__pack_log(fv_pack *pack, fv_line *lines, int64_t count, fv_error *error);
fv_status fv__pack_sync(fv_pack *pack, fv_error *error);
fv_status fv__pack_sync_log(fv_pack *pack, bool folder, fv_error *error); /* folder: and the names of the files */

/* Gives the whole pages inside a range back to the file system, which may not know how. */
void     fv__pack_punch(int fd, int64_t offset, int64_t size);
uint64_t fv__writer_hash(const char *writer);

#endif
