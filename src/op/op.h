/* What an operator is. One C file in src/ops/FAMILY/ defines one operator completely; nothing else is edited to add it.
 *
 *     typedef struct { fv_numbers sigma; double truncate; fv_choice mode; } gaussian;
 *
 *     static const fv_param params[] = {
 *         FV_PARAM(gaussian, sigma, .min = 0, .unit = "px", .doc = "standard deviation, one number or one per axis"),
 *         FV_PARAM(gaussian, truncate, .def = "4", .min = 0, .doc = "cut the kernel at this many deviations"),
 *         FV_PARAM(gaussian, mode, .def = "reflect", .choices = FV_BORDER_CHOICES, .doc = "what lies outside"),
 *         FV_PARAM_END,
 *     };
 *     static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to smooth" }, FV_INPUT_END };
 *
 *     static fv_status infer(fv_infer *i, fv_error *error);
 *     static void      need(const fv_need *n, fv_region *in);
 *     static size_t    scratch(const fv_need *n);
 *     static fv_status run(fv_run *r, fv_error *error);
 *     static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };
 *
 *     const fv_op FV_OP(gaussian) = { .name = "gaussian", .family = "filter", ... };
 *
 * The whole file is compiled once per instruction set (FV_ISA is base, avx2 or avx512); the registry chooses. So plain
 * loops are enough, and every set must give the same bits: no fast-math, contraction is off, fuse with fma()/fmaf()
 * explicitly where wanted, elementary functions from base/math.h and never from libm (sqrt, floor, fabs are exact and fine).
 *
 * Kernels never allocate: scratch is declared and planned. They are single-threaded; parallelism is over tasks.
 */
#ifndef FV_OP_H
#define FV_OP_H

#include "base/isa.h"
#include "base/number.h"
#include "image/region.h"
#include <fovea/image.h>
#include <fovea/table.h>
#include <math.h>

#define FV_OP(name) FV_ISA_NAME(FV_PASTE(fv_op_, name))

/* ---------------------------------------------------------------- types */

typedef enum fv_kind {
    FV_KIND_NONE,
    FV_KIND_IMAGE,
    FV_KIND_SCALAR,
    FV_KIND_TABLE,
    FV_KIND_FOOTPRINT,
    FV_KIND_LIST,
    FV_KIND_GEOMETRY,
    FV_KIND_FILES
} fv_kind;

/* The items of the collection that a table was made of, also those that have no row in it. */
typedef struct fv_item_names {
    int64_t            count;
    const char *const *names; /* what its column item holds */
    const char *const *paths; /* and its column path */
    bool               all;   /* none was left out on purpose */
} fv_item_names;

typedef struct fv_type {
    fv_kind              kind;
    fv_image_type        image; /* FV_KIND_IMAGE */
    fv_dtype             dtype; /* FV_KIND_SCALAR: FV_BOOL, FV_INT64, FV_UINT64 or FV_FLOAT64 */
    const fv_table_type *table; /* FV_KIND_TABLE; static or in the graph's arena */
    const fv_item_names *items; /* FV_KIND_TABLE: of all items of a collection; NULL: it is not */
} fv_type;

typedef struct fv_scalar { /* dtype FV_BOOL and FV_INT64 use integer, FV_UINT64 natural, FV_FLOAT64 real */
    fv_dtype dtype;
    union {
        int64_t  integer;
        uint64_t natural;
        double   real;
    };
} fv_scalar;
double fv__scalar_number(const fv_scalar *scalar);
int    fv__scalar_format(const fv_scalar *scalar, char text[FV_NUMBER_SIZE]); /* exactly; gives the length */

/* Any count of numbers; they live in the graph's arena. */
typedef struct fv_list {
    int64_t       count;
    const double *value;
} fv_list; /* count 0: not given */

/* Files that a list names, in its order. */
typedef struct fv_file_names {
    int64_t      count;
    const char **name;
} fv_file_names;

/* A structuring element. box: size per axis. ball: x*x + ... <= r*r over all spatial axes. disk: the same over y and x
 * only. cross: the voxel and its face neighbours. pattern: the voxels whose value is 1. */
