/* Exact sums of arrays: the part of base/exact_sum.h that is compiled for each instruction set.
 *
 * A strip of doubles below 2^(highest + 1) is cut at the grid 2^(highest - 43): the parts above add up exactly in a double,
 * because FV__STRIP of them stay below 2^53 grid steps. What is left is at most half a grid step, so it is a strip again with
 * highest - 44. Nearly always nothing is left after two cuts, which one sweep makes. (Pre-rounding: J. Demmel and H. D. Nguyen,
 * Fast reproducible floating-point summation, 2013.) */
#ifndef FV_EXACT_STRIP_H
#define FV_EXACT_STRIP_H

#include "base/exact_sum.h"
#include "base/isa.h"
#include <math.h>

enum { FV__STRIP = 256, FV__STEP = 44, FV__SWEEPS = 4, FV__LANES = FV_VECTOR_BYTES / 8, FV__CHAINS = 4 };
typedef double   fv__lanes __attribute__((vector_size(FV_VECTOR_BYTES)));
typedef uint64_t fv__masks __attribute__((vector_size(FV_VECTOR_BYTES)));

static inline double fv__power_of_two(int exponent) { /* normal numbers only */
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double   power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

static inline double fv__lanes_total(const fv__lanes value[FV__CHAINS]) {
    double total = 0;
    for (int i = 0; i < FV__CHAINS * FV__LANES; i++) total += value[i / FV__LANES][i % FV__LANES];
    return total;
}

/* Takes two cuts off the strip; true if something is left in it. Several chains of additions hide their latency. */
static inline bool fv__sweep(fv__lanes *strip, int highest, double cut[2]) {
    fv__lanes zero = { 0 }, rounder = zero + 1.5 * fv__power_of_two(highest + 9),
              finer = zero + 1.5 * fv__power_of_two(highest - FV__STEP + 9);
    fv__lanes above[FV__CHAINS] = { 0 }, below[FV__CHAINS] = { 0 };
    fv__masks left = { 0 };
    for (int i = 0; i < FV__STRIP / FV__LANES; i += FV__CHAINS)
        for (int c = 0; c < FV__CHAINS; c++) {
            fv__lanes value = strip[i + c], part = (value + rounder) - rounder;
            above[c] += part;
            value -= part;
            part = (value + finer) - finer;
            below[c] += part;
            strip[i + c] = value -= part;
            left |= (fv__masks)value;
        }
    cut[0] = fv__lanes_total(above);
    cut[1] = fv__lanes_total(below);
    uint64_t any = 0;
    for (int i = 0; i < FV__LANES; i++) any |= left[i] << 1; /* zeros may be negative */
    return any != 0;
}

/* The strip has zeros behind its n values and is used up. */
static inline void fv__add_strip(fv_sum *sum, double *strip, int n, int highest) {
    bool left = true;
    for (int i = 0; left && i < FV__SWEEPS && highest > -900 && highest < 1000; i++, highest -= 2 * FV__STEP) {
        double cut[2];
        left = fv__sweep((fv__lanes *)strip, highest, cut);
        fv__sum_add(sum, cut[0]);
        fv__sum_add(sum, cut[1]);
    }
    for (int i = 0; left && i < n; i++)
        if (strip[i] != 0) fv__sum_add(sum, strip[i]);
}

static inline void fv__pad(double *strip, int n) {
    if (n < FV__STRIP) memset(strip + n, 0, (size_t)(FV__STRIP - n) * sizeof *strip);
}

/* Exponent of the largest value; 1024 if one is infinite or NaN. */
static inline int fv__highest_float(const float *values, int n) {
    int32_t most = 0;
    for (int i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, values + i, sizeof bits);
        bits &= INT32_MAX;
        most = bits > most ? bits : most;
    }
    int field = most >> 23;
    return field == 255 ? 1024 : FV_MAX(field, 1) - 127;
}

static inline int fv__highest_double(const double *values, int n) {
    int32_t most = 0; /* the upper halves tell enough */
    for (int i = 0; i < n; i++) {
        int32_t half;
        memcpy(&half, (const char *)(values + i) + (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 4 : 0), sizeof half);
        half &= INT32_MAX;
        most = half > most ? half : most;
    }
    return FV_MAX(most >> 20, 1) - 1023;
}

static inline void fv__sum_add_floats(fv_sum *sum, fv_sum *squares, const float *values, int64_t n) {
    _Alignas(64) double strip[FV__STRIP];
    for (int64_t done = 0; done < n; done += FV__STRIP) {
        int count = (int)FV_MIN(n - done, FV__STRIP), highest = fv__highest_float(values + done, count);
        if (squares) {
            for (int i = 0; i < count; i++) strip[i] = (double)values[done + i] * values[done + i];
            fv__pad(strip, count);
            fv__add_strip(squares, strip, count, 2 * highest + 1);
        }
        if (sum) {
            for (int i = 0; i < count; i++) strip[i] = values[done + i];
            fv__pad(strip, count);
            fv__add_strip(sum, strip, count, highest);
        }
    }
}

/* Square and its rounding error, after Dekker: exact where no part underflows or overflows. False if one underflows. */
static inline bool fv__square_parts(const double *values, int n, double *high, double *low) {
    uint64_t tiny = 0;
    for (int i = 0; i < n; i++) {
        double x = values[i], wide = 0x8000001p0 * x, top = wide - (wide - x), rest = x - top;
        high[i] = x * x;
        low[i] = ((top * top - high[i]) + 2 * top * rest) + rest * rest;
        tiny |= (fabs(x) < 0x1p-450) & (x != 0);
    }
    return !tiny;
}

static inline void fv__add_squares(fv_sum *squares, const double *values, int n, int highest) {
    _Alignas(64) double high[FV__STRIP], low[FV__STRIP];
    if (highest < 480 && fv__square_parts(values, n, high, low)) {
        fv__pad(high, n);
        fv__pad(low, n);
        fv__add_strip(squares, high, n, 2 * highest + 1);
        fv__add_strip(squares, low, n, 2 * highest + 1 - 53);
    } else
        for (int i = 0; i < n; i++) fv__sum_add_square(squares, values[i]);
}

static inline void fv__sum_add_doubles(fv_sum *sum, fv_sum *squares, const double *values, int64_t n) {
    _Alignas(64) double strip[FV__STRIP];
    for (int64_t done = 0; done < n; done += FV__STRIP) {
        int count = (int)FV_MIN(n - done, FV__STRIP), highest = fv__highest_double(values + done, count);
        if (squares) fv__add_squares(squares, values + done, count, highest);
        if (sum) {
            memcpy(strip, values + done, (size_t)count * sizeof *strip);
            fv__pad(strip, count);
            fv__add_strip(sum, strip, count, highest);
        }
    }
}

#endif
