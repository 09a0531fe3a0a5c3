/* Lines of samples along the axis of rotation: two neighbours are blended, looked at in even steps, and what is seen is added up.
 *
 * All of cone-beam tomography is this. For a column of voxels the lines are columns of the detector, one pair an angle; for a
 * column of rays they are columns of voxels, one pair a plane that the rays cross. Element k of the result looks at place
 * base + k * slope, in single precision from absolute k, so nothing depends on where a region starts.
 */
#ifndef FV_LINES_H
#define FV_LINES_H

#include "op/op.h"

enum { FV_LINES_STEP = 16, FV_LINES_MOST = 32 };

typedef struct fv_line {
    const float *low, *high; /* the pair; sample `start` of fv_lines lies first */
    float        a, b;       /* what each weighs */
    float        base, slope;
} fv_line;

/* What all lines of a call have in common. */
typedef struct fv_lines {
    int64_t start, samples; /* first sample that is held, and how many: a multiple of 16 that holds all places and one more */
    int64_t first, count;   /* elements of the result; count is a multiple of 16 */
    bool    single;         /* one element that looks at one sample, as in a single slice: base and slope do not matter */
    float  *blend;          /* room for fv__lines_room() floats */
} fv_lines;

static inline int64_t fv__lines_round(int64_t n) { return (n + FV_LINES_STEP - 1) / FV_LINES_STEP * FV_LINES_STEP; }
static inline int64_t fv__lines_room(int64_t samples) { return (samples + 2 * FV_LINES_STEP) * FV_LINES_MOST; }

/* to[k] += the sum over up to FV_LINES_MOST lines, one after the other, of (a low + b high) at base + (first + k) slope. */
void FV_ISA_NAME(fv__lines_gather)(const fv_lines *s, const fv_line *line, int nlines, float *to);
/* The transpose for one line: to[i] = the sum over elements k of from[k - first] times what sample start + i gives to it.
 * Elements before and behind must give nothing; FV_LINES_ROOM finite floats behind from[count] may be read. */
enum { FV_LINES_ROOM = 32 };
void FV_ISA_NAME(fv__lines_spread)(const fv_lines *s, const float *from, float base, float slope, float *to);

#endif
