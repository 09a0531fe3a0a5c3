/* The text of a reconstruction: what ptycho becomes. */
#ifndef FV_PTYCHO_TEXT_H
#define FV_PTYCHO_TEXT_H

#include "ops/ptychography/exit_waves.h"

typedef struct fv_ptycho {
    fv_list   positions, amplitude_limits, phase_limits;
    fv_choice method, output;
    int64_t   iterations, rounds, modes, probe_from, group, block, subpixel, positions_from, light_from, background_from,
        orientation, polish;
    double beta, beta_start, alpha, momentum, last_step, object_damping, probe_damping, smoothness, reach, near, stop;
} fv_ptycho;

enum { FV_PTYCHO_RAAR, FV_PTYCHO_DM, FV_PTYCHO_LSQ, FV_PTYCHO_EPIE, FV_PTYCHO_RPIE, FV_PTYCHO_MPIE };
enum { FV_PTYCHO_OBJECT, FV_PTYCHO_PROBE, FV_PTYCHO_RESIDUALS, FV_PTYCHO_RESIDUAL, FV_PTYCHO_POSITIONS, FV_PTYCHO_BACKGROUND };
enum { FV_PTYCHO_MARGIN = 5 }; /* around the object, in pixels, where frames are moved */

/* What is written, and about what. */
typedef struct fv_ptycho_text {
    const fv_ptycho *p;
    fv_bytes        *text;
    fv_wave_scan     at;                              /* as sorted */
    int64_t          origin[2];                       /* position of the object's corner */
    int64_t          size[2];                         /* of the object */
    int64_t          frame[2];                        /* rows and columns of a frame */
    const char      *axis;                            /* of frames */
    bool             probe, object, mask, background; /* which inputs are there */
} fv_ptycho_text;

#define fv__ptycho_write FV_ISA_NAME(fv__ptycho_write)

void fv__ptycho_write(fv_ptycho_text *t);

static inline bool fv__ptycho_blocks(const fv_ptycho *p) { return p->method.index >= FV_PTYCHO_EPIE; }
/* Whether frames are moved by another way than the block methods have. */
static inline bool fv__ptycho_moves(const fv_ptycho *p) { return p->positions_from && !fv__ptycho_blocks(p); }
/* Groups of frames that are used one after the other. */
static inline int64_t fv__ptycho_groups(const fv_ptycho *p, int64_t frames) {
    return p->method.index == FV_PTYCHO_LSQ ? FV_MAX(1, (frames + p->group - 1) / p->group) : 1;
}

#endif
