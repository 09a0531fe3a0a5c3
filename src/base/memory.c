/* Allocation, arenas, growing bytes, and the pool of large buffers. */
#include "base/session.h"
#include "base/take.h"
#include <fovea/memory.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* ---------------------------------------------------------------- the end */

static _Atomic(fv_out_of_memory) handler; /* of the process, which it ends */

void fv_set_out_of_memory(fv_out_of_memory given) { handler = given; }

void fv__out_of_memory(size_t size) {
    fv_out_of_memory given = handler;
    if (given)
        given(size);
    else
        fprintf(stderr, "fovea: out of memory (asked for %zu bytes)\n", size);
    abort();
}

/* ---------------------------------------------------------------- failing on purpose
 * Of the process, because a test fails the allocations of whichever thread comes. */

static _Atomic int64_t failing;       /* allocations until the one that a test wants to fail; 0: none is to */
static atomic_bool     failing_small; /* those that use the reserve count too */

int64_t fv__memory_fail(int64_t n) {
    failing_small = false;
    return atomic_exchange(&failing, n);
}

int64_t fv__memory_fail_any(int64_t n) {
    failing_small = true;
    return atomic_exchange(&failing, n);
}

static bool count_down(void) {
    int64_t left = atomic_load_explicit(&failing, memory_order_relaxed);
    while (left > 0 && !atomic_compare_exchange_weak(&failing, &left, left - 1)) {
    }
    return left == 1;
}

/* ---------------------------------------------------------------- the reserve */

