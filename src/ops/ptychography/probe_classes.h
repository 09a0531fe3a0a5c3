/* A probe shifted by parts of a pixel, and back: by turning the phases of its spectrum. */
#ifndef FV_PROBE_CLASSES_H
#define FV_PROBE_CLASSES_H

#include "kernels/plane_fourier.h"
#include "op/op.h"

typedef struct fv_probe_classes {
    int64_t          height, width, stride;
    const fv_list   *shifts;
    fv_plane_fourier fourier;
    float           *plane, *spectrum; /* rows of re, im; a stride apart */
    float           *half;             /* between its two axes: rows of columns */
    float           *turn[2];          /* cosine and sine by frequency, of rows and columns */
    double           ready;            /* half has the spectrum shifted by so many rows; NAN: it has not */
    void            *memory;
} fv_probe_classes;

#define fv__probe_classes_lay_out FV_ISA_NAME(fv__probe_classes_lay_out)
#define fv__probe_classes_open FV_ISA_NAME(fv__probe_classes_open)
#define fv__probe_classes_shift FV_ISA_NAME(fv__probe_classes_shift)
#define fv__probe_classes_shift_to FV_ISA_NAME(fv__probe_classes_shift_to)
#define fv__probe_classes_fill FV_ISA_NAME(fv__probe_classes_fill)
#define fv__probe_classes_next FV_ISA_NAME(fv__probe_classes_next)
#define fv__probe_classes_add FV_ISA_NAME(fv__probe_classes_add)
#define fv__probe_classes_add_rows FV_ISA_NAME(fv__probe_classes_add_rows)
#define fv__probe_classes_add_columns FV_ISA_NAME(fv__probe_classes_add_columns)

size_t fv__probe_classes_lay_out(fv_probe_classes *c, int64_t height, int64_t width, const fv_list *shifts, void *memory);
/* probe[class][height][2][width], classes `apart`: the first one is there, the others are filled from it. */
void fv__probe_classes_fill(fv_probe_classes *c, float *probe, int64_t apart);
/* All classes but the first, in an order in which rows are shifted alike as long as possible: the one after `class`, and 0 after
 * the last; of 0 the first of them. */
int64_t fv__probe_classes_next(const fv_probe_classes *c, int64_t class);
/* The transform of rows of re and im, divided by the number of pixels, becomes the spectrum. */
void fv__probe_classes_open(fv_probe_classes *c, const float *probe);
/* plane becomes what has this spectrum, shifted. Half of the work is saved if rows are shifted as they were before. */
void fv__probe_classes_shift(fv_probe_classes *c, const double shift[2]);
/* The same into rows of re and im elsewhere, which are a stride apart. */
void fv__probe_classes_shift_to(fv_probe_classes *c, const double shift[2], float *to, int64_t stride);
/* What is in plane is transformed, shifted back and added to a spectrum; rows a stride apart. */
void fv__probe_classes_add(fv_probe_classes *c, const double shift[2], float *spectrum);
/* The same in two steps, for many planes whose columns are shifted alike: each is shifted back by rows and added to half, which
 * is empty before the first; then all are shifted back by columns. */
void fv__probe_classes_add_rows(fv_probe_classes *c, double rows, bool first);
void fv__probe_classes_add_columns(fv_probe_classes *c, double columns, float *spectrum);

#endif
