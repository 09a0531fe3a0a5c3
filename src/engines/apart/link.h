/* Messages between an engine and a worker that shares no folder with it, over a socket. A head tells what it is and how many
 * bytes follow. Both ends are the same version on the same kind of machine, so numbers go as they are.
 *
 *     worker:  the key of the run, FV_LINK_KEY bytes
 *     engine:  FILE ... FILE HELLO         what the worker needs of the run's folder
 *     engine:  JOB
 *     worker:      ASK key   engine: BLOB or NONE          as often as it likes, in any order
 *     worker:      GIVE key
 *     worker:  ANSWER                                      and the next JOB follows, or END
 */
#ifndef FV_LINK_H
#define FV_LINK_H

#include "base/base.h"

enum { FV_LINK_KEY = 32, FV_LINK_NAME = 256 };

typedef enum fv_link_kind {
    FV_LINK_FILE,  /* FV_LINK_NAME bytes with its name, then its contents */
    FV_LINK_HELLO, /* fv_worker_hello */
    FV_LINK_JOB,
    FV_LINK_ASK,
    FV_LINK_BLOB,
    FV_LINK_NONE, /* there is no such */
    FV_LINK_GIVE,
    FV_LINK_ANSWER,
    FV_LINK_END,
} fv_link_kind;

typedef struct fv_link_head {
    uint32_t mark, kind;
    int64_t  size;    /* of what follows */
    fv_hash  key;     /* ASK, GIVE */
    double   seconds; /* GIVE: of work; whether it is worth committing */
    int64_t  keep;
} fv_link_head;

typedef struct fv_link {
    int fd;
    bool (*given_up)(void *context); /* asked a few times a second while it waits; NULL: never */
    void *context;
} fv_link;

/* All of these: false: the other end is gone, speaks another language, or was given up. */
bool fv__link_send(const fv_link *link, fv_link_head head, const void *data);
bool fv__link_send_file(const fv_link *link, const char *path, const char *name);
bool fv__link_receive_head(const fv_link *link, fv_link_head *head);
bool fv__link_receive(const fv_link *link, void *data, size_t size);
bool fv__link_receive_bytes(const fv_link *link, size_t size, fv_bytes *bytes);

#endif
