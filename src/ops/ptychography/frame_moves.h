/* Where a frame fits better: what is left of its wave is nearly P (dy O_y + dx O_x), where O_y and O_x are the slopes of the
 * object and (dy, dx) is how far it lies from where it was thought to be. */
#ifndef FV_FRAME_MOVES_H
#define FV_FRAME_MOVES_H

#include "ops/ptychography/exit_waves.h"

enum { FV_MOVE_SUMS = 5 };

/* Probe, error wave, and object from the frame's corner on. */
typedef struct fv_move_planes {
    fv_wave_plane probe, error, object;
} fv_move_planes;

#define fv__move_add FV_ISA_NAME(fv__move_add)

/* Adds the sums of a mode: of the inner pixels. */
void fv__move_add(const fv_move_planes *planes, int64_t height, int64_t width, double sums[FV_MOVE_SUMS]);

/* The least squares; false: the object has no slopes by which to tell. */
static inline bool fv__move_find(const double s[FV_MOVE_SUMS], double move[2]) {
    double whole = s[0] * s[1] * 1.000001 - s[2] * s[2];
    if (!(whole > 0)) return false;
    move[0] = (s[3] * s[1] - s[4] * s[2]) / whole;
    move[1] = (s[4] * s[0] - s[3] * s[2]) / whole;
    return true;
}

static inline double fv__move_bound(double value, double most) { return FV_MAX(-most, FV_MIN(most, value)); }

/* A place of an axis after a move, which is at most `reach`, and leads at most `limit` away from where it was told. */
static inline float fv__move_place(double place, double move, double told, double reach, double limit) {
    return (float)(told + fv__move_bound(place + fv__move_bound(move, reach) - told, limit));
}

#endif
