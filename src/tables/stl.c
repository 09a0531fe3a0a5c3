/* STL, binary: 80 bytes of anything, the number of triangles, and of each its normal and three corners as float32. */
#include "base/file.h"
#include "tables/mesh_file.h"
#include <math.h>

typedef struct {
    const fv_table_type *type;
    fv_table_source     *source;
    fv__stretch         *to;
    int64_t              count;
} writing;

static fv_status put_triangle(void *context, const double p[9], fv_error *error) {
    writing *w = context;
    double   a[3], b[3];
    float    numbers[12];
    uint8_t  triangle[50] = { 0 };
    for (int i = 0; i < 3; i++) {
        a[i] = p[3 + i] - p[i];
        b[i] = p[6 + i] - p[i];
    }
    double normal[3] = { a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0] };
    double length = sqrt(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]);
    for (int i = 0; i < 3; i++) numbers[i] = length > 0 ? (float)(normal[i] / length) : 0; /* one without area has none */
    for (int i = 0; i < 9; i++) numbers[3 + i] = (float)p[i];
    memcpy(triangle, numbers, sizeof numbers);
    if (++w->count > UINT32_MAX)
        return fv_fail(error, FV_ERROR_INPUT, "more triangles than an STL file can count; write .ply instead");
    return fv__stretch_put(w->to, triangle, sizeof triangle, error);
}

static fv_status fill(void *context, fv__stretch *to, fv_error *error) {
    writing *w = context;
    uint8_t  head[84] = "surface, binary STL";
    w->to = to;
    FV_TRY(fv__stretch_put(to, head, sizeof head, error));
    FV_TRY(fv__mesh_each(w->type, w->source, put_triangle, w, error));
    FV_TRY(fv__stretch_flush(to, error));
    uint32_t count = (uint32_t)w->count;
    return fv__file_write_at(to->fd, &count, sizeof count, 80, to->path, error);
}

static fv_status write_file(const char *path, const char *existing, const fv_table_type *type, const fv_table_options *options,
                            fv_table_source *source, fv_error *error) {
    writing w = { .type = type, .source = source };
    (void)existing, (void)options;
    return fv__mesh_write(path, fill, &w, error);
}

const fv_table_format fv_table_stl = {
    .name = "stl",
    .extensions = "stl",
    .brief = "the triangles that mesh makes, binary",
    .alone = FV_MESH_ALONE,
    .check = fv__mesh_check,
    .write = write_file,
};
