/* A single separable filter (terms.h with one term) on OpenCL devices: the host lays the borders around, the device sums along z
 * and then along y and x. float32 results; a constant outside only where sums along an axis leave it as it is.
 */
#ifndef FV_TERMS_DEVICE_H
#define FV_TERMS_DEVICE_H

#include "kernels/terms.h"
#include "op/device_kernel.h"

#define fv__terms_device_able FV_ISA_NAME(fv__terms_device_able)
#define fv__terms_device_least FV_ISA_NAME(fv__terms_device_least)
#define fv__terms_device_wanted FV_ISA_NAME(fv__terms_device_wanted)
#define fv__terms_device_run FV_ISA_NAME(fv__terms_device_run)

bool      fv__terms_device_able(const fv_terms *t, const fv_need *n);
int64_t   fv__terms_device_least(const fv_terms *t, const fv_need *n);
int64_t   fv__terms_device_wanted(const fv_terms *t, const fv_need *n);
fv_status fv__terms_device_run(const fv_terms *t, fv_run *r, fv_device *device, fv_error *error);

/* The device kernel of an operator whose file has `static fv_terms terms(const fv_need *n)`. */
#define FV_TERMS_DEVICE(allowed)                                                                                                 \
    static bool able(const fv_need *n) {                                                                                         \
        fv_terms t = terms(n);                                                                                                   \
        return fv__terms_device_able(&t, n);                                                                                     \
    }                                                                                                                            \
    static int64_t least(const fv_need *n) {                                                                                     \
        fv_terms t = terms(n);                                                                                                   \
        return fv__terms_device_least(&t, n);                                                                                    \
    }                                                                                                                            \
    static int64_t wanted(const fv_need *n) {                                                                                    \
        fv_terms t = terms(n);                                                                                                   \
        return fv__terms_device_wanted(&t, n);                                                                                   \
    }                                                                                                                            \
    static fv_status run_device(fv_run *r, fv_device *d, fv_error *error) {                                                      \
        fv_terms t = terms(&r->need);                                                                                            \
        return fv__terms_device_run(&t, r, d, error);                                                                            \
    }                                                                                                                            \
    static const fv_device_kernel device = {                                                                                     \
        .tolerance = allowed, .able = able, .least = least, .wanted = wanted, .run = run_device                                  \
    };

#endif
