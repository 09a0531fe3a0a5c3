/* Allocation, arenas, growing bytes, and the pool of large buffers. */
#include "base/base.h"
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static void die(size_t size) {
    fprintf(stderr, "fovea: out of memory (asked for %zu bytes)\n", size);
    abort();
}

void *fv__try_alloc(size_t size) { return malloc(size ? size : 1); }

void *fv__alloc(size_t size) {
    void *p = fv__try_alloc(size);
    if (!p) die(size);
    return p;
}

void *fv__calloc(size_t size) {
    void *p = calloc(1, size ? size : 1);
    if (!p) die(size);
    return p;
}

void *fv__realloc(void *p, size_t size) {
    p = realloc(p, size ? size : 1);
    if (!p) die(size);
    return p;
}

char *fv__strdup(const char *text) {
    size_t size = strlen(text) + 1;
    return memcpy(fv__alloc(size), text, size);
}

char *fv__sprintf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = NULL;
    if (vasprintf(&text, format, arguments) < 0) die(0);
    va_end(arguments);
    return text;
}

/* ---------------------------------------------------------------- arena */

typedef struct fv_arena_block {
    struct fv_arena_block *next;
    size_t                 used, size;
    _Alignas(16) char data[];
} fv_arena_block;

void *fv__arena_alloc(fv_arena *arena, size_t size) {
    size = (size + 15) & ~(size_t)15;
    fv_arena_block *block = arena->head;
    if (!block || block->size - block->used < size) {
        size_t room = FV_MAX(size, (size_t)16384 - sizeof *block);
        block = fv__alloc(sizeof *block + room);
        block->next = arena->head;
        block->used = 0;
        block->size = room;
        arena->head = block;
    }
    void *p = block->data + block->used;
    block->used += size;
    return memset(p, 0, size);
}

char *fv__arena_strndup(fv_arena *arena, const char *text, size_t length) {
    return memcpy(fv__arena_alloc(arena, length + 1), text, length);
}

char *fv__arena_strdup(fv_arena *arena, const char *text) { return fv__arena_strndup(arena, text, strlen(text)); }

char *fv__arena_printf(fv_arena *arena, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = NULL;
    if (vasprintf(&text, format, arguments) < 0) die(0);
    va_end(arguments);
    char *copy = fv__arena_strdup(arena, text);
    free(text);
    return copy;
}

void fv__arena_release(fv_arena *arena) {
    while (arena->head) {
        fv_arena_block *next = arena->head->next;
        free(arena->head);
        arena->head = next;
    }
}

/* ---------------------------------------------------------------- bytes */

void fv__bytes_reserve(fv_bytes *bytes, size_t extra) {
    if (bytes->capacity - bytes->size >= extra) return;
    if (extra > PTRDIFF_MAX - bytes->size) die(extra);
    size_t capacity = FV_MAX(bytes->capacity * 2, bytes->size + extra);
    bytes->data = fv__realloc(bytes->data, FV_MAX(capacity, (size_t)64));
    bytes->capacity = FV_MAX(capacity, (size_t)64);
}

void *fv__bytes_append(fv_bytes *bytes, const void *data, size_t size) {
    fv__bytes_reserve(bytes, size);
    void *place = bytes->data ? bytes->data + bytes->size : NULL;
    if (data && size) memcpy(place, data, size);
    bytes->size += size;
    return place;
}

void fv__bytes_vprintf(fv_bytes *bytes, const char *format, va_list arguments) {
    char *text = NULL;
    int   length = vasprintf(&text, format, arguments);
    if (length < 0) die(0);
    fv__bytes_reserve(bytes, (size_t)length + 1);
    fv__bytes_append(bytes, text, (size_t)length);
    bytes->data[bytes->size] = 0;
    free(text);
}

void fv__bytes_printf(fv_bytes *bytes, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fv__bytes_vprintf(bytes, format, arguments);
    va_end(arguments);
}

void fv__bytes_clear(fv_bytes *bytes) { bytes->size = 0; }

