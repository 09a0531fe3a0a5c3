/* The prefilter of cubic splines as a step of its own. */
#include "ops/geometry/spline.h"
#include "op/place.h"
#include <stdio.h>

fv_status fv__spline_check(const fv_spline *s, const fv_type *image, fv_mapping *mapping, fv_error *error) {
    int axis[FV_MAX_DIMS], n;
    if (s->order == 2) return fv_fail(error, FV_ERROR_USAGE, "order = 2: must be 0, 1 or 3");
    FV_TRY(fv__window_axes(image, axis, &n, error));
    *mapping = fv__mapping_new(&image->image, (int)s->order, s->mode.index, s->cval);
    mapping->margin = s->margin;
    mapping->filtered = s->order == 3 && !s->prefilter && !s->partly;
    return FV_OK;
}

void fv__spline_shape(const fv_mapping *m, const fv_image_type *type, int64_t shape[3]) {
    for (int k = 0; k < m->naxes; k++) shape[k] = type->shape[m->axis[k]] - 2 * m->margin;
}

void fv__spline_place(const fv_mapping *m, fv_image_type *type) {
    for (int k = 0; k < m->naxes && m->margin; k++) fv__place_step(type, m->axis[k], (double)m->margin, 1);
}

fv_status fv__spline_sizes(const fv_mapping *m, const double *size, const char *name, fv_image_type *type, fv_error *error) {
    for (int k = 0; k < m->naxes; k++) {
        if (!(size[k] >= 1 && size[k] < 0x1p40) || size[k] != floor(size[k]))
            return fv_fail(error, FV_ERROR_USAGE, "%s gives %g voxels along %s: must be a whole number of at least 1", name,
                           size[k], type->axis[m->axis[k]]);
        type->shape[m->axis[k]] = (int64_t)size[k];
    }
    if (fv_image_type_bytes(type) < 0)
        return fv_fail(error, FV_ERROR_USAGE, "%s: the image would be larger than can be counted", name);
    return FV_OK;
}

void fv__spline_expand(const fv_spline *s, const fv_mapping *m, const fv_image_type *type, const char *name,
                       const char *arguments, fv_bytes *text) {
    char axes[32] = "", all[32] = "";
    bool padded = s->mode.index == FV_EXTEND_NEAREST || s->mode.index == FV_EXTEND_GRID_CONSTANT;
    if (s->order != 3 || !s->prefilter) return;
    for (int k = 0; k < m->naxes; k++) {
        snprintf(all + strlen(all), sizeof all - strlen(all), " %s", type->axis[m->axis[k]]);
        if (!fv__mapping_direct(m, k)) snprintf(axes + strlen(axes), sizeof axes - strlen(axes), " %s", type->axis[m->axis[k]]);
    }
    if (!*axes) return;
    fv__bytes_printf(text, "%s(spline_filter(", name);
    if (padded)
        fv__bytes_printf(text, "pad(image, %d, axes = \"%s\", mode = \"%s\", cval = cval)", FV_SPLINE_MARGIN, all,
                         s->mode.index == FV_EXTEND_NEAREST ? "nearest" : "constant");
    else
        fv__bytes_printf(text, "image");
    fv__bytes_printf(text,
                     ", axes = \"%s\", mode = mode), %sorder = 3, mode = mode, cval = cval, prefilter = false, partly = true, "
                     "margin = %d)\n",
                     axes, arguments, padded ? FV_SPLINE_MARGIN : 0);
}
