/* Rank filters of small boxes on OpenCL devices, by the comparator networks of rank_network.c written out as OpenCL C. The same
 * bits as on the CPU.
 */
#ifndef FV_RANK_DEVICE_H
#define FV_RANK_DEVICE_H

#include "kernels/rank.h"
#include "op/device_kernel.h"

#define fv__rank_device_able FV_ISA_NAME(fv__rank_device_able)
#define fv__rank_device_least FV_ISA_NAME(fv__rank_device_least)
#define fv__rank_device_wanted FV_ISA_NAME(fv__rank_device_wanted)
#define fv__rank_device_run FV_ISA_NAME(fv__rank_device_run)

bool      fv__rank_device_able(const fv_rank *f, const fv_need *n);
int64_t   fv__rank_device_least(const fv_rank *f, const fv_need *n);
int64_t   fv__rank_device_wanted(const fv_rank *f, const fv_need *n);
fv_status fv__rank_device_run(const fv_rank *f, fv_run *r, fv_device *device, fv_error *error);

/* The device kernel of an operator whose file has `static fv_rank filter(const fv_need *n)`. */
#define FV_RANK_DEVICE                                                                                                           \
    static bool able(const fv_need *n) {                                                                                         \
        fv_rank f = filter(n);                                                                                                   \
        return fv__rank_device_able(&f, n);                                                                                      \
    }                                                                                                                            \
    static int64_t least(const fv_need *n) {                                                                                     \
        fv_rank f = filter(n);                                                                                                   \
        return fv__rank_device_least(&f, n);                                                                                     \
    }                                                                                                                            \
    static int64_t wanted(const fv_need *n) {                                                                                    \
        fv_rank f = filter(n);                                                                                                   \
        return fv__rank_device_wanted(&f, n);                                                                                    \
    }                                                                                                                            \
    static fv_status run_device(fv_run *r, fv_device *d, fv_error *error) {                                                      \
        fv_rank f = filter(&r->need);                                                                                            \
        return fv__rank_device_run(&f, r, d, error);                                                                             \
    }                                                                                                                            \
    static const fv_device_kernel device = { .able = able, .least = least, .wanted = wanted, .run = run_device };

#endif
