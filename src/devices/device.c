/* Borrowed devices: queues, buffers and compiled kernels.
 *
 * Invariants:
 * 1. A fv_device is either in the free list of its card or used by one thread.
 * 2. The buffers of a borrowed device never take more than its memory.
 * 3. Programs are compiled once for a card and never dropped. */
#include "devices/device.h"
#include "base/file.h"
#include "base/plugin.h"
#include "base/session.h"
#include "devices/opencl_plugin.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct built {
    struct built *next;
    fv_hash       key;
    void         *program;
} built;

typedef struct card {
    struct card    *next;
    int             index;
    void           *handle;
    fv_opencl_about about;
    built          *programs;
    fv_device      *idle;
} card;

typedef struct slot {
    void   *buffer, *place;
    void   *memory; /* of the host; NULL: the device has its own */
    int64_t size;
    bool    used;
    bool    lent; /* memory that the task has lent: takes none of the device's, and is gone after the task */
} slot;

struct fv_device {
    fv_device *next;
    card      *card;
    int64_t    memory;
    void      *queue[FV_LANES];
    slot       slots[FV_LANES][FV_LANE_BUFFERS];
    bool       failed;
    char       message[FV_OPENCL_MESSAGE];
};

/* Of the process, as the OpenCL platform: a context and its compiled programs cost seconds and much memory, and hold no results.
 * What a borrowed device does is of one thread alone. */
static const fv_opencl *opencl;
static card            *cards;
static pthread_mutex_t  mutex = PTHREAD_MUTEX_INITIALIZER; /* guards both, and the lists of cards */

/* ---------------------------------------------------------------- finding */

static fv_status load_locked(fv_error *error) {
    const void *found;
    if (opencl) return FV_OK;
    FV_TRY(fv__plugin_load("opencl", FV_OPENCL_SYMBOL, "OpenCL", "ocl-icd-opencl-dev pocl-opencl-icd", &found, error));
    if (((const fv_opencl *)found)->version != FV_OPENCL_VERSION)
        return fv_fail(error, FV_ERROR_MISSING,
                       "the plug-in for OpenCL is of another version than this program; build both again");
    opencl = found;
    return FV_OK;
}

static fv_status load(fv_error *error) {
    fv__io_lock(&mutex);
    fv_status status = load_locked(error);
    pthread_mutex_unlock(&mutex);
    return status;
}

fv_status fv__device_count(int *count, fv_error *error) {
    char message[FV_OPENCL_MESSAGE] = "";
    *count = 0;
    FV_TRY(load(error));
    *count = opencl->count(message);
    return *count > 0 ? FV_OK : fv_fail(error, FV_ERROR_MISSING, "%s", message);
}

/* FOVEA_DEVICE_CARD: the processor is taken for a card, so that what is written for cards can be tested without one. */
static bool describe(int index, fv_opencl_about *about, char *message) {
    static const char suffix[] = ", as a card";
    if (!opencl->about(index, about, message)) return false;
    if (!about->processor || !getenv("FOVEA_DEVICE_CARD")) return true;
    about->processor = false;
    size_t length = FV_MIN(strlen(about->kind), sizeof about->kind - sizeof suffix);
    memcpy(about->kind + length, suffix, sizeof suffix);
    return true;
}

fv_status fv__device_about_of(int index, fv_device_about *about, fv_error *error) {
    fv_opencl_about a;
    char            message[FV_OPENCL_MESSAGE] = "";
    FV_TRY(load(error));
    if (!describe(index, &a, message)) return fv_fail(error, FV_ERROR_MISSING, "%s", message);
    *about = (fv_device_about){ .processor = a.processor, .units = a.units, .memory = a.memory, .largest = a.largest };
    memcpy(about->name, a.name, sizeof about->name);
    memcpy(about->kind, a.kind, sizeof about->kind);
    return FV_OK;
}

/* ---------------------------------------------------------------- borrowing */

static fv_status find_card(int index, card **out, fv_error *error) {
    char message[FV_OPENCL_MESSAGE] = "";
    FV_TRY(load_locked(error));
    for (card *c = cards; c; c = c->next)
        if (c->index == index) {
            *out = c;
            return FV_OK;
        }
    card *c = fv__calloc(sizeof *c);
    c->index = index;
    c->handle = describe(index, &c->about, message) ? opencl->open(index, message) : NULL;
    if (!c->handle) {
        free(c);
        return fv_fail(error, FV_ERROR_DEVICE, "opencl:%d: %s", index, message);
    }
    c->next = cards;
    cards = *out = c;
    return FV_OK;
}

