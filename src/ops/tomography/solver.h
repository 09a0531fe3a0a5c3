/* The frame of iterative reconstruction: bundles of 16 slices, each solved by itself from its own detector rows.
 *
 * A method is a function that improves all slices of a bundle once. The frame brings measured values and start in, follows the
 * residual of every slice, stops a slice that is good enough (its steps become 0), and takes the wanted part out. A slice never
 * sees its neighbours, so results do not depend on chunks.
 */
#ifndef FV_SOLVER_H
#define FV_SOLVER_H

#include "ops/tomography/scan.h"

typedef struct fv_solver {
    fv_geometry geometry;
    int64_t     iterations;
    double      relaxation, stop;
    bool        nonnegative;
    fv_numbers  size;
    int64_t     subsets;
    fv_choice   window;      /* of sart: FV_SOLVER_HAMMING */
    int64_t     done, state; /* of a part of a long solve: iterations before it (-1: no part), images of the state it gives */
    int64_t     every;       /* a part ends after each so many iterations; 0: only where it would take too long */
} fv_solver;

enum { FV_SOLVER_NO_WINDOW, FV_SOLVER_HAMMING };

#define FV_SOLVER_GEOMETRY                                                                                                       \
    FV_PARAM(fv_solver, geometry, .each = 1,                                                                                     \
             .doc = "how the projections were taken: parallel(angles = range(-73, 73, 2)) or cone(...)")
#define FV_SOLVER_ITERATIONS(number)                                                                                             \
    FV_PARAM(fv_solver, iterations, .def = number, .min = 1, .max = 100000, .doc = "how often all projections are used")
#define FV_SOLVER_RELAXATION(number)                                                                                             \
    FV_PARAM(fv_solver, relaxation, .def = number, .above = true, .max = 2,                                                      \
             .doc = "factor on each step; a smaller one reduces noise")
#define FV_SOLVER_NONNEGATIVE                                                                                                    \
    FV_PARAM(fv_solver, nonnegative, .def = "false", .doc = "negative voxels become 0 after each iteration")
#define FV_SOLVER_STOP                                                                                                           \
    FV_PARAM(fv_solver, stop, .def = "0", .min = 0, .max = 1,                                                                    \
             .doc = "stop a slice when its residual is at most this part of its projections; 0: never")
#define FV_SOLVER_SIZE                                                                                                           \
    FV_PARAM(fv_solver, size, .def = "", .min = 1, .max = 8192, .unit = "px",                                                    \
             .doc = "rows and columns of a slice, one number or two (of a cone beam: slices, rows, columns); left out: the "     \
                    "detector's size")

#define FV_SOLVER_SUBSETS                                                                                                        \
    FV_PARAM(fv_solver, subsets, .def = "0", .min = 0, .max = 100000,                                                            \
             .doc = "of a cone beam: number of groups into which the projections are divided; the projections of a group are "   \
                    "used at once; 0: one by one")

#define FV_SOLVER_WINDOW                                                                                                         \
    FV_PARAM(fv_solver, window, .def = "none", .choices = "none|hamming",                                                        \
             .doc = "of parallel beams: hamming lets corrections decrease from the middle of each ray to the circle inside "     \
                    "the slice; nothing outside is corrected")

/* The last parameters of every method: for the parts of a long solve. */
#define FV_SOLVER_PART                                                                                                           \
    FV_PARAM(fv_solver, done, .def = "-1", .own = true, .doc = "iterations that the volume or state to begin with has had"),     \
        FV_PARAM(fv_solver, state, .def = "0", .own = true, .doc = "the result is a state of so many images; 0: the volume"),    \
        FV_PARAM(fv_solver, every, .def = "0", .own = true, .doc = "iterations after each of which the volume is wanted")

enum { FV_SOLVER_PROJECTIONS, FV_SOLVER_START, FV_SOLVER_MASK, FV_SOLVER_INPUTS };
#define FV_SOLVER_INPUT_TABLE                                                                                                    \
    { "projections", FV_KIND_IMAGE, .doc = "line integrals, as minus_log gives them; axes angle z x, z angle x, or angle x" },   \
        { "start", FV_KIND_IMAGE, .optional = true, .doc = "volume to start from, with the shape of the result" },               \
        { "mask", FV_KIND_IMAGE, .optional = true,                                                                               \
          .doc = "where this image is 0 the volume stays 0; with the shape of the result" },                                     \
        FV_INPUT_END

/* A bundle while it is solved. Images and sinograms as kernels/beam.h lays them out. */
typedef struct fv_solving {
    const fv_solver *solver;
    fv_scan          scan;
    fv_beam          beam;
    float           *measured, *image;
    float           *mask;        /* NULL: none */
    float           *rest;        /* sinogram: a method's own */
    float           *spare[2];    /* images: a method's own, if it said it needs them */
    float           *lengths;     /* [angles][columns]: of every ray */
    float           *coverage;    /* [rows][width]: what each voxel gets from projections of ones */
    float           *line, *rows; /* room for a line of voxels or rays */
    int32_t         *order;       /* angles spread by the golden ratio: each is far from the ones before */
    fv_beam_trail    trail;
    float            step[FV_BEAM_LANES];  /* relaxation, 0 for slices that are done */
    double           scale[FV_BEAM_LANES]; /* a method's own number of every slice */
    double  residual[FV_BEAM_LANES]; /* squared, of the image before the iteration (art, sart: during it); a method sets it */
    double  measure[FV_BEAM_LANES];  /* squared norm of the measured values */
    double  reached[FV_BEAM_LANES];  /* the residual at which a slice has stopped */
    int64_t iteration;
} fv_solving;

