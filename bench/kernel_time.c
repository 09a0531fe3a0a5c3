/* Times the kernel of a one-pass operator in warm buffers, without planner or engine, on 1 and on 2 threads (each half of the
 * first axis that is long enough, with its halo).
 *
 *     kernel_time gaussian "sigma=2; mode=wrap" float32 4000x4000 [REPETITIONS]
 *
 * prints the milliseconds of the best repetition: wall time on one thread, on two, and the processor time of both threads
 * together, which tells the truth on a busy machine too.
 */
#include "op/params.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2 };

typedef struct part {
    const fv_pass *pass;
    fv_run         run;
    fv_block       in, out;
    double         cpu; /* seconds of the last run */
} part;

static void fail(const char *why) {
    fprintf(stderr, "kernel_time: %s\n", why);
    exit(2);
}

/* "ball(12)" or "box(5)", by the operators of these names. */
static void parse_footprint(const char *text, fv_literal *literal, fv_arena *arena) {
    char         name[16] = "", number[16] = "";
    fv_error     error = { 0 };
    fv_literal   argument;
    const fv_op *op = sscanf(text, "%15[a-z](%15[0-9.]", name, number) >= 1 ? fv__op_find(name) : NULL;
    if (!op || !op->value) fail(text);
    void *params = fv__arena_alloc(arena, op->params_size + 1);
    fv__params_default(op, params);
    if (*number && (!fv__literal_parse(number, &argument, arena) ||
                    fv__params_set(op, op->params, params, &argument, arena, &error) != FV_OK))
        fail(error.message);
    literal->kind = FV_LITERAL_FOOTPRINT;
    if (op->value(params, &literal->footprint, &error) != FV_OK) fail(error.message);
}

static void set_params(const fv_op *op, char *text, void *params, fv_arena *arena) {
    fv_error error = { 0 };
    char    *save = NULL;
    fv__params_default(op, params);
    for (char *word = strtok_r(text, "; ", &save); word; word = strtok_r(NULL, "; ", &save)) {
        char      *value = strchr(word, '=');
        fv_literal literal;
        if (!value) fail("parameters are written name=value; name=value");
        *value++ = 0;
        const fv_param *param = fv__params_find(op, word);
        if (!param || !fv__literal_parse(value, &literal, arena)) fail(word);
        if (param->kind == FV_PARAM_FOOTPRINT) parse_footprint(value, &literal, arena);
        if (fv__params_set(op, param, params, &literal, arena, &error) != FV_OK) fail(error.message);
    }
}

/* Noise with some structure: values that neither repeat nor follow a line. */
static void fill(fv_dtype dtype, void *data, int64_t n) {
    uint64_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint32_t r = (uint32_t)(state >> 33);
        switch (fv_dtype_size(dtype)) {
        case 1: ((uint8_t *)data)[i] = dtype == FV_BOOL ? r % 5000 != 0 : (uint8_t)(r >> 8); break; /* masks: few holes */
        case 2: ((uint16_t *)data)[i] = (uint16_t)(r >> 8); break;
        case 4:
            if (dtype == FV_FLOAT32)
                ((float *)data)[i] = (float)r * 0x1p-31f;
            else
                ((uint32_t *)data)[i] = r;
            break;
        default:
            if (dtype == FV_FLOAT64)
                ((double *)data)[i] = r * 0x1p-31;
            else
                ((uint64_t *)data)[i] = r;
        }
    }
}

static void *work(void *argument) {
    part    *p = argument;
    fv_error error = { 0 };
    double   start = fv__thread_cpu();
    if (p->pass->run(&p->run, &error) != FV_OK) fail(error.message);
    p->cpu = fv__thread_cpu() - start;
    return NULL;
}

static const fv_type absent; /* inputs after the first may be left out */