static void *map(size_t size, int flags) {
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

void fv__memory_lend(size_t size) {
    fv_reserve *reserve = fv__session_reserve();
    void       *pages = atomic_exchange(&reserve->pages, NULL);
    if (size) reserve->missing = size;
    if (pages) munmap(pages, FV_RESERVE);
}

fv_status fv__memory_check(fv_error *error) {
    fv_reserve *reserve = fv__session_reserve();
    if (atomic_load_explicit(&reserve->pages, memory_order_relaxed) &&
        !atomic_load_explicit(&reserve->missing, memory_order_relaxed))
        return FV_OK;
    void *pages = map(FV_RESERVE, 0), *none = NULL;
    if (pages == MAP_FAILED) return fv__no_memory(reserve->missing ? reserve->missing : FV_RESERVE, error);
    if (!atomic_compare_exchange_strong(&reserve->pages, &none, pages)) munmap(pages, FV_RESERVE); /* another thread has */
    size_t missing = atomic_exchange(&reserve->missing, 0);
    return missing ? fv__no_memory(missing, error) : FV_OK;
}

/* Whether the session had to use its reserve; that is then told. */
static bool is_short(void) {
    return atomic_load_explicit(&fv__session_reserve()->missing, memory_order_relaxed) && fv__memory_check(NULL) != FV_OK;
}

/* ---------------------------------------------------------------- what cannot fail */

/* What one of them gave, or the same again with the reserve in hand. */
#define OR_FROM_RESERVE(p, again, size)                                                                                          \
    do {                                                                                                                         \
        bool asked = atomic_load_explicit(&failing_small, memory_order_relaxed) && count_down();                                 \
        if (asked) fv__memory_lend((size) ? (size) : 1);                                                                         \
        if (asked && (size) > FV_SMALL) fv__out_of_memory(size);                                                                 \
        if (p) break;                                                                                                            \
        fv__memory_lend((size) ? (size) : 1);                                                                                    \
        (p) = (again);                                                                                                           \
        if (!(p)) fv__out_of_memory(size);                                                                                       \
    } while (0)

void *fv__alloc(size_t size) {
    void *p = malloc(size ? size : 1);
    OR_FROM_RESERVE(p, malloc(size ? size : 1), size);
    return p;
}

void *fv__calloc(size_t size) {
    void *p = calloc(1, size ? size : 1);
    OR_FROM_RESERVE(p, calloc(1, size ? size : 1), size);
    return p;
}

void *fv__realloc(void *p, size_t size) {
    void *more = realloc(p, size ? size : 1);
    OR_FROM_RESERVE(more, realloc(p, size ? size : 1), size);
    return more;
}

char *fv__strdup(const char *text) {
    size_t size = strlen(text) + 1;
    return memcpy(fv__alloc(size), text, size);
}

/* As vasprintf, with its length. */
static char *print(const char *format, va_list arguments, size_t *length) {
    char    known[256];
    va_list again;
    va_copy(again, arguments);
    int needed = vsnprintf(known, sizeof known, format, arguments);
    if (needed < 0) fv__out_of_memory(0);
    *length = (size_t)needed;
    char *text = fv__alloc(*length + 1);
    if (*length < sizeof known)
        memcpy(text, known, *length + 1);
    else
        vsnprintf(text, *length + 1, format, again);
    va_end(again);
    return text;
}

char *fv__sprintf(const char *format, ...) {
    va_list arguments;
    size_t  length;
    va_start(arguments, format);
    char *text = print(format, arguments, &length);
    va_end(arguments);
    return text;
}

/* ---------------------------------------------------------------- what data decide */

static bool fails(void) { return count_down() || is_short(); }

void        *fv__try_alloc(size_t size) { return fails() ? NULL : malloc(size ? size : 1); }
void        *fv__try_calloc(size_t size) { return fails() ? NULL : calloc(1, size ? size : 1); }
static void *try_realloc(void *p, size_t size) { return fails() ? NULL : realloc(p, size ? size : 1); }

fv_status fv__no_memory(size_t size, fv_error *error) {
    return fv_fail(error, FV_ERROR_MEMORY, "out of memory: %zu bytes more could not be had", size);
}

fv_status fv__take_more(void **pointer, size_t size, fv_error *error) {
    void *more = try_realloc(*pointer, size);
    if (!more) return fv__no_memory(size, error);
    *pointer = more;
    return FV_OK;
}

/* ---------------------------------------------------------------- arena */

typedef struct fv_arena_block {
    struct fv_arena_block *next;
    size_t                 used, size;
    _Alignas(16) char data[];
} fv_arena_block;

static void *from_arena(fv_arena *arena, size_t size, void *(*alloc)(size_t size)) {
    if (size > PTRDIFF_MAX / 2) return NULL; /* a negative size, most likely */
    size = (size + 15) & ~(size_t)15;
    fv_arena_block *block = arena->head;
    if (!block || block->size - block->used < size) {
        size_t room = FV_MAX(size, (size_t)16384 - sizeof *block);
        block = alloc(sizeof *block + room);
        if (!block) return NULL;
        block->next = arena->head;
        block->used = 0;
        block->size = room;
        arena->head = block;
    }
    void *p = block->data + block->used;
    block->used += size;
    return memset(p, 0, size);
}

void *fv__arena_alloc(fv_arena *arena, size_t size) {
    void *p = from_arena(arena, size, fv__alloc);
    if (!p) fv__out_of_memory(size);
    return p;
}

void *fv__arena_try(fv_arena *arena, size_t size) { return from_arena(arena, size, fv__try_alloc); }

char *fv__arena_strndup(fv_arena *arena, const char *text, size_t length) {
    return memcpy(fv__arena_alloc(arena, length + 1), text, length);
}

char *fv__arena_strdup(fv_arena *arena, const char *text) { return fv__arena_strndup(arena, text, strlen(text)); }

char *fv__arena_printf(fv_arena *arena, const char *format, ...) {
    va_list arguments;
    size_t  length;
    va_start(arguments, format);
    char *text = print(format, arguments, &length), *copy = fv__arena_strndup(arena, text, length);
    va_end(arguments);
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

fv_status fv__bytes_need(fv_bytes *bytes, size_t extra, fv_error *error) {
    if (bytes->capacity - bytes->size >= extra) return FV_OK;
    if (extra > PTRDIFF_MAX - bytes->size) return fv__no_memory(extra, error);
    size_t capacity = FV_MAX(FV_MAX(bytes->capacity * 2, bytes->size + extra), (size_t)64);
    void  *more = try_realloc(bytes->data, capacity);
    if (!more) return fv__no_memory(capacity, error);
    bytes->data = more;
    bytes->capacity = capacity;
    return FV_OK;
}

void fv__bytes_reserve(fv_bytes *bytes, size_t extra) {
    if (bytes->capacity - bytes->size >= extra) return;
    if (extra > PTRDIFF_MAX - bytes->size) fv__out_of_memory(extra);
    size_t capacity = FV_MAX(FV_MAX(bytes->capacity * 2, bytes->size + extra), (size_t)64);
    bytes->data = fv__realloc(bytes->data, capacity);
    bytes->capacity = capacity;
}

void *fv__bytes_append(fv_bytes *bytes, const void *data, size_t size) {
    fv__bytes_reserve(bytes, size);
    void *place = bytes->data ? bytes->data + bytes->size : NULL;
    if (data && size) memcpy(place, data, size);
    bytes->size += size;
    return place;
}

void fv__bytes_vprintf(fv_bytes *bytes, const char *format, va_list arguments) {
    size_t length;
    char  *text = print(format, arguments, &length);
    fv__bytes_reserve(bytes, length + 1);
    fv__bytes_append(bytes, text, length);
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
 * up in steps of a sixteenth to a thirty-second of them, so that buffers of like size meet. */

enum { POOL = 512, SMALL = 1 << 16, HUGE_PAGE = 1 << 21 };
typedef struct {
    void  *data;
    size_t size;
} pooled;
typedef struct { /* of a session */
    pooled          idle[POOL];
    int             count;
    int64_t         idle_bytes, live_bytes, allowed_bytes; /* the last: of both together, 0: as many as there are */
    pthread_mutex_t mutex;
} pool;

static void pool_begin(void *part) { pthread_mutex_init(&((pool *)part)->mutex, NULL); }

/* With the mutex held, or by the last user. */
static void trim(void *part) {
    pool *p = part;
    for (int i = 0; i < p->count; i++) munmap(p->idle[i].data, p->idle[i].size);
    p->count = 0;
    p->idle_bytes = 0;
}

static pool *pool_here(void) {
    static const fv_session_type type = { sizeof(pool), pool_begin, trim };
    return fv__session_part(FV_PART_BUFFERS, &type);
}

static size_t rounded(size_t size) {
    size_t step = (size_t)4096;
    while (step * 32 < size) step *= 2;
    return (size + step - 1) / step * step;
}

static bool too_many(const pool *p, size_t more) {
    return p->allowed_bytes && p->live_bytes + p->idle_bytes + (int64_t)more > p->allowed_bytes;
}

void fv__buffer_allow(int64_t bytes) {
    pool *p = pool_here();
    pthread_mutex_lock(&p->mutex);
    p->allowed_bytes += bytes;
    pthread_mutex_unlock(&p->mutex);
}

void *fv__buffer_new(size_t size) {
    if (fails()) return NULL;
    if (size < SMALL) {
        void *p = NULL;
        return posix_memalign(&p, 64, size ? (size + 63) & ~(size_t)63 : 64) ? NULL : p;
    }
    if (size > PTRDIFF_MAX / 2) return NULL; /* a negative size, most likely */
    size = rounded(size);
    pool *p = pool_here();
    pthread_mutex_lock(&p->mutex);
    p->live_bytes += (int64_t)size;
    for (int i = p->count - 1; i >= 0; i--)
        if (p->idle[i].size == size) {
            void *data = p->idle[i].data;
            p->idle[i] = p->idle[--p->count];
            p->idle_bytes -= (int64_t)size;
            pthread_mutex_unlock(&p->mutex);
            return data;
        }
    if (too_many(p, 0)) trim(p);
    pthread_mutex_unlock(&p->mutex);
    int   small = size < HUGE_PAGE ? MAP_POPULATE : 0; /* page by page, as they are met, costs twice as much */
    void *data = map(size, small);
    if (data == MAP_FAILED) { /* idle buffers may be in the way */
        fv__buffer_trim();
        data = map(size, small);
    }
    if (data == MAP_FAILED) {
        pthread_mutex_lock(&p->mutex);
        p->live_bytes -= (int64_t)size;
        pthread_mutex_unlock(&p->mutex);
        return NULL;
    }
    if (!small) madvise(data, size, MADV_HUGEPAGE);
    return data;
}

void fv__buffer_free(void *buffer, size_t size) {
    if (!buffer) return;
    if (size < SMALL) {
        free(buffer);
        return;
    }
    size = rounded(size);
    pooled out = { buffer, size };
    pool  *p = pool_here();
    pthread_mutex_lock(&p->mutex);
    p->live_bytes -= (int64_t)size;
    if (too_many(p, size)) {
        /* not kept */
    } else if (p->count < POOL) {
        p->idle[p->count++] = out;
        p->idle_bytes += (int64_t)size;
        out.data = NULL;
    } else {
        pooled oldest = p->idle[0];
        memmove(p->idle, p->idle + 1, sizeof p->idle - sizeof *p->idle);
        p->idle[POOL - 1] = out;
        p->idle_bytes += (int64_t)size - (int64_t)oldest.size;
        out = oldest;
    }
    pthread_mutex_unlock(&p->mutex);
    if (out.data) munmap(out.data, out.size);
}

int64_t fv__buffer_pooled(void) {
    pool *p = pool_here();
    pthread_mutex_lock(&p->mutex);
    int64_t bytes = p->idle_bytes;
    pthread_mutex_unlock(&p->mutex);
    return bytes;
}

void fv__buffer_trim(void) {
    pool *p = pool_here();
    pthread_mutex_lock(&p->mutex);
    trim(p);
    pthread_mutex_unlock(&p->mutex);
    malloc_trim(0);
}
