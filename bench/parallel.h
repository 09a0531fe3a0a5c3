/* Runs one operator on images in memory with several threads over a lattice, chunk by chunk from and into dense blocks as an
 * engine does. Only the time inside run() and finish() counts: not reading, storing and planning.
 */
#ifndef FV_BENCH_PARALLEL_H
#define FV_BENCH_PARALLEL_H

#include "op/params.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct bench_image {
    fv_type type;
    void   *data;
} bench_image;

typedef struct {
    fv_results base;
    fv_bytes  *blob;
    int64_t    count;
} bench_results;

typedef struct {
    fv_finish      base;
    fv_bytes      *partial;
    bench_results *results;
} bench_finish;

typedef struct {
    const fv_op        *op;
    const fv_pass      *pass;
    const void         *params;
    bench_image       **inputs;
    int                 ninputs;
    bench_image        *output;
    fv_lattice          lattice, made;
    fv_bytes           *partial;
    bench_results      *results;
    atomic_int_fast64_t next;
    pthread_mutex_t     lock;
    double              slowest; /* seconds of the thread that was busy longest in this pass */
    double              cpu;     /* processor seconds of all threads: what other users of the machine do not change much */
} bench_stage;

static fv_status bench_get(fv_results *results, int64_t index, const void **data, size_t *size, fv_error *error) {
    (void)error;
    bench_results *r = (bench_results *)results;
    *data = index < r->count ? r->blob[index].data : NULL;
    *size = index < r->count ? r->blob[index].size : 0;
    return FV_OK;
}
static size_t    bench_size(fv_finish *f, int64_t i) { return ((bench_finish *)f)->partial[i].size; }
static fv_status bench_partial(fv_finish *f, int64_t i, const void **data, fv_error *error) {
    (void)error;
    *data = ((bench_finish *)f)->partial[i].data;
    return FV_OK;
}
static fv_status bench_read(fv_finish *f, int64_t i, size_t offset, void *data, size_t size, fv_error *error) {
    (void)error;
    memcpy(data, ((bench_finish *)f)->partial[i].data + offset, size);
    return FV_OK;
}
static fv_status bench_put(fv_finish *f, int64_t index, const void *data, size_t size, fv_error *error) {
    (void)error;
    bench_results *r = ((bench_finish *)f)->results;
    if (index >= r->count) {
        r->blob = fv__realloc(r->blob, (size_t)(index + 1) * sizeof *r->blob);
        memset(r->blob + r->count, 0, (size_t)(index + 1 - r->count) * sizeof *r->blob);
        r->count = index + 1;
    }
    fv__bytes_append(&r->blob[index], data, size);
    return FV_OK;
}

static void bench_die(const fv_error *error) {
    fprintf(stderr, "bench: %s\n", error->message);
    exit(1);
}

typedef struct {
    void  *data;
    size_t size;
} bench_buffer;

static void *bench_room(bench_buffer *buffer, size_t size) {
    if (size <= buffer->size) return buffer->data;
    if (buffer->data) fv__buffer_free(buffer->data, buffer->size);
    *buffer = (bench_buffer){ fv__buffer_new(size), size };
    memset(buffer->data, 0, size);
    return buffer->data;
}

/* A worker's memory, and the time it spent in run(). */
typedef struct {
    bench_buffer in[FV_MAX_INPUTS], out, scratch;
    double       busy, cpu;
} bench_hands;