typedef struct fv_footprint {
    enum {
        FV_FOOTPRINT_NONE,
        FV_FOOTPRINT_BOX,
        FV_FOOTPRINT_BALL,
        FV_FOOTPRINT_DISK,
        FV_FOOTPRINT_CROSS,
        FV_FOOTPRINT_PATTERN
    } shape;
    int     ndim;              /* number of sizes given; box: 1 means the same for each axis, pattern: 0 does */
    int64_t size[FV_MAX_DIMS]; /* box, pattern */
    double  radius;            /* ball, disk */
    fv_list values;            /* pattern: in raster order */
} fv_footprint;

/* How projections were taken: docs/tomography.md has the drawing. */
typedef struct fv_geometry {
    enum { FV_GEOMETRY_NONE, FV_GEOMETRY_PARALLEL, FV_GEOMETRY_CONE } beam;
    fv_list angles; /* of the turned object, degrees or radians as said */
    bool    radians;
    fv_list center;           /* detector column of the axis of rotation, one or one per angle; count 0: the middle */
    double  source, detector; /* cone: distances of source and detector from the axis, in voxels */
    double  pitch;            /* cone: width of a detector pixel, in voxels */
    double  offset;           /* cone: detector row of the plane of the source's circle, from the middle row */
} fv_geometry;

/* ---------------------------------------------------------------- parameters */

typedef struct fv_choice {
    int index;
} fv_choice; /* index into the param's choices */
#define FV_MAX_NUMBERS 64
typedef struct fv_numbers {
    int    count;
    double value[FV_MAX_NUMBERS];
} fv_numbers; /* count 0: not given */
typedef struct fv_dtype_choice {
    int dtype;
} fv_dtype_choice; /* -1: not given */

typedef enum fv_param_kind {
    FV_PARAM_NUMBER,    /* double */
    FV_PARAM_INTEGER,   /* int64_t */
    FV_PARAM_FLAG,      /* bool */
    FV_PARAM_TEXT,      /* const char *, lives in the graph's arena */
    FV_PARAM_CHOICE,    /* fv_choice */
    FV_PARAM_NUMBERS,   /* fv_numbers: one number or a list */
    FV_PARAM_DTYPE,     /* fv_dtype_choice, given as text: "uint8" */
    FV_PARAM_FOOTPRINT, /* fv_footprint */
    FV_PARAM_LIST,      /* fv_list: one number or any count */
    FV_PARAM_GEOMETRY,  /* fv_geometry */
} fv_param_kind;

typedef struct fv_param {
    const char   *name;
    fv_param_kind kind;
    size_t        offset;
    const char   *def; /* default as pipeline text ("4", "reflect", "true", "[1, 2]"); NULL: required;
                          "": may be left out (0, false, NULL, count 0, dtype -1, FV_..._NONE) */
    double min, max;   /* inclusive; both 0: any */
    bool   above;      /* min itself is not allowed */
    bool   blank;      /* a number may be left out of a list: NaN */
    bool   own;        /* only the operator's own expansion may give it; comes after all others and is not shown */
    bool   axis;       /* names an axis that vanishes: "item" of a collection's image is that of all its items */
    bool   late;       /* of a geometry: may be a scalar computed by the pipeline, which becomes the geometry's center when
                          the operators that use it run; their need must not depend on it */
    bool file;         /* a text that names a file: the one that a source reads, or that a sink makes */
    bool many;         /* of a file: a pattern or a list gives a call of each item; of a text: takes other arguments by name */
    bool values;       /* of a text: takes other arguments by name too, but their values: "f = 0.5, kind = \"t1\"" */
    bool joins;        /* where it is given, what a pattern matches are parts of one image, and no items */
    int  each; /* so many numbers of a list belong to each plane of the first input (of a geometry: an angle); 0: none do */
    const char *from;    /* parameter that it takes over from a call that becomes one of its operator; NULL: its namesake */
    const char *choices; /* "reflect|nearest|mirror|constant|wrap" */
    const char *unit;
    const char *doc;
} fv_param;

