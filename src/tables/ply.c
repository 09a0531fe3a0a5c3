/* PLY, binary: a header of text, the points, and for each triangle how many points it has and which. */
#include "base/file.h"
#include "tables/mesh_file.h"
#include <stdio.h>

static fv_status put_triangles(fv__mesh_points *mesh, fv__stretch *to, fv_error *error) {
    FV_TRY(fv__stretch_flush(&mesh->triangles, error));
    for (int64_t t = 0; t < mesh->ntriangles;) {
        int32_t numbers[3 * 1024];
        int64_t count = FV_MIN(mesh->ntriangles - t, 1024);
        FV_TRY(fv__file_read_at(mesh->triangles.fd, numbers, (size_t)count * 12, t * 12, mesh->triangles.path, error));
        for (int64_t i = 0; i < count; i++) {
            uint8_t face[13] = { 3 };
            memcpy(face + 1, numbers + 3 * i, 12);
            FV_TRY(fv__stretch_put(to, face, sizeof face, error));
        }
        t += count;
    }
    return FV_OK;
}

static fv_status fill(void *context, fv__stretch *to, fv_error *error) {
    fv__mesh_points  *mesh = context;
    char              head[512];
    static const char form[] = "ply\nformat binary_little_endian 1.0\nelement vertex %lld\nproperty float x\nproperty float y\n"
                               "property float z\nelement face %lld\nproperty list uchar int vertex_indices\nend_header\n";
    int               length = snprintf(head, sizeof head, form, (long long)mesh->npoints, (long long)mesh->ntriangles);
    FV_TRY(fv__stretch_put(to, head, (size_t)length, error));
    FV_TRY(fv__stretch_copy(to, &mesh->points, error));
    return put_triangles(mesh, to, error);
}

static fv_status write_file(const char *path, const char *existing, const fv_table_type *type, const fv_table_options *options,
                            fv_table_source *source, fv_error *error) {
    (void)existing, (void)options;
    return fv__mesh_write_shared(path, fill, type, source, error);
}

const fv_table_format fv_table_ply = {
    .name = "ply",
    .extensions = "ply",
    .brief = "the triangles that mesh makes, with points that they share, binary",
    .alone = FV_MESH_ALONE,
    .check = fv__mesh_check,
    .write = write_file,
};
