/* Finds the linear transform under which a moving image resembles a fixed one most.
 *
 * A place p of the fixed image belongs to M (p - centre) + target of the moving one. Each step turns M by a small motion from the
 * left and moves target: steps are those of Gauss and Newton, damped as Levenberg and Marquardt do, at most so many. Every sum is
 * over the samples in their order, in a fixed number of lanes: the result depends on the values alone.
 */
#ifndef FV_FITTING_H
#define FV_FITTING_H

#include "base/isa.h"
#include "op/op.h"
#include "op/scratch.h"

enum { FV_FIT_SHIFT, FV_FIT_RIGID, FV_FIT_SIMILARITY, FV_FIT_AFFINE };
enum { FV_FIT_MEAN_SQUARES, FV_FIT_CORRELATION, FV_FIT_MUTUAL_INFORMATION };
enum { FV_FIT_MOST = 12, FV_FIT_STRIP = 256, FV_FIT_BINS = 64 };

/* What a step needs to know at some transform. */
typedef struct fv_fit_terms {
    int64_t inside; /* samples that lie inside the moving image */
    double  cost;   /* the less the better; infinite: too few lie inside */
    double  gradient[FV_FIT_MOST], curvature[FV_FIT_MOST][FV_FIT_MOST];
} fv_fit_terms;

typedef struct fv_fit {
    int      n, kind, metric, bins, iterations;
    int64_t  count, room; /* samples of the fixed image, and for how many there is memory */
    float   *value, *place[3];
    uint8_t *bin; /* of the value, for mutual information */
    float   *moving;
    int64_t  size[3];    /* voxels of it along x, y, z; 1 where a plane has none */
    double   voxels[12]; /* physical space to its voxels */
    double   low, width; /* of its values, by bins */
    double   matrix[9], centre[3], target[3];
    double   radius;                 /* of the samples about the centre: turns count by how far they move them */
    double   edge;                   /* of a voxel */
    float   *rows;                   /* FV_FIT_MOST + 3 strips */
    double  *joint, *slope, *spread; /* mutual information: the joint histogram, its derivatives, and curvature by bin */
} fv_fit;

#define fv__fit_parameters FV_ISA_NAME(fv__fit_parameters)
#define fv__fit_lay_out FV_ISA_NAME(fv__fit_lay_out)
#define fv__fit_measure FV_ISA_NAME(fv__fit_measure)
#define fv__fit_run FV_ISA_NAME(fv__fit_run)

int fv__fit_parameters(const fv_fit *f);
/* Memory for voxels of the moving image and room samples. */
void fv__fit_lay_out(fv_fit *f, int64_t voxels, fv_scratch *pieces);
/* The metric and its derivatives at the transform. */
void fv__fit_measure(const fv_fit *f, fv_fit_terms *terms);
/* Betters the transform. false: image and fixed do not overlap where it begins. */
bool fv__fit_run(fv_fit *f);

#endif