/* Reads the field's type, so the table cannot disagree with the struct. */
#define FV_PARAM(type, field, ...)                                                                                               \
    {                                                                                                                            \
        .name = #field, .offset = offsetof(type, field), .kind = _Generic(((type *)0)->field,                          \
          double: FV_PARAM_NUMBER, int64_t: FV_PARAM_INTEGER, bool: FV_PARAM_FLAG, const char *: FV_PARAM_TEXT,       \
          fv_choice: FV_PARAM_CHOICE, fv_numbers: FV_PARAM_NUMBERS, fv_dtype_choice: FV_PARAM_DTYPE,                  \
          fv_footprint: FV_PARAM_FOOTPRINT, fv_list: FV_PARAM_LIST, fv_geometry: FV_PARAM_GEOMETRY), __VA_ARGS__         \
    }
#define FV_PARAM_END                                                                                                             \
    { .name = NULL }

/* Inputs come before parameters in a call: op(input, ..., param, ...); both can be given by name. A scalar input takes a
 * number or a value computed by the pipeline (otsu(a)); it never changes type or need, so it may be late. */
typedef struct fv_input {
    const char *name;
    fv_kind     kind;     /* FV_KIND_IMAGE, FV_KIND_SCALAR, FV_KIND_TABLE; FV_KIND_NONE: image or scalar */
    bool        optional; /* may be left out; its type then has kind FV_KIND_NONE and its block is NULL */
    const char *doc;
} fv_input;
#define FV_INPUT_END                                                                                                             \
    { .name = NULL }
#define FV_MAX_INPUTS 8

/* A column of the table that an operator gives, for help and documentation. In a name, AXIS stands for the name of each axis of
 * the image, and N for 0, 1, ...; a name in angle brackets describes columns whose names follow from the input. */
typedef struct fv_column_doc {
    const char *name;
    const char *unit;     /* "px"; "length", "area" and "volume" are in units of the image's spacing; NULL: a plain value */
    const char *property; /* the word that asks for it, where the caller chooses columns; NULL: it is always there */
    bool        usual;    /* of one with a property: it is there if the caller asks for nothing */
    const char *doc;
} fv_column_doc;
#define FV_COLUMN_DOC_END                                                                                                        \
    { .name = NULL }

/* ---------------------------------------------------------------- inference */

typedef struct fv_infer {
    void          *params; /* may be normalised here, e.g. one sigma spread over the axes */
    size_t         params_size;
    int            ninputs; /* slots of the inputs table */
    const fv_type *in[FV_MAX_INPUTS];
    fv_type       *out;     /* to fill; starts as a copy of in[0], or zero without inputs */
    fv_dtype       compute; /* point-wise operators: type that inputs are brought to (FLOAT32, FLOAT64, INT64, UINT64, BOOL) */
    fv_arena      *arena;   /* for texts and table types that live as long as the graph */
} fv_infer;

/* Spreads a one-number list over n axes or checks that it has n entries; the error names op parameter and counts. */
fv_status fv__numbers_spread(fv_numbers *numbers, int n, const char *name, fv_error *error);

/* ---------------------------------------------------------------- passes */

/* What is known about one piece of work before it runs. region: the output region, or for a pass that only makes a partial
 * the chunk of input 0. */
typedef struct fv_need {
    const void       *params;
    int               ninputs;
    const fv_type    *in[FV_MAX_INPUTS];
    const fv_type    *out;
    fv_region         region;
    const fv_lattice *lattice; /* of the first pass that made a partial; NULL in single-pass operators */
} fv_need;

/* Results of an earlier pass of the same operator: blobs, number 0..count-1. Borrowed until the task ends. */
typedef struct fv_results {
    fv_status (*get)(struct fv_results *results, int64_t index, const void **data, size_t *size, fv_error *error);
    int64_t count; /* of a table input: pieces of whole rows; elsewhere 0 */
} fv_results;

/* What a solver tells of an iteration, for the record of the run: squared norms of what is left over and of what was measured.
 * A slice that has stopped counts with its last one in later iterations of the others. */
typedef struct fv_note {
    int64_t slice, iteration; /* iterations count from 1 */
    double  residual, measure;
    int64_t active; /* 0: the slice had stopped before, and this is what it had reached */
} fv_note;

