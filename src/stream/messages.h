/* Messages that a stream sends: results, and what it cannot use. */
#ifndef FV_MESSAGES_H
#define FV_MESSAGES_H

#include "stream/frame.h"

typedef struct fv_sender fv_sender;

/* "kafka://host:9092/topic". transaction: messages are sent in transactions of this name; NULL: each is for itself. Whatever was
 * begun under this name before and not committed never happened from now on. */
fv_status fv__sender_open(const char *address, const char *config, const char *transaction, fv_sender **sink, fv_error *error);
/* Hands a message over; it is copied. Waits while too much is on its way. Header values end by NUL and their size is not used. */
fv_status fv__message_send(fv_sender *sink, const char *key, const fv_header *headers, int nheaders, const void *body,
                           size_t size, fv_error *error);
/* Until all were taken by the broker. */
fv_status fv__message_flush(fv_sender *sink, fv_error *error);
/* Messages between begin and commit appear together, or not at all. After a failure the sender has to be opened again. */
fv_status fv__sender_begin(fv_sender *sink, fv_error *error);
fv_status fv__sender_commit(fv_sender *sink, int64_t number, fv_error *error);
/* The number of the last commit under this name; -1: there was none. */
fv_status fv__sender_number(fv_sender *sink, int64_t *number, fv_error *error);
void      fv__sender_close(fv_sender *sink); /* NULL is fine */

#endif
