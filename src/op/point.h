/* Loops of point-wise kernels: the body is an expression in x (and y, z), values of the inputs in the compute type.
 *
 *     FV_POINT2(real32, float, float, x + y)      defines static void real32(parameters, n, out, in), a fv_point_fn
 *
 * Plain loops: they vectorise in each instruction set. */
#ifndef FV_POINT_H
#define FV_POINT_H

#include "op/op.h"
#include "op/promote.h"

#define FV_POINT1(NAME, OUT, IN, EXPRESSION)                                                                                     \
    static void NAME(const void *parameters, int64_t n, void *restrict out, const void *const *in) {                             \
        (void)parameters;                                                                                                        \
        OUT *restrict result = out;                                                                                              \
        const IN *restrict xs = in[0];                                                                                           \
        for (int64_t i = 0; i < n; i++) {                                                                                        \
            IN x = xs[i];                                                                                                        \
            result[i] = (OUT)(EXPRESSION);                                                                                       \
        }                                                                                                                        \
    }

#define FV_POINT2(NAME, OUT, IN, EXPRESSION)                                                                                     \
    static void NAME(const void *parameters, int64_t n, void *restrict out, const void *const *in) {                             \
        (void)parameters;                                                                                                        \
        OUT *restrict result = out;                                                                                              \
        const IN *restrict xs = in[0], *restrict ys = in[1];                                                                     \
        for (int64_t i = 0; i < n; i++) {                                                                                        \
            IN x = xs[i], y = ys[i];                                                                                             \
            result[i] = (OUT)(EXPRESSION);                                                                                       \
        }                                                                                                                        \
    }

#define FV_POINT3(NAME, OUT, IN, EXPRESSION)                                                                                     \
    static void NAME(const void *parameters, int64_t n, void *restrict out, const void *const *in) {                             \
        (void)parameters;                                                                                                        \
        OUT *restrict result = out;                                                                                              \
        const IN *restrict xs = in[0], *restrict ys = in[1], *restrict zs = in[2];                                               \
        for (int64_t i = 0; i < n; i++) {                                                                                        \
            IN x = xs[i], y = ys[i], z = zs[i];                                                                                  \
            result[i] = (OUT)(EXPRESSION);                                                                                       \
        }                                                                                                                        \
    }

/* Kernels of a comparison, which must be exact in each compute type. */
#define FV_POINT_COMPARISON(OPERATOR)                                                                                            \
    FV_POINT2(real32, uint8_t, float, x OPERATOR y)                                                                              \
    FV_POINT2(real64, uint8_t, double, x OPERATOR y)                                                                             \
    FV_POINT2(whole, uint8_t, int64_t, x OPERATOR y)                                                                             \
    FV_POINT2(natural, uint8_t, uint64_t, x OPERATOR y)

/* Copies of the operand, where an operator leaves integers as they are. */
#define FV_POINT_COPIES                                                                                                          \
    FV_POINT1(whole, int64_t, int64_t, x)                                                                                        \
    FV_POINT1(natural, uint64_t, uint64_t, x)                                                                                    \
    FV_POINT1(flag, uint8_t, uint8_t, x)

#endif