static void bench_chunk(bench_stage *s, int64_t chunk, bench_hands *hands) {
    fv_error  error = { 0 };
    fv_run    r = { .need = { .params = s->params,
                              .ninputs = s->ninputs,
                              .out = &s->output->type,
                              .region = fv__lattice_chunk(&s->lattice, chunk),
                              .lattice = &s->made },
                    .chunk = s->pass->finish ? chunk : -1,
                    .results = s->results ? &s->results->base : NULL };
    fv_region need[FV_MAX_INPUTS], whole = fv__region_whole(&s->inputs[0]->type.image);
    fv_block  in[FV_MAX_INPUTS], out, all;
    for (int i = 0; i < s->ninputs; i++) {
        r.need.in[i] = &s->inputs[i]->type;
        need[i] = r.need.region;
    }
    if (s->pass->need) s->pass->need(&r.need, need);
    for (int i = 0; i < s->ninputs; i++) {
        if (s->inputs[i]->type.kind != FV_KIND_IMAGE) continue;
        fv_dtype dtype = s->inputs[i]->type.image.dtype;
        fv__block_init(&all, dtype, &whole, s->inputs[i]->data);
        fv__block_init(&in[i], dtype, &need[i],
                       bench_room(&hands->in[i], (size_t)fv__region_voxels(&need[i]) * fv_dtype_size(dtype)));
        fv__block_copy(&in[i], &all);
        r.in[i] = &in[i];
    }
    if (s->pass->finish)
        r.partial = &s->partial[chunk];
    else {
        fv_dtype dtype = s->output->type.image.dtype;
        fv__block_init(&out, dtype, &r.need.region,
                       bench_room(&hands->out, (size_t)fv__region_voxels(&r.need.region) * fv_dtype_size(dtype)));
        r.out = &out;
    }
    r.scratch = bench_room(&hands->scratch, s->pass->scratch ? s->pass->scratch(&r.need) : 0);
    double start = fv__now(), cpu = fv__thread_cpu();
    if (s->pass->run(&r, &error) != FV_OK) bench_die(&error);
    hands->busy += fv__now() - start;
    hands->cpu += fv__thread_cpu() - cpu;
    if (r.out && s->output->data) { /* somebody wants to go on with it */
        fv__block_init(&all, out.dtype, &whole, s->output->data);
        fv_block window = fv__block_window(&all, &r.need.region);
        fv__block_copy(&window, &out);
    }
}

static void *bench_worker(void *stage) {
    bench_stage *s = stage;
    bench_hands  hands = { 0 };
    for (int64_t chunk; (chunk = atomic_fetch_add(&s->next, 1)) < fv__lattice_count(&s->lattice);) bench_chunk(s, chunk, &hands);
    pthread_mutex_lock(&s->lock);
    s->slowest = FV_MAX(s->slowest, hands.busy);
    s->cpu += hands.cpu;
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < FV_MAX_INPUTS; i++)
        if (hands.in[i].data) fv__buffer_free(hands.in[i].data, hands.in[i].size);
    if (hands.out.data) fv__buffer_free(hands.out.data, hands.out.size);
    if (hands.scratch.data) fv__buffer_free(hands.scratch.data, hands.scratch.size);
    return NULL;
}

static void bench_finish_pass(bench_stage *s, int64_t npartials) {
    fv_error       error = { 0 };
    bench_results *made = fv__calloc(sizeof *made);
    made->base.get = bench_get;
    bench_finish f = { .base = { .params = s->params,
                                 .ninputs = s->ninputs,
                                 .out = &s->output->type,
                                 .lattice = &s->lattice,
                                 .npartials = npartials,
                                 .results = s->results ? &s->results->base : NULL,
                                 .size = bench_size,
                                 .partial = bench_partial,
                                 .read = bench_read,
                                 .put = bench_put },
                       .partial = s->partial,
                       .results = made };
    for (int i = 0; i < s->ninputs; i++) f.base.in[i] = &s->inputs[i]->type;
    double start = fv__now(), cpu = fv__thread_cpu();
    for (int64_t i = 1; s->pass->combine && i < npartials; i++)
        s->pass->combine(s->params, &s->partial[0], s->partial[i].data, s->partial[i].size);
    if (s->pass->combine) f.base.npartials = FV_MIN(npartials, 1);
    if (s->pass->finish(&f.base, &error) != FV_OK) bench_die(&error);
    s->slowest += fv__now() - start;
    s->cpu += fv__thread_cpu() - cpu;
    for (int64_t i = 0; i < npartials; i++) fv__bytes_release(&s->partial[i]);
    free(s->partial);
    s->results = made;
}

/* Seconds of one run, and of processor time in it. params is the operator's filled struct; output gets its type,
 * and its pixels if it has room for them. */