typedef struct fv_run {
    fv_need             need;              /* the same facts again */
    const fv_block     *in[FV_MAX_INPUTS]; /* exactly the needed region; NULL for scalars and absent inputs */
    const fv_scalar    *scalar[FV_MAX_INPUTS];
    const fv_block     *out;     /* region to fill, every voxel of it; NULL if the pass makes only a partial */
    int64_t             chunk;   /* index in the lattice for a pass that makes a partial, else -1 */
    fv_bytes           *partial; /* append here; NULL if the pass has none */
    fv_results         *results; /* what the previous pass's finish put; NULL in the first */
    fv_bytes           *notes;   /* operators that say so append fv_note here, slice by slice; NULL: nobody listens */
    const char         *log;    /* operators that run programs: start of the names of files that keep what these print; or NULL */
    const volatile int *cancel; /* the same: not zero if the program should end; may be NULL */
    void               *scratch; /* 64-byte aligned, as large as scratch() said; undefined contents */
} fv_run;

/* finish: all partials of a pass are there. Runs once, on one worker. Partials are read by index (chunk order; index 0 only
 * if the pass has combine), results are put by index; both may live on disk, so hold only what you need. */
typedef struct fv_finish {
    const void       *params;
    int               ninputs;
    const fv_type    *in[FV_MAX_INPUTS];
    const fv_scalar  *scalar[FV_MAX_INPUTS];
    const fv_type    *out;
    const fv_lattice *lattice;
    int64_t           npartials;
    fv_results       *results;              /* of the pass before this one, NULL in the first */
    fv_results       *table[FV_MAX_INPUTS]; /* rows of a table input, piece by piece, each borrowed until the next; else NULL */
    size_t (*size)(struct fv_finish *f, int64_t partial);
    /* A whole partial, borrowed until the next call of partial. */
    fv_status (*partial)(struct fv_finish *f, int64_t partial, const void **data, fv_error *error);
    /* Part of a partial, for merges that stream. */
    fv_status (*read)(struct fv_finish *f, int64_t partial, size_t offset, void *data, size_t size, fv_error *error);
    /* Appends to result `index`. Calls come in increasing order of index. An index never put is an empty result. */
    fv_status (*put)(struct fv_finish *f, int64_t index, const void *data, size_t size, fv_error *error);
} fv_finish;

/* A pass whose image is a sum over the planes of input 0, and can be begun before all of them are there. What was summed is kept
 * between calls, in bytes that begin as zeros; behind the last plane the image has the bits of run. */
typedef struct fv_pass_sum {
    int (*axis)(const fv_need *n);                       /* of input 0, along which planes come */
    int64_t (*until)(const fv_need *n, int64_t planes);  /* of so many from the first on, those that can be added by now */
    size_t (*bytes)(const fv_need *n);                   /* of what is kept for n->region */
    size_t (*scratch)(const fv_need *n, int64_t planes); /* to add so many, or to make the image (0) */
    /* Adds planes [from, until), all that in[0] holds, each once and in order, and makes the image if there is an out. */
    fv_status (*add)(fv_run *r, int64_t from, int64_t until, void *sum, fv_error *error);
    void (*image)(fv_run *r, const void *sum); /* what the sum is so far, without adding; in is not there */
} fv_pass_sum;

typedef struct fv_pass {
    const char *name; /* for plans: "local", "renumber"; NULL in single-pass operators */
    /* Regions of the inputs that n->region needs, one per input slot; they come preset to n->region, which is never empty. They
     * must lie inside the input's shape. NULL: preset is right. Asked through fv__pass_need. */
    void (*need)(const fv_need *n, fv_region *in);
    size_t (*scratch)(const fv_need *n); /* NULL: none */
    fv_status (*run)(fv_run *r, fv_error *error);
    /* Reductions. The partial of a task is at most bound() bytes (used to plan memory; default 4096). */
    size_t (*bound)(const fv_need *n);
    /* Adds one partial to another, exactly and in any order (integers or exact sums). With it, partials are merged as they
     * arrive and finish sees one. */
    void (*combine)(const void *params, fv_bytes *into, const void *partial, size_t size);
    /* A pass with finish makes partials and no image, and ends a stage. */
    fv_status (*finish)(fv_finish *f, fv_error *error);
    const fv_pass_sum *sum; /* NULL: all of its input is needed at once */
} fv_pass;
#define FV_PASS_END                                                                                                              \
    { .run = NULL }