void fv__bytes_release(fv_bytes *bytes) {
    free(bytes->data);
    *bytes = (fv_bytes){ 0 };
}

/* ---------------------------------------------------------------- large buffers
 * Fresh pages cost more than most kernels, so freed buffers are kept for the next request of a like size. Sizes are rounded
 * up in steps of a quarter to an eighth of them, so that buffers of like size meet. */

enum { POOL = 512, SMALL = 1 << 16 };
typedef struct {
    void  *data;
    size_t size;
} pooled;
static pooled          pool[POOL];
static int             pool_count;
static int64_t         pool_bytes, live_bytes, allowed_bytes; /* idle, in use; of both together, 0: as many as there are */
static pthread_mutex_t pool_mutex = PTHREAD_MUTEX_INITIALIZER;

static size_t rounded(size_t size) {
    size_t step = (size_t)4096;
    while (step * 8 < size) step *= 2;
    return (size + step - 1) / step * step;
}

static void *map(size_t size) { return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

/* With the mutex held. */
static void trim(void) {
    for (int i = 0; i < pool_count; i++) munmap(pool[i].data, pool[i].size);
    pool_count = 0;
    pool_bytes = 0;
}

static bool too_many(size_t more) { return allowed_bytes && live_bytes + pool_bytes + (int64_t)more > allowed_bytes; }

void fv__buffer_allow(int64_t bytes) {
    pthread_mutex_lock(&pool_mutex);
    allowed_bytes += bytes;
    pthread_mutex_unlock(&pool_mutex);
}

void *fv__buffer_new(size_t size) {
    if (size < SMALL) {
        void *p = NULL;
        if (posix_memalign(&p, 64, size ? (size + 63) & ~(size_t)63 : 64)) die(size);
        return p;
    }
    if (size > PTRDIFF_MAX / 2) die(size); /* a negative size, most likely */
    size = rounded(size);
    pthread_mutex_lock(&pool_mutex);
    live_bytes += (int64_t)size;
    for (int i = pool_count - 1; i >= 0; i--)
        if (pool[i].size == size) {
            void *data = pool[i].data;
            pool[i] = pool[--pool_count];
            pool_bytes -= (int64_t)size;
            pthread_mutex_unlock(&pool_mutex);
            return data;
        }
    if (too_many(0)) trim();
    pthread_mutex_unlock(&pool_mutex);
    void *p = map(size);
    if (p == MAP_FAILED) { /* idle buffers may be in the way */
        fv__buffer_trim();
        p = map(size);
    }
    if (p == MAP_FAILED) die(size);
    if (size >= (size_t)1 << 21) madvise(p, size, MADV_HUGEPAGE);
    return p;
}

void fv__buffer_free(void *buffer, size_t size) {
    if (!buffer) return;
    if (size < SMALL) {
        free(buffer);
        return;
    }
    size = rounded(size);
    pooled out = { buffer, size };
    pthread_mutex_lock(&pool_mutex);
    live_bytes -= (int64_t)size;
    if (too_many(size)) {
        /* not kept */
    } else if (pool_count < POOL) {
        pool[pool_count++] = out;
        pool_bytes += (int64_t)size;
        out.data = NULL;
    } else {
        pooled oldest = pool[0];
        memmove(pool, pool + 1, sizeof pool - sizeof *pool);
        pool[POOL - 1] = out;
        pool_bytes += (int64_t)size - (int64_t)oldest.size;
        out = oldest;
    }
    pthread_mutex_unlock(&pool_mutex);
    if (out.data) munmap(out.data, out.size);
}

int64_t fv__buffer_pooled(void) {
    pthread_mutex_lock(&pool_mutex);
    int64_t bytes = pool_bytes;
    pthread_mutex_unlock(&pool_mutex);
    return bytes;
}

void fv__buffer_trim(void) {
    pthread_mutex_lock(&pool_mutex);
    trim();
    pthread_mutex_unlock(&pool_mutex);
    malloc_trim(0);
}
