/* The ground floor: memory, checked sizes, growing byte buffers, hashing, logging.
 *
 * Nothing here knows what an image is. All functions are safe to call from several threads on different objects.
 */
#ifndef FV_BASE_H
#define FV_BASE_H

#include <fovea/status.h>
#include <fovea/text.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FV_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define FV_MIN(a, b) ((a) < (b) ? (a) : (b))
#define FV_MAX(a, b) ((a) > (b) ? (a) : (b))
#define FV_PASTE2(a, b) a##b
#define FV_PASTE(a, b) FV_PASTE2(a, b)

/* ---- checked sizes: false on overflow, *out untouched then ---- */
static inline bool fv__mul(int64_t a, int64_t b, int64_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool fv__add(int64_t a, int64_t b, int64_t *out) { return !__builtin_add_overflow(a, b, out); }

/* ---- allocation: never gives NULL. When the system has no more, small things come from the session's reserve, and the next
 * check of memory fails as an error (base/take.h); the process ends only when that is used up as well. What may be large, as
 * sizes that come from a file, is taken with FV_TAKE or fv__try_alloc. ---- */
void *fv__alloc(size_t size);  /* uninitialised */
void *fv__calloc(size_t size); /* zeroed */
void *fv__realloc(void *p, size_t size);
void *fv__try_alloc(size_t size); /* NULL when it cannot be had */
char *fv__strdup(const char *text);
char *fv__sprintf(const char *format, ...) __attribute__((format(printf, 1, 2))); /* caller frees */

/* Large image buffers: 64-byte aligned, huge pages advised, recycled through a pool. Contents are undefined. */
void   *fv__buffer_new(size_t size);
void    fv__buffer_free(void *buffer, size_t size);
void    fv__buffer_trim(void);   /* gives idle memory back to the system */
int64_t fv__buffer_pooled(void); /* bytes idle in the pool */
/* A run may take so many bytes for buffers (at its end, as many less): idle ones are not kept beyond what all runs may take. */
void fv__buffer_allow(int64_t bytes);

/* ---- arena: many small allocations freed together ---- */
typedef struct fv_arena {
    struct fv_arena_block *head;
} fv_arena;
void *fv__arena_alloc(fv_arena *arena, size_t size); /* zeroed, 16-byte aligned */
char *fv__arena_strdup(fv_arena *arena, const char *text);
char *fv__arena_strndup(fv_arena *arena, const char *text, size_t length);
char *fv__arena_printf(fv_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
void  fv__arena_release(fv_arena *arena);

/* ---- growing bytes ---- */
typedef struct fv_bytes {
    uint8_t *data;
    size_t   size, capacity;
} fv_bytes;
void  fv__bytes_reserve(fv_bytes *bytes, size_t extra);
void *fv__bytes_append(fv_bytes *bytes, const void *data, size_t size); /* data may be NULL: room only; returns where */
void  fv__bytes_printf(fv_bytes *bytes, const char *format, ...) __attribute__((format(printf, 2, 3))); /* no NUL counted */
void  fv__bytes_vprintf(fv_bytes *bytes, const char *format, va_list arguments);
void  fv__bytes_clear(fv_bytes *bytes);   /* size 0, memory kept */
void  fv__bytes_release(fv_bytes *bytes); /* memory freed */

/* ---- 128-bit hash (XXH3); the identity of everything that is stored ---- */
typedef struct fv_hash {
    uint64_t low, high;
} fv_hash;
typedef struct fv_hasher {
    void *state;
} fv_hasher;
fv_hash fv__hash_bytes(const void *data, size_t size);
void    fv__hasher_init(fv_hasher *hasher);
void    fv__hasher_add(fv_hasher *hasher, const void *data, size_t size);
void    fv__hasher_text(fv_hasher *hasher, const char *text); /* with its length, so that ("ab","c") differs from ("a","bc") */
void    fv__hasher_int(fv_hasher *hasher, int64_t value);
fv_hash fv__hasher_finish(fv_hasher *hasher); /* releases the hasher */
static inline bool fv__hash_equal(fv_hash a, fv_hash b) { return a.low == b.low && a.high == b.high; }
void               fv__hash_format(fv_hash hash, char text[33]);

/* ---- clocks ---- */
double fv__now(void);        /* seconds, monotonic */
double fv__thread_cpu(void); /* CPU seconds of this thread */

/* ---- log: messages to standard error, one line each ---- */
typedef enum { FV_LOG_QUIET, FV_LOG_NORMAL, FV_LOG_VERBOSE } fv_log_level;
void fv__log_set(fv_log_level level);
/* Somebody who draws a progress line on the terminal gets called before and after a message. */
void fv__log_hook(void (*before)(void), void (*after)(void));
void fv__log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Puts one name in the place of another in the message of an error: that of a result for its temporary's. */
void fv__error_rename(fv_error *error, const char *from, const char *to);
/* What went wrong: even to those who want no messages. */
void fv__log_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fv__log_verbose(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
