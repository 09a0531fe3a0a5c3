/* Finds operators, formats and kernels, and chooses the instruction set once per process. */
#include "op/registry.h"
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>

/* Of the process: made once of what was compiled, and never changed. */
static const fv_isa  *current;
static const fv_op  **sorted, **named; /* by family and name; by name */
static int            count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

bool fv__isa_supported(const char *isa) {
#if defined(__x86_64__)
    if (!strcmp(isa, "avx2"))
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    if (!strcmp(isa, "avx512"))
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd");
#endif
    return !strcmp(isa, "base");
}

static int by_family_and_name(const void *a, const void *b) {
    const fv_op *x = *(const fv_op *const *)a, *y = *(const fv_op *const *)b;
    int          order = strcmp(x->family, y->family);
    return order ? order : strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const fv_op *const *)a)->name, (*(const fv_op *const *)b)->name);
}

static void choose(void) {
    const char *forced = getenv("FOVEA_ISA");
    for (const fv_isa *isa = fv__isas; isa->name; isa++) {
        if (!fv__isa_supported(isa->name)) continue;
        current = isa;
        if (forced && !strcmp(forced, isa->name)) break;
    }
    while (current->ops[count]) count++;
    sorted = fv__alloc((size_t)(count + 1) * sizeof *sorted);
    named = fv__alloc((size_t)(count + 1) * sizeof *named);
    for (int i = 0; i < count; i++) sorted[i] = named[i] = current->ops[i];
    qsort(sorted, (size_t)count, sizeof *sorted, by_family_and_name);
    qsort(named, (size_t)count, sizeof *named, by_name);
}

fv_status fv__isa_check(fv_error *error) {
    const char *forced = getenv("FOVEA_ISA");
    if (!forced || !*forced || !strcmp(forced, fv__isa_name())) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE, "FOVEA_ISA=%s: this build or this processor has no such instruction set", forced);
}

const fv_isa *fv__isa_current(void) {
    pthread_once(&once, choose);
    return current;
}

const char       *fv__isa_name(void) { return fv__isa_current()->name; }
const fv_kernels *fv__kernels_current(void) { return fv__isa_current()->kernels; }

int fv__op_count(void) {
    fv__isa_current();
    return count;
}

const fv_op *fv__op_at(int index) {
    fv__isa_current();
    return index >= 0 && index < count ? sorted[index] : NULL;
}

const fv_op *fv__op_find(const char *name) {
    fv__isa_current();
    for (int low = 0, high = count; low < high;) {
        int middle = (low + high) / 2, order = strcmp(name, named[middle]->name);
        if (order == 0) return named[middle];
        *(order < 0 ? &high : &low) = order < 0 ? middle : middle + 1;
    }
    return NULL;
}

const fv_op *fv__op_of_role(fv_op_role role) {
    for (const fv_op *const *op = fv__isa_current()->ops; *op; op++)
        if ((*op)->role == role) return *op;
    return NULL;
}

static int ninputs_of(const fv_op *op) {
    int n = 0;
    while (op->inputs && op->inputs[n].name) n++;
    return n;
}

const fv_op *fv__op_of_sign(const char *sign, int ninputs) {
    for (const fv_op *const *op = fv__isa_current()->ops; *op; op++)
        if ((*op)->sign && !strcmp((*op)->sign, sign) && ninputs_of(*op) == ninputs) return *op;
    return NULL;
}

int fv__format_count(void) {
    int n = 0;
    while (fv__formats[n]) n++;
    return n;
}
const fv_format *fv__format_at(int index) { return fv__formats[index]; }

int fv__table_format_count(void) {
    int n = 0;
    while (fv__table_formats[n]) n++;
    return n;
}
const fv_table_format *fv__table_format_at(int index) { return fv__table_formats[index]; }

const fv_estimator *fv__op_estimator(const fv_op *op) {
    const fv_named_estimator *e = fv__isa_current()->estimators;
    while (e->op && strcmp(e->op, op->name)) e++;
    return e->estimator;
}
