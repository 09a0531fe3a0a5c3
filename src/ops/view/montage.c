/* montage: the slices of a volume side by side in one picture. */
#include "op/axes.h"
#include "op/op.h"
#include "op/place.h"

typedef struct {
    int64_t columns;
} montage;

static const fv_param params[] = {
    FV_PARAM(montage, columns, .def = "0", .min = 0, .max = 1e9,
             .doc = "how many slices are side by side; 0: about as many "
                    "as there are rows"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "volume: slices y x, or y x c" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    montage             *p = i->params;
    const fv_image_type *in = &i->in[0]->image;
    fv_image_type       *out = &i->out->image;
    bool                 colour = in->ndim == 4 && !strcmp(in->axis[3], "c");
    if (in->ndim != 3 && !colour)
        return fv_fail(error, FV_ERROR_USAGE, "image has %d axes: a montage takes a volume of three, or four with c as the last",
                       in->ndim);
    if (!p->columns)
        while (p->columns * p->columns < in->shape[0]) p->columns++;
    p->columns = FV_MIN(p->columns, in->shape[0]);
    fv__axis_drop(out, 0);
    fv__place_forget_world(out); /* a place in the montage is no place in the world */
    memset(out->origin, 0, sizeof out->origin);
    int64_t rows = (in->shape[0] + p->columns - 1) / p->columns;
    if (!fv__mul(out->shape[0], rows, &out->shape[0]) || !fv__mul(out->shape[1], p->columns, &out->shape[1]) ||
        fv_image_type_bytes(out) < 0)
        return fv_fail(error, FV_ERROR_USAGE, "columns = %lld: the montage would be larger than can be counted",
                       (long long)p->columns);
    return FV_OK;
}

/* Tiles that a stretch of the montage touches along one axis, and what of them: all of it if there are several. */
typedef struct {
    int64_t first, last, start, size;
} touched;
static touched touch(int64_t start, int64_t size, int64_t edge) {
    touched t = { start / edge, (start + size - 1) / edge, 0, edge };
    if (t.first == t.last) {
        t.start = start % edge;
        t.size = size;
    }
    return t;
}

static void need(const fv_need *n, fv_region *in) {
    const montage       *p = n->params;
    const fv_image_type *type = &n->in[0]->image;
    touched              y = touch(n->region.start[0], n->region.size[0], type->shape[1]);
    touched              x = touch(n->region.start[1], n->region.size[1], type->shape[2]);
    int64_t              first = y.first * p->columns + x.first, last = y.last * p->columns + x.last, end = type->shape[0] - 1;
    *in = (fv_region){ type->ndim, { FV_MIN(first, end), y.start, x.start }, { 0, y.size, x.size } };
    in->size[0] = FV_MIN(last, end) - in->start[0] + 1; /* past the last slice all is 0, and any slice will do */
    if (type->ndim == 4) {
        in->start[3] = n->region.start[2];
        in->size[3] = n->region.size[2];
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const montage       *p = r->need.params;
    const fv_block      *in = r->in[0], *out = r->out;
    const fv_image_type *type = &r->need.in[0]->image;
    bool                 colour = type->ndim == 4;
    int64_t              height = type->shape[1], width = type->shape[2], channels = colour ? out->region.size[2] : 1;
    size_t               size = fv_dtype_size(out->dtype);
    int64_t              end = out->region.start[1] + out->region.size[1];
    for (int64_t y = out->region.start[0]; y < out->region.start[0] + out->region.size[0]; y++)
        for (int64_t x = out->region.start[1], next; x < end; x = next) { /* from tile to tile */
            next = FV_MIN((x / width + 1) * width, end);
            int64_t slice = y / height * p->columns + x / width, to[] = { y, x, colour ? out->region.start[2] : 0 };
            int64_t from[] = { slice, y % height, x % width, to[2] };
            bool    adjacent = !colour || (out->stride[1] == channels && in->stride[2] == channels);
            int64_t run_length = adjacent ? next - x : 1;
            for (; x < next; x += run_length, to[1] += run_length, from[2] += run_length) {
                size_t bytes = (size_t)(run_length * channels) * size;
                if (slice < type->shape[0])
                    memcpy(fv__block_at(out, to), fv__block_at(in, from), bytes);
                else
                    memset(fv__block_at(out, to), 0, bytes);
            }
        }
    return FV_OK;
}

static double        cost(const fv_need *n) { return 0.1 * (double)fv_dtype_size(n->out->image.dtype); }
static const fv_pass passes[] = { { .need = need, .run = run }, FV_PASS_END };

const fv_op FV_OP(montage) = {
    .name = "montage",
    .family = "view",
    .brief = "show the slices of a volume side by side in one picture",
    .version = 1,
    .also = "make_montage, util.montage, imtile, tile",
    .doc = "The slices along the first axis are laid out from left to right and from top to bottom; places that are left "
           "over are 0. montage(x[::10]) shows every tenth slice.",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(montage),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .moves = true,
    .cost = cost,
    .example = "phantom(\"cells\", [32, 64, 64])[::4] |> montage(columns = 4) |> write(\"montage.png\")",
    .see = "project slice colorize",
};
