/* Triangles of a table on their way into files; see mesh_file.h. */
#include "tables/mesh_file.h"
#include "base/file.h"
#include "base/hash_table.h"
#include "base/take.h"
#include "op/table_rows.h"
#include <stdlib.h>
#include <unistd.h>

enum { HELD = 1 << 18, KNOWN = 1 << 18 /* points that are looked for among */ };

/* ---------------------------------------------------------------- bytes */

fv_status fv__stretch_flush(fv__stretch *to, fv_error *error) {
    int64_t start = to->size - (int64_t)to->held.size;
    if (to->held.size) FV_TRY(fv__file_write_at(to->fd, to->held.data, to->held.size, start, to->path, error));
    fv__bytes_clear(&to->held);
    return FV_OK;
}

fv_status fv__stretch_put(fv__stretch *to, const void *data, size_t size, fv_error *error) {
    fv__bytes_append(&to->held, data, size);
    to->size += (int64_t)size;
    return to->held.size >= HELD ? fv__stretch_flush(to, error) : FV_OK;
}

fv_status fv__stretch_copy(fv__stretch *to, fv__stretch *from, fv_error *error) {
    char     *piece;
    fv_status status = fv__stretch_flush(from, error);
    FV_TRY(status);
    FV_TRY(FV_TAKE(piece, HELD, error));
    for (int64_t at = 0; at < from->size && status == FV_OK; at += HELD) {
        size_t n = (size_t)FV_MIN(from->size - at, HELD);
        status = fv__file_read_at(from->fd, piece, n, at, from->path, error);
        if (status == FV_OK) status = fv__stretch_put(to, piece, n, error);
    }
    free(piece);
    return status;
}

fv_status fv__mesh_write(const char *path, fv_status (*fill)(void *context, fv__stretch *to, fv_error *error), void *context,
                         fv_error *error) {
    fv__stretch to = { .path = path };
    FV_TRY(fv__file_open_write(path, &to.fd, error));
    fv_status status = fill(context, &to, error);
    if (status == FV_OK) status = fv__stretch_flush(&to, error);
    fv_status closed = fv__file_close(to.fd, path, status == FV_OK ? error : NULL);
    fv__bytes_release(&to.held);
    return status == FV_OK ? closed : status;
}

/* ---------------------------------------------------------------- rows */

static const char *const names[9] = { "x1", "y1", "z1", "x2", "y2", "z2", "x3", "y3", "z3" };

static bool find_columns(const fv_table_type *type, int column[9]) {
    for (int k = 0; k < 9; k++) {
        column[k] = type ? fv__table_column(type, names[k]) : -1;
        if (column[k] < 0 || type->column[column[k]].kind == FV_COLUMN_TEXT) return false;
    }
    return true;
}

fv_status fv__mesh_check(const char *path, const fv_table_type *type, fv_error *error) {
    int column[9];
    if (find_columns(type, column)) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE,
                   "%s holds triangles, and this is %s without the columns x1, y1, z1, ... z3 of their corners; mesh() makes one "
                   "with them",
                   path, type ? "a table" : "a number");
}

fv_status fv__mesh_each(const fv_table_type *type, fv_table_source *source, fv__triangle_take take, void *context,
                        fv_error *error) {
    int            column[9];
    const fv_cell *cells;
    int64_t        nrows;
    FV_TRY(find_columns(type, column) ? FV_OK : fv__mesh_check("the file", type, error));
    for (;;) {
        FV_TRY(source->next(source, &cells, &nrows, error));
        if (!nrows) return fv__fault_point("table.rows", error);
        for (int64_t r = 0; r < nrows; r++, cells += type->ncolumns) {
            double corner[9];
            for (int k = 0; k < 9; k++) corner[k] = fv__cell_number(type->column[column[k]].kind, cells[column[k]]);
            FV_TRY(take(context, corner, error));
        }
    }
}