static double bench_run(const char *name, void *params, bench_image **inputs, int given, const int64_t *chunk, int threads,
                        bench_image *output, double *cpu) {
    static fv_arena    arena;
    static bench_image absent;
    const fv_op       *op = fv__op_find(name);
    fv_error           error = { 0 };
    bench_image       *slots[FV_MAX_INPUTS];
    bench_stage        s = { .op = op,
                             .params = params,
                             .inputs = slots,
                             .ninputs = fv__inputs_count(op),
                             .output = output,
                             .lock = PTHREAD_MUTEX_INITIALIZER };
    output->type = inputs[0]->type;
    fv_infer infer = {
        .params = params, .params_size = op->params_size, .ninputs = s.ninputs, .out = &output->type, .arena = &arena
    };
    for (int i = 0; i < s.ninputs; i++) {
        slots[i] = i < given ? inputs[i] : &absent;
        infer.in[i] = &slots[i]->type;
    }
    if (op->infer(&infer, &error) != FV_OK) bench_die(&error);
    const fv_image_type *image = &inputs[0]->type.image;
    double               seconds = 0;
    for (s.pass = op->passes; s.pass->run; s.pass++) {
        pthread_t worker[64];
        fv__lattice_init(&s.lattice, image->ndim, image->shape, chunk ? chunk : image->shape);
        s.made = s.lattice;
        if (s.pass->finish) s.partial = fv__calloc((size_t)fv__lattice_count(&s.lattice) * sizeof *s.partial);
        atomic_store(&s.next, 0);
        s.slowest = 0;
        for (int t = 1; t < threads; t++) pthread_create(&worker[t], NULL, bench_worker, &s);
        bench_worker(&s);
        for (int t = 1; t < threads; t++) pthread_join(worker[t], NULL);
        if (s.pass->finish) bench_finish_pass(&s, fv__lattice_count(&s.lattice));
        seconds += s.slowest;
    }
    *cpu = s.cpu;
    for (int64_t i = 0; s.results && i < s.results->count; i++) fv__bytes_release(&s.results->blob[i]);
    if (s.results) free(s.results->blob);
    free(s.results);
    return seconds;
}

static int bench_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static inline double bench_median(double *times, int count) {
    qsort(times, (size_t)count, sizeof *times, bench_compare);
    return times[count / 2];
}

/* Medians of several runs, on one thread and on two, as one line. */
static inline void bench_report(const char *what, const char *name, void *params, bench_image **inputs, int given,
                                const int64_t *chunk, int repeats) {
    enum { MOST = 32 };
    double      seconds[3][MOST], cpu[MOST];
    bench_image output = { 0 };
    repeats = FV_MIN(repeats, MOST);
    for (int i = 0; i < repeats; i++)
        for (int threads = 1; threads <= 2; threads++)
            seconds[threads][i] = bench_run(name, params, inputs, given, chunk, threads, &output, &cpu[i]);
    printf("%-44s %9.2f ms %9.2f ms (2 threads) %9.2f ms processor time\n", what, bench_median(seconds[1], repeats) * 1e3,
           bench_median(seconds[2], repeats) * 1e3, bench_median(cpu, repeats) * 1e3);
    fflush(stdout);
}

static inline bench_image bench_image_new(fv_dtype dtype, int ndim, const int64_t *shape) {
    bench_image image = { .type.kind = FV_KIND_IMAGE };
    fv_image_type_init(&image.type.image, dtype, ndim, shape);
    image.data = fv__buffer_new((size_t)fv_image_type_bytes(&image.type.image));
    return image;
}

/* Smooth random blobs: a sum of plane waves above a level, as scipy's filtered noise would give. */
static inline void bench_blobs(bench_image *image, double wavelength, double level) {
    const fv_image_type *type = &image->type.image;
    enum { WAVES = 12 };
    double   wave[WAVES][FV_MAX_DIMS + 1];
    uint64_t state = 88172645463325252u;
    for (int w = 0; w < WAVES; w++)
        for (int d = 0; d <= FV_MAX_DIMS; d++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            wave[w][d] = ((double)(state >> 11) * 0x1p-53 - 0.5) * (d < FV_MAX_DIMS ? 4 / wavelength : 1) * 6.283185307179586;
        }
    fv_region whole = fv__region_whole(type);
    fv_rows   rows;
    uint8_t  *out = image->data;
    int       last = type->ndim - 1;
    for (fv__rows_begin(&rows, &whole); fv__rows_next(&rows);) {
        double real[WAVES], imaginary[WAVES], cosine[WAVES], sine[WAVES];
        for (int w = 0; w < WAVES; w++) {
            double phase = wave[w][FV_MAX_DIMS];
            for (int d = 0; d < last; d++) phase += wave[w][d] * (double)rows.position[d];
            real[w] = cos(phase), imaginary[w] = sin(phase), cosine[w] = cos(wave[w][last]), sine[w] = sin(wave[w][last]);
        }
        for (int64_t x = 0; x < type->shape[last]; x++) {
            double sum = 0;
            for (int w = 0; w < WAVES; w++) {
                double r = real[w] * cosine[w] - imaginary[w] * sine[w];
                imaginary[w] = real[w] * sine[w] + imaginary[w] * cosine[w];
                sum += real[w] = r;
            }
            *out++ = sum > level;
        }
    }
}

#endif
