/* For files of triangles (stl, ply, vtp): the triangles of a table, as the operator mesh makes it. */
#ifndef FV_MESH_FILE_H
#define FV_MESH_FILE_H

#include "op/format.h"

/* Bytes that are written one behind the other, many at a time. */
typedef struct fv__stretch {
    int         fd;
    const char *path;
    int64_t     size; /* also of what is still held */
    fv_bytes    held;
} fv__stretch;

fv_status fv__stretch_put(fv__stretch *to, const void *data, size_t size, fv_error *error);
fv_status fv__stretch_flush(fv__stretch *to, fv_error *error);
fv_status fv__stretch_copy(fv__stretch *to, fv__stretch *from, fv_error *error); /* all of it */

/* A check of a format: the table has the columns of corners, all of them numbers. */
fv_status fv__mesh_check(const char *path, const fv_table_type *type, fv_error *error);
#define FV_MESH_ALONE "a file holds one surface: of a collection, each item needs a name of its own"

/* Calls `take` with x, y, z of the three corners of each row. */
typedef fv_status (*fv__triangle_take)(void *context, const double corner[9], fv_error *error);
fv_status fv__mesh_each(const fv_table_type *type, fv_table_source *source, fv__triangle_take take, void *context,
                        fv_error *error);

/* The same with points that triangles share: float32 x, y, z of each point, and int32 numbers of three for each triangle, in two
 * nameless files. Points that are equal are one, unless very many others came between them. */
typedef struct fv__mesh_points {
    fv__stretch points, triangles;
    int64_t     npoints, ntriangles;
} fv__mesh_points;

/* Writes a file: opens it, lets `fill` write it, closes it. */
fv_status fv__mesh_write(const char *path, fv_status (*fill)(void *context, fv__stretch *to, fv_error *error), void *context,
                         fv_error *error);
/* The same for a format whose triangles share points: the context is an fv__mesh_points. */
fv_status fv__mesh_write_shared(const char          *path, fv_status (*fill)(void *context, fv__stretch *to, fv_error *error),
                                const fv_table_type *type, fv_table_source *source, fv_error *error);

#endif
