/* scan_positions: where frames of a simulated scan are taken. */
#include "base/math.h"
#include "base/take.h"
#include "op/random.h"
#include "ops/ptychography/every_position.h"

typedef struct {
    fv_choice  pattern;
    fv_numbers size;
    double     step, jitter;
    int64_t    seed;
    FV_EVERY_FIELDS
} scan_positions;
enum { RASTER, SPIRAL, FERMAT, CONCENTRIC };

static const fv_param params[] = {
    FV_PARAM(scan_positions, pattern, .choices = "raster|spiral|fermat|concentric", .doc = "how they follow each other"),
    FV_PARAM(scan_positions, size, .min = 0, .max = 100000, .unit = "px",
             .doc = "rows and columns in which the positions lie, one number or two: those of the object less those of a frame"),
    FV_PARAM(scan_positions, step, .above = true, .max = 100000, .unit = "px", .doc = "distance of neighbours"),
    FV_PARAM(scan_positions, jitter, .def = "0", .min = 0, .max = 1000, .unit = "px",
             .doc = "how far each may be off at most, in rows and in columns"),
    FV_PARAM(scan_positions, seed, .def = "1", .doc = "another number gives other deviations"),
    FV_EVERY_PARAMS(scan_positions),
    FV_PARAM_END,
};

enum { MOST = 200000 };

/* Position number i; false: it is behind the last one. */
static bool position(const scan_positions *p, int64_t i, double at[2], bool *inside) {
    double height = p->size.value[0], width = p->size.value[1], step = p->step, reach = sqrt(height * height + width * width) / 2;
    double radius = 0, angle = 0;
    *inside = true;
    if (p->pattern.index == RASTER) {
        int64_t columns = (int64_t)floor(width / step + 1e-9) + 1, row = i / columns;
        at[0] = (double)row * step;
        at[1] = (double)(i % columns) * step;
        return at[0] <= height + 1e-9;
    }
    if (p->pattern.index == FERMAT) { /* golden angle; one position for each step squared */
        radius = step * sqrt((double)i / 0x1.921fb54442d18p+1);
        angle = (double)i * 2.399963229728653;
    } else if (p->pattern.index == SPIRAL) { /* turns and neighbours are a step apart */
        radius = step * sqrt((double)i / 0x1.921fb54442d18p+1);
        angle = radius * 0x1.921fb54442d18p+2 / step;
    } else { /* rings with 6 more positions each */
        int64_t ring = (int64_t)floor((sqrt(12 * (double)i - 3 + (i ? 0 : 3)) + (i ? 3 : 0)) / 6 + 1e-9);
        int64_t first = ring ? 3 * ring * (ring - 1) + 1 : 0;
        radius = (double)ring * step;
        angle = ring ? (double)(i - first) / (double)(6 * ring) * 0x1.921fb54442d18p+2 : 0;
    }
    at[0] = height / 2 + radius * fv__sin(angle);
    at[1] = width / 2 + radius * fv__cos(angle);
    *inside = at[0] >= -1e-9 && at[0] <= height + 1e-9 && at[1] >= -1e-9 && at[1] <= width + 1e-9;
    return radius <= reach;
}

static fv_status list(const void *given, fv_arena *arena, fv_list *out, fv_error *error) {
    scan_positions p = *(const scan_positions *)given;
    double         at[2], *value = NULL;
    bool           inside;
    int64_t        count = 0;
    FV_TRY(fv__numbers_spread(&p.size, 2, "size", error));
    for (int fill = 0; fill < 2; fill++) {
        int64_t found = 0;
        for (int64_t i = 0; found <= MOST && position(&p, i, at, &inside); i++) {
            if (!inside) continue;
            for (int d = 0; d < 2 && fill; d++) {
                uint64_t hash = fv__place_hash((uint64_t)p.seed, 77, 0, i, d);
                double   moved = at[d] + (2 * fv__uniform(hash, 0) - 1) * p.jitter;
                value[2 * found + d] = FV_MIN(FV_MAX(moved, 0), p.size.value[d]);
            }
            found++;
        }
        if (found > MOST) return fv_fail(error, FV_ERROR_USAGE, "more than %d positions; take a larger step", (int)MOST);
        count = found;
        if (!fill) FV_TRY(FV_TAKE_IN(arena, value, (size_t)(2 * count) * sizeof *value, error));
    }
    *out = (fv_list){ 2 * count, value };
    return fv__every_position(p.first, p.every, p.shuffle, out, error);
}

const fv_op FV_OP(scan_positions) = {
    .name = "scan_positions",
    .family = "ptychography",
    .stage = "simulate",
    .brief = "positions of a simulated scan",
    .version = 1,
    .params = params,
    .params_size = sizeof(scan_positions),
    .result = FV_KIND_LIST,
    .list = list,
    .doc = "A list of row and column of each frame's corner in the object, in pixels: y0, x0, y1, x1, ... A raster has periodic "
           "errors, which a Fermat spiral avoids. jitter moves each position, to simulate a stage that is not exact.",
    .citation = "Huang et al., Optimization of overlap uniformness for ptychography, Optics Express 22, 2014",
    .example = "o = complex_image(ones([160, 160]), phantom(\"cells\", [160, 160]) / 255)\n"
               "p = make_probe(64, radius = 16, counts = 1e5)\n"
               "write(diffract(o, p, scan_positions(\"fermat\", 96, 12))[0], \"frame.tif\")",
    .see = "diffract ptycho",
};