/* Regions of all FV_MAX_INPUTS inputs that a pass needs for n->region. Nothing needs nothing: a region grown around an empty one
 * would not be empty, and might lie outside the image. */
void fv__pass_need(const fv_pass *pass, const fv_need *n, fv_region *in);

/* The last result of an operator that gives a scalar is one fv_scalar (result 0). Of one that gives a table: every result
 * holds whole rows of fv_cell without text, concatenated in order of index. */

/* ---------------------------------------------------------------- point-wise operators */

/* One strip: n elements. in[i] holds the compute type; out takes FV_BOOL where the output is bool, else the compute type. */
typedef void (*fv_point_fn)(const void *params, int64_t n, void *restrict out, const void *const *in);

/* ---------------------------------------------------------------- the descriptor */

/* What pipelines ask for without a call by name. One operator has each. */
typedef enum fv_op_role {
    FV_OP_NONE,
    FV_OP_ARRAY,    /* an image that the calling program has bound to a name; its parameters are fv_array_params */
    FV_OP_PROVIDED, /* the same for one that the program reads piece by piece */
    FV_OP_PART,     /* image[start:stop:step]: lists start, stop, step and single */
    FV_OP_SELECT,   /* the rows of a table for which the text condition holds */
    FV_OP_LIST,     /* the table that is printed of an image which nobody writes, where its infer takes that image */
} fv_op_role;

/* What a program that an operator runs takes beside the task itself. */
typedef struct fv_program_needs {
    int64_t cpus, memory; /* processors, at least 1; bytes, 0: not said */
} fv_program_needs;

typedef struct fv_layout {
    int64_t chunk[FV_MAX_DIMS]; /* natural pieces */
    bool    sequential;         /* only in order, from the first axis's start */
    bool    whole_pieces;       /* a piece is decoded whole, however little of it is wanted */
    int64_t read_memory;        /* bytes a read needs beyond its block */
} fv_layout;

typedef enum fv_numerics { FV_EXACT, FV_SAME_CPU, FV_DEVICE } fv_numerics;

