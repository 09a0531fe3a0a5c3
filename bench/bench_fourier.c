/* Fourier transforms of planes in single precision, there and back, on one core. Peer: FFTW (libfftw3f.so.3, loaded if it is
 * there), which plans by measuring. It is a yardstick only: Fovea does not use it.
 *
 *     bench_fourier [HEIGHT WIDTH]...
 */
#include "base/isa.h"
#include "kernels/plane_fourier.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 7, FORWARD = -1, BACKWARD = 1, MEASURE = 0 };

/* Each instruction set has its own copy. */
#define DECLARE(isa)                                                                                                             \
    void    fv__plane_fourier_##isa(const fv_plane_fourier *, float *, int64_t, bool);                                           \
    void    fv__plane_fourier_prepare_##isa(fv_plane_fourier *, int64_t, int64_t, void *);                                       \
    int64_t fv__plane_fourier_bytes_##isa(int64_t, int64_t);
DECLARE(avx2)
DECLARE(avx512)

typedef struct peer {
    void *(*plan)(int, int, float *, float *, int, unsigned);
    void (*execute)(void *);
    void *(*take)(size_t);
} peer;

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double ours(int64_t height, int64_t width, int64_t repeats) {
    bool             wide = __builtin_cpu_supports("avx512f");
    int64_t          stride = fv__plane_stride(width);
    fv_plane_fourier f;
    int64_t          bytes = wide ? fv__plane_fourier_bytes_avx512(height, width) : fv__plane_fourier_bytes_avx2(height, width);
    void            *memory = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
    float           *plane = aligned_alloc(64, (size_t)(height * stride) * sizeof *plane);
    double           best = 1e9;
    (wide ? fv__plane_fourier_prepare_avx512 : fv__plane_fourier_prepare_avx2)(&f, height, width, memory);
    for (int round = 0; round < ROUNDS; round++) {
        for (int64_t i = 0; i < height * stride; i++) plane[i] = (float)(i % 7) * 1e-3f;
        double begin = seconds();
        for (int64_t k = 0; k < repeats; k++)
            (wide ? fv__plane_fourier_avx512 : fv__plane_fourier_avx2)(&f, plane, stride, k % 2);
        best = FV_MIN(best, (seconds() - begin) / (double)repeats);
    }
    free(plane);
    free(memory);
    return best;
}

static double theirs(const peer *p, int64_t height, int64_t width, int64_t repeats) {
    float *plane = p->take((size_t)(2 * height * width) * sizeof *plane);
    void  *plan[2] = { p->plan((int)height, (int)width, plane, plane, FORWARD, MEASURE),
                       p->plan((int)height, (int)width, plane, plane, BACKWARD, MEASURE) };
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        for (int64_t i = 0; i < 2 * height * width; i++) plane[i] = (float)(i % 7) * 1e-3f;
        double begin = seconds();
        for (int64_t k = 0; k < repeats; k++) p->execute(plan[k % 2]);
        best = FV_MIN(best, (seconds() - begin) / (double)repeats);
    }
    return best;
}

static void compare(const peer *p, int64_t height, int64_t width) {
    int64_t repeats = FV_MAX(2, (int64_t)(2e7 / (double)(height * width) / 10) * 2);
    double  a = ours(height, width, repeats);
    printf("%lld x %lld: %.1f us", (long long)height, (long long)width, a * 1e6);
    if (p->plan) {
        double b = theirs(p, height, width, repeats);
        printf(", FFTW %.1f us, %.2f of it", b * 1e6, a / b);
    }
    printf("\n");
}

int main(int argc, char **argv) {
    static const int64_t usual[] = { 64, 96, 100, 112, 120, 128, 160, 192, 210, 224, 240, 256, 320, 384, 448, 512 };
    peer                 p = { 0 };
    void                *library = dlopen("libfftw3f.so.3", RTLD_NOW);
    if (library) {
        p.plan = (void *(*)(int, int, float *, float *, int, unsigned))dlsym(library, "fftwf_plan_dft_2d");
        p.execute = (void (*)(void *))dlsym(library, "fftwf_execute");
        p.take = (void *(*)(size_t))dlsym(library, "fftwf_malloc");
    } else
        printf("FFTW: %s\n", dlerror());
    if (!__builtin_cpu_supports("avx2")) return printf("this processor has no AVX2\n"), 0;
    for (int i = 1; i + 1 < argc; i += 2) compare(&p, atoll(argv[i]), atoll(argv[i + 1]));
    for (size_t i = 0; argc < 3 && i < sizeof usual / sizeof *usual; i++) compare(&p, usual[i], usual[i]);
    return 0;
}