static fv_status new_device(card *c, fv_device **out, fv_error *error) {
    char       message[FV_OPENCL_MESSAGE] = "";
    fv_device *d = fv__calloc(sizeof *d);
    d->card = c;
    for (int l = 0; l < FV_LANES; l++) {
        d->queue[l] = opencl->queue_new(c->handle, message);
        if (d->queue[l]) continue;
        if (l) opencl->queue_free(d->queue[0]);
        free(d);
        return fv_fail(error, FV_ERROR_DEVICE, "%s: %s", c->about.name, message);
    }
    *out = d;
    return FV_OK;
}

static int64_t held(const fv_device *d) {
    int64_t bytes = 0;
    for (int l = 0; l < FV_LANES; l++)
        for (int b = 0; b < FV_LANE_BUFFERS; b++) bytes += d->slots[l][b].size;
    return bytes;
}

static void free_slot(slot *s) {
    if (s->buffer) opencl->buffer_free(s->buffer);
    fv_session *before = fv__session_enter(NULL); /* devices, and what they hold, belong to the process */
    fv__buffer_free(s->memory, (size_t)s->size);
    fv__session_enter(before);
    *s = (slot){ 0 };
}

/* Frees buffers that the task has not asked for, until so many bytes are free or no more can be had. */
static void make_room(fv_device *d, int64_t bytes) {
    for (int l = 0; l < FV_LANES; l++)
        for (int b = 0; b < FV_LANE_BUFFERS; b++)
            if (held(d) + bytes > d->memory && !d->slots[l][b].used) free_slot(&d->slots[l][b]);
}

fv_status fv__device_borrow(int index, int64_t memory, fv_device **device, fv_error *error) {
    card *c;
    fv__io_lock(&mutex);
    fv_status status = find_card(index, &c, error);
    *device = status == FV_OK ? c->idle : NULL;
    if (*device)
        c->idle = (*device)->next;
    else if (status == FV_OK)
        status = new_device(c, device, error);
    pthread_mutex_unlock(&mutex);
    if (status != FV_OK) return status;
    (*device)->memory = memory;
    for (int l = 0; l < FV_LANES; l++)
        for (int b = 0; b < FV_LANE_BUFFERS; b++) (*device)->slots[l][b].used = false;
    make_room(*device, 0);
    return FV_OK;
}

void fv__device_give_back(fv_device *d, bool forget) {
    char message[FV_OPENCL_MESSAGE];
    for (int l = 0; l < FV_LANES; l++)
        for (int b = 0; b < FV_LANE_BUFFERS; b++)
            if (d->slots[l][b].place) fv__lane_done(d, l, b);
    for (int l = 0; l < FV_LANES; l++) opencl->finish(d->queue[l], message);
    for (int l = 0; l < FV_LANES; l++)
        for (int b = 0; b < FV_LANE_BUFFERS; b++)
            if (forget || d->slots[l][b].lent) free_slot(&d->slots[l][b]);
    d->failed = false;
    fv__io_lock(&mutex);
    d->next = d->card->idle;
    d->card->idle = d;
    pthread_mutex_unlock(&mutex);
}

int64_t fv__device_memory(const fv_device *d) { return d->memory; }
bool    fv__device_processor(const fv_device *d) { return d->card->about.processor; }

fv_status fv__device_check(fv_device *d, fv_error *error) {
    return d->failed ? fv_fail(error, FV_ERROR_DEVICE, "opencl:%d (%s): %s", d->card->index, d->card->about.name, d->message)
                     : FV_OK;
}

/* ---------------------------------------------------------------- buffers */

void fv__lane_room(fv_device *d, int lane, int buffer, int64_t bytes) {
    slot *s = &d->slots[lane][buffer];
    if (d->failed) return;
    /* One that is too large, left by another task, would take what this task has asked for. */
    if (s->buffer && (s->used ? s->size >= bytes : s->size == bytes)) {
        s->used = true;
        return;
    }
    free_slot(s);
    make_room(d, bytes);
    if (held(d) + bytes > d->memory) {
        snprintf(d->message, sizeof d->message, "a task uses more than the %lld MB that it asked for",
                 (long long)(d->memory >> 20));
        d->failed = true;
        return;
    }
    *s = (slot){ .size = bytes, .used = true };
    fv_session *before = fv__session_enter(NULL);
    if (fv__device_processor(d)) s->memory = fv__buffer_new((size_t)bytes); /* large pages, that other tasks have used before */
    fv__session_enter(before);
    bool missing = fv__device_processor(d) && !s->memory;
    if (missing) snprintf(d->message, sizeof d->message, "no memory for a buffer of %lld bytes", (long long)bytes);
    if (!missing) s->buffer = opencl->buffer_new(d->card->handle, s->memory, (size_t)bytes, d->message);
    if (!s->buffer) {
        d->failed = true;
        free_slot(s);
    }
}

