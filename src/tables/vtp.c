/* VTP, the surfaces of VTK and ParaView: XML, and behind it the points, which of them make each triangle, and where the numbers
 * of each triangle end. */
#include "tables/mesh_file.h"
#include <stdio.h>

static fv_status put_size(fv__stretch *to, int64_t size, fv_error *error) {
    uint64_t bytes = (uint64_t)size;
    return fv__stretch_put(to, &bytes, sizeof bytes, error);
}

static const char form[] =
    "<?xml version=\"1.0\"?>\n"
    "<VTKFile type=\"PolyData\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">\n<PolyData>\n"
    "<Piece NumberOfPoints=\"%lld\" NumberOfVerts=\"0\" NumberOfLines=\"0\" NumberOfStrips=\"0\" NumberOfPolys=\"%lld\">\n"
    "<Points><DataArray type=\"Float32\" Name=\"Points\" NumberOfComponents=\"3\" format=\"appended\" offset=\"0\"/>"
    "</Points>\n<Polys>\n<DataArray type=\"Int32\" Name=\"connectivity\" format=\"appended\" offset=\"%lld\"/>\n"
    "<DataArray type=\"Int64\" Name=\"offsets\" format=\"appended\" offset=\"%lld\"/>\n</Polys>\n"
    "</Piece>\n</PolyData>\n<AppendedData encoding=\"raw\">\n_";

static fv_status fill(void *context, fv__stretch *to, fv_error *error) {
    fv__mesh_points *mesh = context;
    char             head[2048];
    int64_t          points = 8 + mesh->npoints * 12, numbers = 8 + mesh->ntriangles * 12;
    int length = snprintf(head, sizeof head, form, (long long)mesh->npoints, (long long)mesh->ntriangles, (long long)points,
                          (long long)(points + numbers));
    static const char foot[] = "\n</AppendedData>\n</VTKFile>\n";
    FV_TRY(fv__stretch_put(to, head, (size_t)length, error));
    FV_TRY(put_size(to, mesh->npoints * 12, error));
    FV_TRY(fv__stretch_copy(to, &mesh->points, error));
    FV_TRY(put_size(to, mesh->ntriangles * 12, error));
    FV_TRY(fv__stretch_copy(to, &mesh->triangles, error));
    FV_TRY(put_size(to, mesh->ntriangles * 8, error));
    for (int64_t t = 1; t <= mesh->ntriangles; t++) FV_TRY(put_size(to, 3 * t, error));
    return fv__stretch_put(to, foot, sizeof foot - 1, error);
}

static fv_status write_file(const char *path, const char *existing, const fv_table_type *type, const fv_table_options *options,
                            fv_table_source *source, fv_error *error) {
    (void)existing, (void)options;
    return fv__mesh_write_shared(path, fill, type, source, error);
}

const fv_table_format fv_table_vtp = {
    .name = "vtp",
    .extensions = "vtp",
    .brief = "the triangles that mesh makes, for ParaView and VTK",
    .alone = FV_MESH_ALONE,
    .check = fv__mesh_check,
    .write = write_file,
};