typedef struct fv_op {
    const char     *name, *family, *brief;
    const char     *also;     /* what other programs call it, for those who look for that: "bwlabel, measure.label"; NULL: none */
    const char     *stage;    /* what people call its part of a pipeline's time: "filter", "reconstruct"; NULL: its family */
    const char     *doc;      /* further sentences: meaning, boundary, differences from the peer */
    const char     *citation; /* paper or documentation that the method follows */
    const char     *example;  /* runs as a test */
    int             version;  /* raised when the result changes */
    fv_numerics     numerics;
    const fv_input *inputs; /* NULL: a source */
    const fv_param *params;
    size_t          params_size;
    fv_kind         result;
    const fv_column_doc *columns; /* operators that give a table: what its columns mean, ended by FV_COLUMN_DOC_END */
    const char          *see;     /* related operators, names with blanks between them */
    fv_status (*infer)(fv_infer *i, fv_error *error);
    /* One of the following seven. */
    const fv_pass *passes;                                                      /* ended by FV_PASS_END */
    fv_point_fn    point[FV_DTYPES];                                            /* by compute type */
    fv_status (*value)(const void *params, fv_footprint *out, fv_error *error); /* a footprint, made while the graph is built */
    fv_status (*list)(const void *params, fv_arena *arena, fv_list *out, fv_error *error);        /* numbers, made likewise */
    fv_status (*geometry)(const void *params, fv_geometry *out, fv_error *error);                 /* the same for a geometry */
    fv_status (*files)(const void *params, fv_arena *arena, fv_file_names *out, fv_error *error); /* a collection for read */
    /* Written in other operators: text of a pipeline expression in the operator's own inputs and parameters, as
     * "dilate(erode(image, footprint), footprint)". */
    const char *expands;
    /* The operator that does it for these parameters, which it takes over; NULL: this one. With params NULL: the operator of the
     * same meaning for another kind of first input, as filter of items beside filter of rows; NULL: there is none. */
    const char *(*becomes)(const void *params);
    const char *numbers; /* the operator that gives the same as a list, where one belongs; NULL: it is none */
    /* The same for some parameters only: statements, the last of which gives the value (no name or any), go to text; none: the
     * passes run. inputs absent from the call have no name in it. i->out is room for a type. */
    fv_status (*unroll)(fv_infer *i, fv_bytes *text, fv_error *error);
    /* Sources only. identity: adds to the node's identity what parameters do not tell (the file's size, time, header). layout:
     * how the source is best asked. */
    fv_status (*identity)(const void *params, fv_hasher *hasher, fv_error *error);
    fv_status (*layout)(const void *params, fv_layout *layout, fv_error *error);
    /* Operators that read files while they run: bytes that they read for n->region, roughly. Of a source with layout it is the
     * region itself. NULL: they read none. */
    int64_t (*reads)(const fv_need *n);
    /* The angle at which each plane of the first axis was taken; count 0: not known. NULL: it never is. */
    void (*angles)(const void *params, fv_arena *arena, fv_list *out);
    /* Where part of a slice costs as much as all of it (a reconstruction): the chunks, by axis of n->out, in which the image is
     * made and then stored, whatever pieces its readers want. n->region is the whole image. NULL: any will do. */
    void (*slab)(const fv_need *n, int64_t *chunk);
    double part;                      /* of a scan that grows: as much has to be there before a preview says anything; 0: any */
    double (*cost)(const fv_need *n); /* nanoseconds a voxel of n->region on one core, roughly; NULL: 1 */
    const struct fv_device_kernel *device; /* the same on OpenCL devices: op/device_kernel.h; NULL: the CPU only */
    /* Operators that run a program of the machine, which only happens with the user's consent: what that takes. Its slab is kept
     * to whatever chunks are asked for, since the program sees whole images. NULL: it runs none. */
    fv_program_needs (*program)(const void *params);
    bool (*notes)(const void *params); /* whether the pass that makes the image tells residuals (fv_run.notes) */
    const char *sign; /* of the language, by which it is called with as many inputs as it has: "+"; NULL: by its name only */
    fv_op_role  role;
    bool        gathers; /* its first input, of all items of a collection together, is its value */
    bool        rows;    /* a row of the table follows from one row of the first input: items may be done alone */
    uint32_t    spends;  /* inputs, as bits: of theirs a chunk is needed for the chunk of the image at the same place, and for no
                            other, so that one may take the place of the other in memory */
    bool lazy;           /* choose: of inputs 1 and 2 only the one that input 0 tells is needed */
    bool moves;          /* planes of the first axis may have other places than in the first input, though as many as before */
    bool place_later;    /* where its image lies is the result of its first pass, 12 numbers as fv_image_type.affine: the image
                            can be written, and no operator takes it */
    bool sink;           /* write: a call of it is a sink of the graph, and has no kernel */
} fv_op;

const fv_op *fv__op_find(const char *name);
const fv_op *fv__op_of_role(fv_op_role role);
/* The operator that a sign calls with so many inputs; NULL: none. */
const fv_op *fv__op_of_sign(const char *sign, int ninputs);
int          fv__op_count(void);
const fv_op *fv__op_at(int index); /* sorted by family, then name */
/* base, avx2, avx512: what this build has and this processor runs; FOVEA_ISA forces one. */
const char *fv__isa_name(void);
/* An error where FOVEA_ISA asks for one that is not there. */
fv_status fv__isa_check(fv_error *error);

/* Parts of a pipeline's time that are no operator's own. */
#define FV_STAGE_READ "read"
#define FV_STAGE_STORE "store"
#define FV_STAGE_WRITE "write"

static inline const char *fv__op_stage(const fv_op *op) {
    return op->stage ? op->stage : op->sink ? FV_STAGE_WRITE : op->layout ? FV_STAGE_READ : op->family;
}
static inline bool fv__op_notes(const fv_op *op, const void *params) { return op->notes && op->notes(params); }

/* Which input of a lazy operator is needed. */
static inline int fv__lazy_input(const fv_scalar *condition) { return fv__scalar_number(condition) != 0 ? 1 : 2; }

static inline bool fv__op_is_point(const fv_op *op) {
    for (int d = 0; d < FV_DTYPES; d++)
        if (op->point[d]) return true;
    return false;
}

#endif
