/* Images put together along an axis (stack, concatenate, merge_channels): what they must have in common, and copying. */
#ifndef FV_JOINED_H
#define FV_JOINED_H

#include "op/axes.h"
#include "op/op.h"

/* How the inputs lie in the result. */
typedef struct fv__joining {
    int     count;                    /* images */
    int     axis;                     /* of the result */
    bool    fresh;                    /* the images do not have that axis: each is one place of it */
    int64_t start[FV_MAX_INPUTS + 1]; /* place of each image along the axis, and the end */
} fv__joining;

#define fv__joined_count FV_ISA_NAME(fv__joined_count)
#define fv__joined_alike FV_ISA_NAME(fv__joined_alike)
#define fv__joined_channels FV_ISA_NAME(fv__joined_channels)
#define fv__joined_need FV_ISA_NAME(fv__joined_need)
#define fv__joined_run FV_ISA_NAME(fv__joined_run)

/* Counts the images; a gap between them is a mistake. */
fv_status fv__joined_count(const fv_infer *i, int *count, fv_error *error);
/* All have the type, the axes and the lengths of the first; only along `free` (-1: none) lengths may differ. The first that knows
 * its place gives it to the output, which says of its channels what all say. */
fv_status fv__joined_alike(const fv_infer *i, int count, int free, fv_error *error);
/* Tells of the output's channels what the images say of theirs, one after another. */
void      fv__joined_channels(const fv_infer *i, int count);
void      fv__joined_need(const fv__joining *joining, const fv_need *n, fv_region *in);
fv_status fv__joined_run(const fv__joining *joining, fv_run *r);

static const fv_input fv__joined_inputs[] = {
    { "first", FV_KIND_IMAGE, .doc = "an image" },
    { "second", FV_KIND_IMAGE, .optional = true, .doc = "the image that follows it" },
    { "third", FV_KIND_IMAGE, .optional = true, .doc = "a third image" },
    { "fourth", FV_KIND_IMAGE, .optional = true, .doc = "a fourth image" },
    { "fifth", FV_KIND_IMAGE, .optional = true, .doc = "a fifth image" },
    { "sixth", FV_KIND_IMAGE, .optional = true, .doc = "a sixth image" },
    { "seventh", FV_KIND_IMAGE, .optional = true, .doc = "a seventh image" },
    { "eighth", FV_KIND_IMAGE, .optional = true, .doc = "an eighth image" },
    FV_INPUT_END,
};

/* The passes of an operator whose file has `static fv__joining joining(const fv_need *n)`. */
#define FV_JOINED_PASSES                                                                                                         \
    static void need(const fv_need *n, fv_region *in) {                                                                          \
        fv__joining j = joining(n);                                                                                              \
        fv__joined_need(&j, n, in);                                                                                              \
    }                                                                                                                            \
    static fv_status run(fv_run *r, fv_error *error) {                                                                           \
        (void)error;                                                                                                             \
        fv__joining j = joining(&r->need);                                                                                       \
        return fv__joined_run(&j, r);                                                                                            \
    }                                                                                                                            \
    static double        cost(const fv_need *n) { return 0.1 * (double)fv_dtype_size(n->out->image.dtype); }                     \
    static const fv_pass passes[] = { { .need = need, .run = run }, FV_PASS_END };

/* That of an operator that gives every image a place of a new axis. */
static inline fv__joining fv__joining_fresh(const fv_need *n, int axis) {
    fv__joining j = { .axis = axis, .fresh = true };
    while (j.count < n->ninputs && n->in[j.count]->kind == FV_KIND_IMAGE) j.count++;
    for (int k = 0; k <= j.count; k++) j.start[k] = k;
    return j;
}

#endif
