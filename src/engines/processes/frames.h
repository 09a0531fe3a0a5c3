/* Messages between an engine and a worker process, over pipes: each with its length before it. */
#ifndef FV_FRAMES_H
#define FV_FRAMES_H

#include "base/base.h"
#include <stdio.h>

typedef struct fv_worker_hello { /* the first thing a worker hears */
    int64_t memory;              /* of its store */
    double  patience;            /* seconds of work that a kill may cost */
    int64_t poison;
} fv_worker_hello;

/* False: the other end is gone. */
bool fv__frame_send(FILE *to, const void *message, size_t size);
bool fv__frame_receive(FILE *from, fv_bytes *message);

#endif