void fv__lane_lend(fv_device *d, int lane, int buffer, void *data, int64_t bytes) {
    slot *s = &d->slots[lane][buffer];
    if (d->failed) return;
    free_slot(s);
    *s = (slot){ .buffer = opencl->buffer_new(d->card->handle, data, (size_t)bytes, d->message), .used = true, .lent = true };
    d->failed = !s->buffer;
}

/* Whoever waits for the device lends its turn, as with files. */
static void *map(fv_device *d, int lane, int buffer, int64_t bytes, bool to_write) {
    slot *s = &d->slots[lane][buffer];
    if (d->failed) return NULL;
    fv__io_enter();
    s->place = opencl->map(d->queue[lane], s->buffer, (size_t)bytes, to_write, d->message);
    fv__io_leave();
    d->failed = !s->place;
    return s->place;
}

void *fv__lane_fill(fv_device *d, int lane, int buffer, int64_t bytes) {
    fv__lane_room(d, lane, buffer, bytes);
    return map(d, lane, buffer, bytes, true);
}

const void *fv__lane_look(fv_device *d, int lane, int buffer, int64_t bytes) { return map(d, lane, buffer, bytes, false); }

void fv__lane_done(fv_device *d, int lane, int buffer) {
    slot *s = &d->slots[lane][buffer];
    char  message[FV_OPENCL_MESSAGE];
    if (!s->place) return;
    bool good = opencl->release(d->queue[lane], s->buffer, s->place, message);
    s->place = NULL;
    if (good || d->failed) return;
    d->failed = true;
    memcpy(d->message, message, sizeof message);
}

void fv__lane_send(fv_device *d, int lane, int buffer) { fv__lane_done(d, lane, buffer); }

void fv__lane_copy(fv_device *d, int lane, int buffer, const void *data, int64_t bytes) {
    void *to = fv__lane_fill(d, lane, buffer, bytes);
    if (to) memcpy(to, data, (size_t)bytes);
    fv__lane_send(d, lane, buffer);
}

/* ---------------------------------------------------------------- kernels */

/* Where a compiled program is kept; NULL: nowhere. */
static char *cache_path(const card *c, const fv_device_program *p, fv_hash *key) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    fv_hasher   hasher;
    char        hex[33];
    fv__hasher_init(&hasher);
    fv__hasher_text(&hasher, p->source);
    fv__hasher_text(&hasher, p->options ? p->options : "");
    fv__hasher_text(&hasher, c->about.kind);
    fv__hasher_int(&hasher, FV_OPENCL_VERSION);
    *key = fv__hasher_finish(&hasher);
    fv__hash_format(*key, hex);
    if (cache && *cache == '/') return fv__sprintf("%s/fovea/opencl/%s.bin", cache, hex);
    return home && *home == '/' ? fv__sprintf("%s/.cache/fovea/opencl/%s.bin", home, hex) : NULL;
}

/* A cache is a convenience: whatever goes wrong with it is no error. */
static void keep_binary(void *program, const char *path) {
    char   message[FV_OPENCL_MESSAGE], *folder = fv__strdup(path);
    void  *data;
    size_t size;
    *strrchr(folder, '/') = 0;
    if (opencl->binary(program, &data, &size, message)) {
        if (fv__path_make_folders(folder, NULL) == FV_OK) fv__file_write_all(path, data, size, false, NULL);
        free(data);
    }
    free(folder);
}

static void *compile(card *c, const fv_device_program *p, const char *path, char *message) {
    static const size_t most = (size_t)64 << 20;
    char               *options = fv__sprintf("-w %s", p->options ? p->options : ""); /* warnings would go to the terminal */
    fv_bytes            bytes = { 0 };
    void               *program = NULL;
    if (path && fv__file_exists(path) && fv__file_read_all(path, most, &bytes, NULL) == FV_OK && bytes.size)
        program = opencl->load(c->handle, bytes.data, bytes.size, options, message);
    fv__bytes_release(&bytes);
    if (!program) { /* said before: a job with little memory may die of it */
        fv__log("fovea: a kernel is compiled for %s, which takes much memory; later runs find it in the cache", c->about.name);
        program = opencl->build(c->handle, p->source, options, message);
        if (program && path) keep_binary(program, path);
    }
    free(options);
    return program;
}