static part make_part(const fv_op *op, const void *params, const fv_type *in, const fv_type *out, const fv_block *input,
                      const fv_block *output, const fv_region *region) {
    part p = { .pass = op->passes };
    p.run.need = (fv_need){ .params = params, .ninputs = fv__inputs_count(op), .out = out, .region = *region };
    for (int i = 0; i < p.run.need.ninputs; i++) p.run.need.in[i] = i ? &absent : in;
    fv_region needed[FV_MAX_INPUTS] = { *region };
    if (p.pass->need) p.pass->need(&p.run.need, needed);
    p.in = fv__block_window(input, &needed[0]);
    p.out = fv__block_window(output, region);
    size_t size = p.pass->scratch ? p.pass->scratch(&p.run.need) : 0;
    p.run.scratch = fv__buffer_new(size);
    memset(p.run.scratch, 0, size);
    return p;
}

/* Least wall and processor time, in milliseconds. */
static void best(part *parts, int count, int repetitions, double *wall, double *cpu) {
    *wall = *cpu = INFINITY;
    for (int i = 0; i < count; i++) {
        parts[i].run.in[0] = &parts[i].in;
        parts[i].run.out = &parts[i].out;
    }
    for (int repetition = 0; repetition < repetitions; repetition++) {
        pthread_t thread[THREADS];
        double    start = fv__now(), total = 0;
        for (int i = 1; i < count; i++) pthread_create(&thread[i], NULL, work, &parts[i]);
        work(&parts[0]);
        for (int i = 1; i < count; i++) pthread_join(thread[i], NULL);
        *wall = FV_MIN(*wall, 1e3 * (fv__now() - start));
        for (int i = 0; i < count; i++) total += parts[i].cpu;
        *cpu = FV_MIN(*cpu, 1e3 * total);
    }
}

int main(int argc, char **argv) {
    if (argc < 5) fail("usage: kernel_time OPERATOR PARAMETERS DTYPE SHAPE [REPETITIONS]");
    const fv_op *op = fv__op_find(argv[1]);
    fv_type      in = { .kind = FV_KIND_IMAGE }, out;
    fv_dtype     dtype;
    int64_t      shape[FV_MAX_DIMS];
    int          ndim = 0, repetitions = argc > 5 ? atoi(argv[5]) : 7;
    fv_arena     arena = { 0 };
    fv_error     error = { 0 };
    if (!op || !op->passes || op->passes[1].run) fail("no such one-pass operator");
    if (!fv_dtype_parse(argv[3], &dtype)) fail("no such dtype");
    for (char *p = argv[4]; p && ndim < FV_MAX_DIMS; p = strchr(p, 'x'), p = p ? p + 1 : p) shape[ndim++] = atoll(p);
    fv_image_type_init(&in.image, dtype, ndim, shape);
    void *params = fv__arena_alloc(&arena, op->params_size + 1);
    set_params(op, argv[2], params, &arena);
    out = in;
    fv_infer infer = {
        .params = params, .params_size = op->params_size, .ninputs = fv__inputs_count(op), .out = &out, .arena = &arena
    };
    for (int i = 0; i < infer.ninputs; i++) infer.in[i] = i ? &absent : &in;
    if (op->infer(&infer, &error) != FV_OK) fail(error.message);

    fv_region held = fv__region_whole(&in.image), whole = fv__region_whole(&out.image);
    size_t    in_size = (size_t)fv_image_type_bytes(&in.image), out_size = (size_t)fv_image_type_bytes(&out.image);
    fv_block  input, output;
    fv__block_init(&input, dtype, &held, fv__buffer_new(in_size));
    fv__block_init(&output, out.image.dtype, &whole, fv__buffer_new(out_size));
    fill(dtype, input.data, fv_image_type_voxels(&in.image));
    memset(output.data, 0, out_size);
    part one = make_part(op, params, &in, &out, &input, &output, &whole), two[THREADS];
    int  axis = 0;
    while (axis < out.image.ndim - 1 && whole.size[axis] < THREADS) axis++;
    for (int i = 0; i < THREADS; i++) {
        fv_region half = whole;
        half.start[axis] = whole.size[axis] * i / THREADS;
        half.size[axis] = whole.size[axis] * (i + 1) / THREADS - half.start[axis];
        two[i] = make_part(op, params, &in, &out, &input, &output, &half);
    }
    double alone, together, cpu;
    best(&one, 1, repetitions, &alone, &cpu);
    best(two, THREADS, repetitions, &together, &cpu);
    printf("%.3f %.3f %.3f\n", alone, together, cpu);
    return 0;
}