typedef struct fv_method {
    int  spares;   /* images it needs besides */
    int  carried;  /* of these, the last so many go from an iteration to the next */
    bool positive; /* starts from ones, not zeros */
    bool weights;  /* needs lengths and coverage */
    bool ordered;  /* its residual is known after an iteration only, and decides about the next one */
    void (*iterate)(fv_solving *s);
} fv_method;

/* A state, from which a part of a long solve goes on: images of a slice one below the other (the volume and what is carried), and
 * a row that begins with the residual at which the slice has stopped, as a part of the measured; -1: it has not. */

#define fv__solver_infer FV_ISA_NAME(fv__solver_infer)
#define fv__solver_need FV_ISA_NAME(fv__solver_need)
#define fv__solver_scratch FV_ISA_NAME(fv__solver_scratch)
#define fv__solver_run FV_ISA_NAME(fv__solver_run)
#define fv__solver_lay_out FV_ISA_NAME(fv__solver_lay_out)
#define fv__solver_slab FV_ISA_NAME(fv__solver_slab)
#define fv__solver_note FV_ISA_NAME(fv__solver_note)
#define fv__solver_listener FV_ISA_NAME(fv__solver_listener)
#define fv__solver_notes FV_ISA_NAME(fv__solver_notes)
#define fv__solver_cost FV_ISA_NAME(fv__solver_cost)
#define fv__solver_residual FV_ISA_NAME(fv__solver_residual)
#define fv__solver_stop FV_ISA_NAME(fv__solver_stop)
#define fv__solver_square FV_ISA_NAME(fv__solver_square)
#define fv__solver_limit FV_ISA_NAME(fv__solver_limit)
#define fv__solver_shapes FV_ISA_NAME(fv__solver_shapes)
#define fv__solver_unroll FV_ISA_NAME(fv__solver_unroll)
#define fv__solver_spread FV_ISA_NAME(fv__solver_spread)
#define fv__cone_unroll FV_ISA_NAME(fv__cone_unroll)

fv_status fv__solver_infer(fv_infer *i, fv_error *error);
void      fv__solver_need(const fv_need *n, fv_region *in);
/* Cuts the scratch up; memory NULL: only counts. */
size_t    fv__solver_lay_out(const fv_need *n, const fv_method *method, fv_solving *s, void *memory);
size_t    fv__solver_scratch(const fv_need *n, const fv_method *method);
fv_status fv__solver_run(fv_run *r, const fv_method *method, fv_error *error);
void      fv__solver_slab(const fv_need *n, int64_t *chunk);
bool      fv__solver_notes(const void *params);
double    fv__solver_cost(const fv_need *n);

/* rest = measured - projections of the image, and its squared norm in residual. */
void fv__solver_residual(fv_solving *s);
/* The residual of the image is known: slices that are good enough take no more steps, not even this one. false: none is left. */
bool fv__solver_stop(fv_solving *s);
/* Squared norm of every slice in n groups of 16, added in order. */
void fv__solver_square(const float *from, int64_t n, double to[FV_BEAM_LANES]);
/* The residuals that the iteration just made has set, for whoever follows them. */
void fv__solver_note(const fv_solving *s, int64_t first, int64_t slices, fv_bytes *notes);
/* Who follows them; NULL: nobody. Of the chunks that share slices, the first tells of them. */
fv_bytes *fv__solver_listener(const fv_run *r);
/* Keeps a line of voxels inside the mask and, if asked, from being negative. */
void fv__solver_limit(const fv_solving *s, int64_t y);

/* An order of n angles or groups of them in which each is far from the ones before. */
void fv__solver_spread(int64_t n, int32_t *order);

/* Whether start and mask have the shape of i->out. */
fv_status fv__solver_shapes(const fv_infer *i, fv_error *error);
/* A method for cones, as a pipeline of projections and back-projections. */
typedef enum fv_unrolled { FV_UNROLLED_SIRT, FV_UNROLLED_MLEM, FV_UNROLLED_CGLS, FV_UNROLLED_ART, FV_UNROLLED_SART } fv_unrolled;
/* table: its residuals instead of the volume, as a row of slice 0, iteration and residual for each one made. */
fv_status fv__cone_unroll(fv_infer *i, fv_unrolled kind, bool table, fv_bytes *text, fv_error *error);
/* A long solve of parallel beams, as a few calls of the same operator that each begin where the one before ended. */
void fv__solver_unroll(fv_infer *i, const char *name, const fv_method *method, const fv_param *params, fv_bytes *text);

#define FV_SOLVER_UNROLL(kind, name)                                                                                             \
    static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {                                                      \
        if (((const fv_solver *)i->params)->geometry.beam == FV_GEOMETRY_CONE)                                                   \
            return fv__cone_unroll(i, kind, false, text, error);                                                                 \
        fv__solver_unroll(i, name, &method, params, text);                                                                       \
        return FV_OK;                                                                                                            \
    }

#define FV_SOLVER_OP(method_)                                                                                                    \
    static size_t        scratch(const fv_need *n) { return fv__solver_scratch(n, &method_); }                                   \
    static fv_status     run(fv_run *r, fv_error *error) { return fv__solver_run(r, &method_, error); }                          \
    static const fv_pass passes[] = { { .need = fv__solver_need, .scratch = scratch, .run = run }, FV_PASS_END }

#define FV_SOLVER_FIELDS                                                                                                         \
    .family = "tomography", .stage = "reconstruct", .version = 2, .inputs = inputs, .params = params,                            \
    .params_size = sizeof(fv_solver), .result = FV_KIND_IMAGE, .infer = fv__solver_infer, .passes = passes,                      \
    .slab = fv__solver_slab, .cost = fv__solver_cost, .unroll = unroll, .notes = fv__solver_notes

#endif
