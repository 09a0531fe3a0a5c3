/* range: evenly spaced numbers, for angles and other long lists. */
#include "base/take.h"
#include "op/op.h"

typedef struct {
    double  start, stop, step;
    int64_t count;
} range;

enum { MOST = 1000000 };

static const fv_param params[] = {
    FV_PARAM(range, start, .doc = "first number"),
    FV_PARAM(range, stop, .doc = "last number; it is included if a step meets it, and left out if count is given"),
    FV_PARAM(range, step, .def = "1", .doc = "difference between two numbers; negative: downwards"),
    FV_PARAM(range, count, .def = "0", .min = 0, .max = MOST,
             .doc = "instead of step: how many numbers; stop itself is left "
                    "out"),
    FV_PARAM_END,
};

static fv_status list(const void *parameters, fv_arena *arena, fv_list *out, fv_error *error) {
    const range *p = parameters;
    double       step = p->count ? (p->stop - p->start) / (double)p->count : p->step;
    if (!isfinite(p->start) || !isfinite(p->stop) || !isfinite(step) || (step == 0 && !p->count))
        return fv_fail(error, FV_ERROR_USAGE, "start, stop and step must be finite and step not 0");
    double steps = p->count ? (double)(p->count - 1) : floor((p->stop - p->start) / step + 1e-9); /* 0.1 is not exact */
    if (steps < 0) return fv_fail(error, FV_ERROR_USAGE, "a step of %g never leads from %g to %g", step, p->start, p->stop);
    if (steps >= MOST) return fv_fail(error, FV_ERROR_USAGE, "%g numbers; at most %d are possible", steps + 1, (int)MOST);
    int64_t count = (int64_t)steps + 1;
    double *value;
    FV_TRY(FV_TAKE_IN(arena, value, (size_t)count * sizeof *value, error));
    for (int64_t i = 0; i < count; i++) value[i] = p->start + (double)i * step;
    *out = (fv_list){ count, value };
    return FV_OK;
}

const fv_op FV_OP(range) = {
    .name = "range",
    .family = "source",
    .brief = "a list of evenly spaced numbers",
    .also = "linspace, arange",
    .version = 1,
    .params = params,
    .params_size = sizeof(range),
    .result = FV_KIND_LIST,
    .list = list,
    .doc = "range(-73, 73, 2) is -73, -71, ... 73: 74 numbers, as a tilt series is described. range(0, 180, count = 360) is "
           "0, 0.5, ... 179.5, as half a turn is scanned.",
    .example = "xray(phantom(\"shepp-logan\", [128, 128]), parallel(angles = range(0, 180, count = 180))) |> "
               "write(\"sinogram.tif\")",
    .see = "parallel cone read_angles",
};