/* The mutex is held while a program is compiled: whoever wants the same one then finds it. */
static void *find_program(fv_device *d, const fv_device_program *p) {
    fv_hash key;
    char   *path = cache_path(d->card, p, &key);
    void   *program = NULL;
    fv__io_lock(&mutex);
    for (const built *b = d->card->programs; b && !program; b = b->next)
        if (fv__hash_equal(b->key, key)) program = b->program;
    if (!program && (program = compile(d->card, p, path, d->message))) {
        built *b = fv__calloc(sizeof *b);
        *b = (built){ d->card->programs, key, program };
        d->card->programs = b;
    }
    pthread_mutex_unlock(&mutex);
    free(path);
    return program;
}

void fv__lane_run(fv_device *d, int lane, const fv_device_program *p, const char *kernel, int64_t x, int64_t y, int64_t z,
                  const fv_lane_argument *arguments, int count) {
    fv_opencl_argument given[FV_LANE_ARGUMENTS];
    size_t             items[3] = { (size_t)x, (size_t)y, (size_t)z }, group[3] = { fv__device_processor(d) ? 1 : 0, 1, 1 };
    if (d->failed || x < 1 || y < 1 || z < 1) return;
    for (int i = 0; i < count; i++)
        given[i] = arguments[i].buffer < 0 ? (fv_opencl_argument){ NULL, arguments[i].value, arguments[i].size }
                                           : (fv_opencl_argument){ .buffer = d->slots[lane][arguments[i].buffer].buffer };
    void *program = find_program(d, p);
    d->failed = !program || !opencl->run(d->queue[lane], program, kernel, items, group, given, count, d->message);
}

/* ---------------------------------------------------------------- pieces */

fv_status fv__device_pieces(fv_device *d, int64_t pieces, fv_device_step send, fv_device_step receive, void *context,
                            fv_error *error) {
    for (int64_t k = 0; k <= pieces; k++) {
        if (k < pieces) FV_TRY(send(context, d, (int)(k % FV_LANES), k, error));
        if (k > 0) FV_TRY(receive(context, d, (int)((k - 1) % FV_LANES), k - 1, error));
        FV_TRY(fv__device_check(d, error));
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- measuring */

static const char measure_source[] =
    "kernel void multiply(global float16 *out, int rounds) {\n"
    "    size_t i = get_global_id(0);\n"
    "    float16 a = (float)i, b = 0.5f, c = a, e = a + 1, f = a + 2, g = a + 3;\n"
    "    for (int k = 0; k < rounds; k++) { c = fma(c, b, a); e = fma(e, b, a); f = fma(f, b, a); g = fma(g, b, a); }\n"
    "    out[i] = c + e + f + g;\n"
    "}\n"
    "kernel void copy(global const float16 *in, global float16 *out, int n) {\n"
    "    size_t start = get_global_id(0) * (size_t)n;\n"
    "    for (int k = 0; k < n; k++) out[start + k] = in[start + k];\n"
    "}\n";

enum { MEASURED_BYTES = 32 << 20, STRIP = 256, ITEMS = 4096, ROUNDS = 512, TIMES = 3 };

static double best_time(fv_device *d, const fv_device_program *p, bool copy) {
    double best = 1e9;
    char   message[FV_OPENCL_MESSAGE];
    for (int t = 0; t <= TIMES; t++) { /* the first one compiles and is not counted */
        double start = fv__now();
        if (copy)
            FV_LANE_RUN(d, 0, p, "copy", MEASURED_BYTES / 64 / STRIP, 1, 1, FV_BUFFER(0), FV_BUFFER(1), FV_VALUE(int32_t, STRIP));
        else
            FV_LANE_RUN(d, 0, p, "multiply", ITEMS, 1, 1, FV_BUFFER(0), FV_VALUE(int32_t, ROUNDS));
        opencl->finish(d->queue[0], message);
        if (t) best = FV_MIN(best, fv__now() - start);
    }
    return best;
}

fv_status fv__device_measure(int index, double *arithmetic, double *bandwidth, fv_error *error) {
    static const fv_device_program program = { measure_source, NULL };
    fv_device                     *d;
    FV_TRY(fv__device_borrow(index, 2 * (int64_t)MEASURED_BYTES, &d, error));
    for (int b = 0; b < 2; b++) fv__lane_room(d, 0, b, MEASURED_BYTES);
    *arithmetic = (double)ITEMS * ROUNDS * 16 * 4 / best_time(d, &program, false) / 1e9;
    *bandwidth = 2.0 * MEASURED_BYTES / best_time(d, &program, true) / 1e9;
    fv_status status = fv__device_check(d, error);
    fv__device_give_back(d, true);
    return status;
}