/* ---------------------------------------------------------------- points that are shared */

typedef struct {
    float place[3];
} point;

typedef struct {
    fv__mesh_points *mesh;
    point           *known;
    int64_t          first; /* number of the first one that is known */
    uint32_t         nknown;
    fv_hash_table    table;
    point            sought;
} sharing;

static bool same(const void *context, uint32_t number) {
    const sharing *s = context;
    return !memcmp(&s->known[number], &s->sought, sizeof s->sought);
}

static fv_status number_of(sharing *s, const double *place, int32_t *number, fv_error *error) {
    for (int k = 0; k < 3; k++) s->sought.place[k] = (float)place[k] + 0.0f; /* -0 is 0 */
    uint64_t hash = fv__hash_bytes(&s->sought, sizeof s->sought).low;
    uint64_t at = fv__hash_table_find(&s->table, true, hash, same, s);
    uint32_t found = *fv__hash_table_at(&s->table, true, at);
    if (found) {
        *number = (int32_t)(s->first + found - 1);
        return FV_OK;
    }
    if (s->nknown == KNOWN) {
        memset(s->table.slot, 0, (size_t)(s->table.mask + 1) * 2 * sizeof *s->table.slot);
        s->first += KNOWN;
        s->nknown = 0;
    }
    if (s->mesh->npoints == INT32_MAX)
        return fv_fail(error, FV_ERROR_INPUT, "more than %d points, which is all that such a file can number", INT32_MAX);
    s->known[s->nknown] = s->sought;
    fv__hash_table_add(&s->table, true, hash, s->nknown++);
    *number = (int32_t)s->mesh->npoints++;
    return fv__stretch_put(&s->mesh->points, &s->sought, sizeof s->sought, error);
}

static fv_status share(void *context, const double corner[9], fv_error *error) {
    sharing *s = context;
    int32_t  number[3];
    for (int k = 0; k < 3; k++) FV_TRY(number_of(s, corner + 3 * k, &number[k], error));
    s->mesh->ntriangles++;
    return fv__stretch_put(&s->mesh->triangles, number, sizeof number, error);
}

static fv_status share_points(const fv_table_type *type, fv_table_source *source, fv__mesh_points *mesh, fv_error *error) {
    sharing s = { .mesh = mesh };
    int64_t slots = fv__hash_table_slots(KNOWN);
    *mesh = (fv__mesh_points){ { .fd = -1, .path = fv__file_scratch() }, { .fd = -1, .path = fv__file_scratch() }, 0, 0 };
    fv_status status = fv__file_open_nameless(0, &mesh->points.fd, error);
    if (status == FV_OK) status = fv__file_open_nameless(0, &mesh->triangles.fd, error);
    if (status == FV_OK) status = FV_TAKE(s.known, KNOWN * sizeof *s.known, error);
    if (status == FV_OK) status = FV_TAKE_ZEROED(s.table.slot, (size_t)slots * 2 * sizeof *s.table.slot, error);
    s.table.mask = (uint64_t)slots - 1;
    if (status == FV_OK) status = fv__mesh_each(type, source, share, &s, error);
    free(s.known);
    free(s.table.slot);
    return status;
}

static void release_points(fv__mesh_points *mesh) {
    if (mesh->points.fd >= 0) close(mesh->points.fd);
    if (mesh->triangles.fd >= 0) close(mesh->triangles.fd);
    fv__bytes_release(&mesh->points.held);
    fv__bytes_release(&mesh->triangles.held);
}

fv_status fv__mesh_write_shared(const char          *path, fv_status (*fill)(void *context, fv__stretch *to, fv_error *error),
                                const fv_table_type *type, fv_table_source *source, fv_error *error) {
    fv__mesh_points mesh;
    fv_status       status = share_points(type, source, &mesh, error);
    if (status == FV_OK) status = fv__mesh_write(path, fill, &mesh, error);
    release_points(&mesh);
    return status;
}
