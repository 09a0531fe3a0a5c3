/* What this machine itself can do on two threads: prints "COPY ARITHMETIC", the GB/s of copying large arrays (read + written)
 * and the GFLOP/s of fused multiply-adds on float32 in registers (0 where this program cannot ask for them). Both are the best of
 * several turns and count processor time, so that others on the machine matter little.
 */
#include "base/base.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 2, TURNS = 15, ROUNDS = 2000000 };
static const size_t BYTES = (size_t)96 << 20;

typedef struct {
    double copied, computed;
} rates; /* GB/s and GFLOP/s of one thread */

#ifdef __x86_64__
typedef float floats __attribute__((vector_size(32)));
enum { SUMS = 12 }; /* enough independent sums to hide the latency of one */

__attribute__((target("avx2,fma"))) static double multiply_add(void) {
    floats sum[SUMS] = { 0 }, a = { 1, 1, 1, 1, 1, 1, 1, 1 }, b = a * 0.5f;
    double start = fv__thread_cpu();
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < SUMS; i++) __asm__ volatile("vfmadd231ps %1, %2, %0" : "+x"(sum[i]) : "x"(a), "x"(b));
    return 1e-9 * ROUNDS * SUMS * 8 * 2 / (fv__thread_cpu() - start);
}

static bool can_multiply_add(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#else
static double multiply_add(void) { return 0; }
static bool   can_multiply_add(void) { return false; }
#endif

static void *measure(void *argument) {
    rates *best = argument;
    char  *from = fv__buffer_new(BYTES), *to = fv__buffer_new(BYTES);
    memset(from, 1, BYTES);
    memset(to, 2, BYTES);
    for (int turn = 0; turn < TURNS; turn++) {
        double start = fv__thread_cpu();
        memcpy(to, from, BYTES);
        __asm__ volatile("" : : "r"(to) : "memory");
        best->copied = FV_MAX(best->copied, 2e-9 * (double)BYTES / (fv__thread_cpu() - start));
        if (can_multiply_add()) best->computed = FV_MAX(best->computed, multiply_add());
    }
    fv__buffer_free(from, BYTES);
    fv__buffer_free(to, BYTES);
    return NULL;
}

int main(void) {
    pthread_t thread[THREADS];
    rates     best[THREADS] = { 0 };
    for (int i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, measure, &best[i]);
    double copied = 0, computed = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        copied += best[i].copied;
        computed += best[i].computed;
    }
    printf("%.1f %.1f\n", copied, computed);
    return 0;
}
