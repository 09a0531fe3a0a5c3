/* What is found of each frame while a reconstruction goes on: where it lies, how bright it is.
 *
 * States are rows of ptycho_refine, which has them first, and of ptycho_pie, which has them behind the changes of the probe:
 * FV_STATE_NUMBERS of each frame of a block, one after the other. Behind them follow `height` rows with what the frames of the
 * block say of the background: the sum of ratios of amplitudes, and how many frames have measured, `width` numbers each.
 */
#ifndef FV_FRAME_STATES_H
#define FV_FRAME_STATES_H

#include "ops/ptychography/exit_waves.h"
#include "ops/ptychography/measured_waves.h"

enum {
    FV_STATE_Y, /* rows beyond its corner in the scan, and columns */
    FV_STATE_X,
    FV_STATE_LIGHT, /* amplitude of its light, beside that of the probe */
    FV_STATE_FRESH, /* 1: its corner has changed, so that waves of before do not belong to it */
    FV_STATE_NUMBERS
};

static inline int64_t fv__state_rows(const fv_waves *w) { return (FV_STATE_NUMBERS * w->block + w->row - 1) / w->row; }
static inline int64_t fv__pie_states_row(const fv_waves *w) { return w->modes * w->height; }

/* Inputs and a parameter of steps that know of them. */
#define FV_WAVE_STATES_INPUT                                                                                                     \
    {                                                                                                                            \
        "states", FV_KIND_IMAGE,                                                                                                 \
            .optional = true,                                                                                                    \
            .doc = "where frames lie and how bright they are, as ptycho_refine gives it; left out: as the scan says"             \
    }
#define FV_WAVE_BACKGROUND_INPUT                                                                                                 \
    {                                                                                                                            \
        "background", FV_KIND_IMAGE, .optional = true,                                                                           \
                                     .doc = "light that is not of the waves, as ptycho_background gives it: float32, y x"        \
    }
#define FV_WAVE_NEAR_PARAM(type)                                                                                                 \
    FV_PARAM(type, near, .def = "0", .min = -1e9, .max = 1e9, .unit = "px^2",                                                    \
             .doc = "a detector near by: wavelength times distance, by the area of a pixel; 0: far away")

#define fv__states_find FV_ISA_NAME(fv__states_find)
#define fv__states_scan FV_ISA_NAME(fv__states_scan)
#define fv__states_fit FV_ISA_NAME(fv__states_fit)
#define fv__states_need FV_ISA_NAME(fv__states_need)
#define fv__measured_frame FV_ISA_NAME(fv__measured_frame)
#define fv__states_region FV_ISA_NAME(fv__states_region)
#define fv__states_move FV_ISA_NAME(fv__states_move)
#define fv__state_corner FV_ISA_NAME(fv__state_corner)

/* Sizes from the probe alone, for steps that have neither frames nor waves. */
fv_status fv__states_scan(const fv_wave_scan *at, const fv_type *probe, fv_waves *w, fv_error *error);
/* In which row of an image states begin, if they belong to this scan. */
fv_status fv__states_find(const fv_waves *w, const fv_type *states, int64_t *row, fv_error *error);
/* The same of inputs that may be left out. */
fv_status fv__states_fit(const fv_waves *w, const fv_type *states, const fv_type *background, fv_error *error);
void      fv__states_need(const fv_waves *w, const fv_need *n, int input, int64_t first, int64_t count, fv_region *in);
/* The states of `count` blocks. */
fv_region fv__states_region(const fv_waves *w, const fv_type *states, int64_t first, int64_t count);
/* Frames of the blocks that are there are moved to where their states say; scan has room for all frames. Without states, or if
 * frames may not be moved, they stay. */
void                  fv__states_move(fv_waves *w, const fv_block *states, double *scan);
static inline int64_t fv__states_room(const fv_wave_scan *at) {
    return at->margin ? at->scan.count * (int64_t)sizeof(double) : 0;
}
/* The corner of a place in the object, and the class of what is beyond it. */
void fv__state_corner(const fv_waves *w, const double place[2], double frame[FV_SCAN_NUMBERS]);

/* A number of a frame, from the first row of states that is there. */
static inline float fv__state(const fv_waves *w, const fv_block *states, int64_t frame, int number) {
    int64_t at = FV_STATE_NUMBERS * (frame % w->block) + number;
    return ((const float *)states->data)[(frame / w->block - states->region.start[0]) * states->stride[0] +
                                         at / w->row * states->stride[1] + at % w->row * states->stride[2]];
}
/* What was measured of a frame, with its light and the background, if these inputs are there. */
typedef struct fv_measured_inputs {
    int amplitudes, states, background;
} fv_measured_inputs;
fv_measured fv__measured_frame(const fv_waves *w, const fv_run *r, fv_measured_inputs of, int64_t frame);

static inline bool fv__state_fresh(const fv_waves *w, const fv_block *states, int64_t frame) {
    return states && fv__state(w, states, frame, FV_STATE_FRESH) > 0;
}

#endif
