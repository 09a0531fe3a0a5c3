/* Tiles of a stitched image; see stitch_tiles.h. */
#include "ops/registration/stitch_tiles.h"
#include "base/file_pattern.h"
#include "base/take.h"
#include "op/axes.h"
#include "op/format.h"
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>

enum { LEAST_SHARED = 8 };        /* pixels along an axis */
enum { MOST_COMPARED = 1 << 25 }; /* voxels of each of two volumes */
enum { ROWS, SNAKE, COLUMNS, SNAKE_COLUMNS };
enum { FLIP_X = 1, FLIP_Y = 2 };

/* ---------------------------------------------------------------- files */

static fv_status find_files(const fv__tiles *p, fv_matches *files, fv_error *error) {
    FV_TRY(fv__pattern_find(p->file, fv__format_is_folder, files, error));
    if (files->count > 1) return FV_OK;
    fv_status status = files->count ? fv_fail(error, FV_ERROR_INPUT, "only %s matches \"%s\": two tiles at least are stitched",
                                              files->match[0].path, p->file)
                                    : fv_fail(error, FV_ERROR_INPUT, "no file matches \"%s\"", p->file);
    fv__matches_release(files);
    return status;
}

static const char *const names[] = { "z", "y", "x" };

static fv_status describe(const char *path, fv_image_type *type, double stage[3], bool *knows, fv_error *error) {
    fv_reader *reader;
    FV_TRY(fv__reader_acquire(path, NULL, &reader, error));
    *type = reader->type;
    *knows = reader->has_stage;
    for (int d = 0; d < 3; d++) {
        int axis = fv__axis_find(type, names[d]);
        stage[d] = axis < 0 ? 0 : reader->has_stage ? reader->stage[d] : type->origin[axis] / type->spacing[axis];
        *knows = *knows || stage[d] != 0;
    }
    fv__reader_release(reader);
    return FV_OK;
}

static fv_status check_axes(const char *path, const fv_image_type *type, fv_error *error) {
    int y = fv__axis_find(type, "y"), x = fv__axis_find(type, "x");
    if (y >= 0 && x == y + 1 && !fv_dtype_is_complex(type->dtype)) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT,
                   "%s: a tile is an image with the axes y x beside each other; read and name_axes tell which it has", path);
}

static fv_status check_alike(const char *path, const fv_image_type *type, const char *first, const fv_image_type *like,
                             fv_error *error) {
    if (type->dtype != like->dtype)
        return fv_fail(error, FV_ERROR_INPUT, "%s is %s and %s is %s: all tiles must have the same type", path,
                       fv_dtype_name(type->dtype), first, fv_dtype_name(like->dtype));
    bool same = type->ndim == like->ndim;
    for (int d = 0; same && d < type->ndim; d++) same = type->shape[d] == like->shape[d] && !strcmp(type->axis[d], like->axis[d]);
    if (same) return FV_OK;
    fv_bytes here = { 0 }, there = { 0 };
    for (int d = 0; d < type->ndim; d++)
        fv__bytes_printf(&here, "%s%s %lld", d ? ", " : "", type->axis[d], (long long)type->shape[d]);
    for (int d = 0; d < like->ndim; d++)
        fv__bytes_printf(&there, "%s%s %lld", d ? ", " : "", like->axis[d], (long long)like->shape[d]);
    fv_fail(error, FV_ERROR_INPUT, "%s has the shape %s and %s has %s: all tiles must have the same", path, (char *)here.data,
            first, (char *)there.data);
    fv__bytes_release(&here);
    fv__bytes_release(&there);
    return FV_ERROR_INPUT;
}

/* ---------------------------------------------------------------- where they should lie */

/* As places of fv__tiles_found are. */
typedef struct {
    int     n;
    double *edge, *at; /* depth, height, width; z, y, x of each tile */
} layout;

static fv_status place_in_grid(const fv__tiles *p, const fv_matches *files, const layout *l, fv_error *error) {
    fv_numbers overlap = p->overlap;
    FV_TRY(fv__numbers_spread(&overlap, l->n, "overlap", error));
    int64_t size[3] = { 1, 1, 1 }, tiles = 1;
    for (int d = 3 - l->n; d < 3; d++) tiles *= size[d] = (int64_t)p->grid.value[d - (3 - l->n)];
    if (tiles != files->count)
        return fv_fail(error, FV_ERROR_USAGE, "grid has %lld tiles, and \"%s\" matches %lld files; %s", (long long)tiles, p->file,
                       (long long)files->count,
                       files->count < tiles ? "some are missing" : "let the pattern match the tiles alone");
    bool by_columns = p->order.index >= COLUMNS, snake = p->order.index == SNAKE || p->order.index == SNAKE_COLUMNS;
    for (int64_t i = 0; i < files->count; i++) {
        int64_t layer = i / (size[1] * size[2]), rest = i % (size[1] * size[2]), length = by_columns ? size[1] : size[2];
        int64_t slow = rest / length, fast = rest % length;
        if (snake && slow % 2) fast = length - 1 - fast;
        int64_t at[3] = { layer, by_columns ? fast : slow, by_columns ? slow : fast };
        for (int d = 3 - l->n; d < 3; d++) l->at[3 * i + d] = (double)at[d] * l->edge[d] * (1 - overlap.value[d - (3 - l->n)]);
    }
    return FV_OK;
}

static int find_column(const fv_table_type *type, const char *name, bool text) {
    for (int c = 0; c < type->ncolumns; c++)
        if (!strcasecmp(type->column[c].name, name) && text == (type->column[c].kind == FV_COLUMN_TEXT)) return c;
    return -1;
}

static double number_in(const fv_table_type *type, const fv_cell *row, int column) {
    return type->column[column].kind == FV_COLUMN_REAL ? row[column].real : (double)row[column].integer;
}

/* The tile that a row is of: by its name, or the next one. */
static int64_t tile_of(const fv_matches *files, const char *name, int64_t row) {
    if (!name) return row < files->count ? row : -1;
    for (int64_t i = 0; i < files->count; i++) {
        char stem[256];
        fv__path_stem(files->match[i].path, stem, sizeof stem);
        if (!strcmp(fv__path_name(files->match[i].path), fv__path_name(name)) || !strcmp(stem, name)) return i;
    }
    return -1;
}

static fv_status take_rows(const fv__tiles *p, fv_table_reader *table, const fv_matches *files, layout *l, fv_error *error) {
    int            column[3], file = find_column(&table->type, "file", true);
    const fv_cell *cells;
    int64_t        nrows, row = 0;
    fv_numbers     pixel = p->pixel_size;
    for (int d = 0; d < 3; d++) column[d] = find_column(&table->type, names[d], false);
    if (column[1] < 0 || column[2] < 0)
        return fv_fail(error, FV_ERROR_INPUT, "%s has no columns x and y of numbers", p->positions);
    if (column[0] < 0) l->n = 2;
    FV_TRY(fv__numbers_spread(&pixel, l->n, "pixel_size", error));
    do {
        FV_TRY(table->source.next(&table->source, &cells, &nrows, error));
        for (int64_t r = 0; r < nrows; r++, row++) {
            const fv_cell *cell = cells + r * table->type.ncolumns;
            int64_t        tile = tile_of(files, file >= 0 ? cell[file].text : NULL, row);
            if (tile < 0 && file >= 0) continue; /* of a tile that is not wanted */
            if (tile < 0)
                return fv_fail(error, FV_ERROR_INPUT, "%s has more rows than \"%s\" matches files, %lld", p->positions, p->file,
                               (long long)files->count);
            for (int d = 3 - l->n; d < 3; d++)
                l->at[3 * tile + d] = number_in(&table->type, cell, column[d]) / pixel.value[d - (3 - l->n)];
        }
    } while (nrows);
    for (int64_t i = 0; i < files->count; i++)
        for (int d = 3 - l->n; d < 3; d++)
            if (!isfinite(l->at[3 * i + d]))
                return fv_fail(error, FV_ERROR_INPUT, "%s does not say where %s lies", p->positions, files->match[i].path);
    return FV_OK;
}

static fv_status place_by_table(const fv__tiles *p, const fv_matches *files, layout *l, fv_error *error) {
    const fv_table_format *format;
    fv_table_reader       *table;
    FV_TRY(fv__table_format_for_reading(p->positions, &format, error));
    FV_TRY(format->open(p->positions, NULL, &table, error));
    for (int64_t i = 0; i < 3 * files->count; i++) l->at[i] = NAN;
    fv_status status = take_rows(p, table, files, l, error);
    format->close(table);
    return status;
}

/* The first tile in each direction lies at 0. */
static void begin_at_zero(const fv__tiles *p, int64_t count, const layout *l) {
    for (int d = 0; d < 3; d++) {
        bool   flipped = d && p->flip.index & (d == 2 ? FLIP_X : FLIP_Y);
        double least = INFINITY;
        for (int64_t i = 0; i < count; i++) {
            double *at = &l->at[3 * i + d];
            *at = d < 3 - l->n ? 0 : flipped ? -*at : *at;
            least = FV_MIN(least, *at);
        }
        for (int64_t i = 0; i < count; i++) l->at[3 * i + d] -= least;
    }
}

/* Pixels along an axis that tiles must share to be compared. */
static double least_shared(const layout *l, int d) { return FV_MIN(LEAST_SHARED, l->edge[d]); }

static fv_status check_places(const fv__tiles *p, const fv_matches *files, const layout *l, fv_error *error) {
    for (int64_t i = 0; i < files->count; i++) {
        const double *here = &l->at[3 * i];
        bool          shares = false;
        for (int64_t j = 0; j < files->count && !shares; j++) {
            shares = i != j;
            for (int d = 0; d < 3; d++) shares = shares && l->edge[d] - fabs(here[d] - l->at[3 * j + d]) >= least_shared(l, d);
        }
        if (!shares && p->refine)
            return fv_fail(
                error, FV_ERROR_USAGE,
                "%s shares no %d pixels with any other tile, where it should lie: %srow %.6g, column %.6g of tiles of %.0f x "
                "%.0f; look at overlap, positions and pixel_size, or say refine = false to take places as they are",
                files->match[i].path, LEAST_SHARED, l->n == 3 ? "in its plane " : "", here[1], here[2], l->edge[1], l->edge[2]);
        double farthest = FV_MAX(here[0], FV_MAX(here[1], here[2]));
        if (farthest > 1e7)
            return fv_fail(error, FV_ERROR_USAGE, "%s would lie %.6g pixels from the first tile; look at pixel_size",
                           files->match[i].path, farthest);
    }
    return FV_OK;
}

static fv_status open_all(const fv_matches *files, fv_image_type *tile, double *at, bool *all_know, fv_error *error) {
    *all_know = true;
    for (int64_t i = 0; i < files->count; i++) {
        fv_image_type type;
        bool          knows;
        FV_TRY(describe(files->match[i].path, &type, at + 3 * i, &knows, error));
        FV_TRY(check_axes(files->match[i].path, &type, error));
        if (i == 0) *tile = type;
        FV_TRY(check_alike(files->match[i].path, &type, files->match[0].path, tile, error));
        *all_know = *all_know && (knows || i == 0); /* the first may lie at 0 */
    }
    return FV_OK;
}

/* Whether some tile lies in another plane than the first. */
static bool differ_in_depth(int64_t count, const double *at) {
    for (int64_t i = 1; i < count; i++)
        if (!(fabs(at[3 * i] - at[0]) < 0.5)) return true;
    return false;
}

/* Volumes move along z if somebody says where they lie along it. */
static fv_status place_all(const fv__tiles *p, const fv_matches *files, fv_image_type *tile, layout *l, fv_error *error) {
    bool table = p->positions && *p->positions, knows;
    FV_TRY(open_all(files, tile, l->at, &knows, error));
    int z = fv__axis_find(tile, "z"), y = fv__axis_find(tile, "y");
    if (p->grid.count && table)
        return fv_fail(error, FV_ERROR_USAGE, "grid and positions both say where tiles lie; give one of them");
    if (p->grid.count && p->grid.count != 2 && p->grid.count != 3)
        return fv_fail(error, FV_ERROR_USAGE,
                       "grid has %d numbers: it takes two, [rows, columns], or three for volumes, [layers, rows, columns]",
                       p->grid.count);
    l->n = p->grid.count ? p->grid.count : z >= 0 && (table || differ_in_depth(files->count, l->at)) ? 3 : 2;
    if (l->n == 3 && z < 0) return fv_fail(error, FV_ERROR_USAGE, "grid has three numbers, and the tiles have no axis z");
    for (int d = 0; d < 3; d++) l->edge[d] = d < 3 - l->n ? 1 : (double)tile->shape[fv__axis_find(tile, names[d])];
    if (p->grid.count)
        FV_TRY(place_in_grid(p, files, l, error));
    else if (table)
        FV_TRY(place_by_table(p, files, l, error));
    else if (!knows)
        return fv_fail(
            error, FV_ERROR_USAGE,
            "the files do not say where they lie; give grid = [rows, columns] with overlap, or positions = \"table.csv\"");
    if (l->n == 2) l->edge[0] = 1;
    if (l->n == 3 && z != y - 1)
        return fv_fail(error, FV_ERROR_USAGE, "volumes that move along z have the axes z y x beside each other: transpose them");
    begin_at_zero(p, files->count, l);
    return check_places(p, files, l, error);
}

/* ---------------------------------------------------------------- pairs */

/* What two tiles share, in whole pixels. */
static bool share(const fv__tiles_found *found, int64_t i, int64_t j, fv__tile_pair *pair) {
    *pair = (fv__tile_pair){ .tile = { i, j } };
    for (int d = 0; d < 3; d++) {
        int64_t apart = (int64_t)floor(fv__tiles_place(found, j, d) - fv__tiles_place(found, i, d) + 0.5);
        int64_t edge = fv__tiles_edge(found, d);
        pair->start[0][d] = FV_MAX(apart, 0);
        pair->start[1][d] = FV_MAX(-apart, 0);
        pair->size[d] = edge - (apart < 0 ? -apart : apart);
        if (pair->size[d] < FV_MIN(LEAST_SHARED, edge)) return false;
    }
    return true;
}

static int64_t pixels_of(const fv__tile_pair *pair) { return pair->size[0] * pair->size[1] * pair->size[2]; }

fv__tile_pair FV_ISA_NAME(fv__tiles_pair)(const fv__tiles_found *found, int64_t number) {
    fv__tile_pair pair;
    share(found, (int64_t)found->pairs.value[2 * number], (int64_t)found->pairs.value[2 * number + 1], &pair);
    while (fv__tiles_axes(found) == 3 && pixels_of(&pair) > MOST_COMPARED) {
        int longest = 0;
        for (int d = 1; d < 3; d++)
            if (pair.size[d] > pair.size[longest]) longest = d;
        int64_t less = pair.size[longest] / 2;
        pair.size[longest] -= less;
        for (int side = 0; side < 2; side++) pair.start[side][longest] += less / 2;
    }
    return pair;
}

/* All that share anything, in order, and the most pixels that each tile shares with another one. */
static void find_sharing(const fv__tiles_found *found, fv_bytes *pairs, int64_t *most) {
    int64_t n = fv__tiles_count(found);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++) {
            fv__tile_pair pair;
            if (!share(found, i, j, &pair)) continue;
            int64_t shared = pixels_of(&pair);
            most[i] = FV_MAX(most[i], shared);
            most[j] = FV_MAX(most[j], shared);
            fv__bytes_append(pairs, &pair, sizeof pair);
        }
}

/* A pair counts if it shares at least a third of the most that one of the two shares with any: corners of a grid do not. */
static void find_pairs(fv_arena *arena, fv__tiles_found *found) {
    fv_bytes sharing = { 0 };
    int64_t *most = fv__arena_alloc(arena, (size_t)fv__tiles_count(found) * sizeof *most);
    memset(most, 0, (size_t)fv__tiles_count(found) * sizeof *most);
    find_sharing(found, &sharing, most);
    int64_t              count = (int64_t)(sharing.size / sizeof(fv__tile_pair));
    const fv__tile_pair *pair = (const fv__tile_pair *)sharing.data;
    double              *numbers = fv__arena_alloc(arena, (size_t)FV_MAX(2 * count, 1) * sizeof *numbers);
    found->pairs = (fv_list){ 0, numbers };
    for (int64_t k = 0; k < count; k++) {
        int64_t shared = 3 * pixels_of(&pair[k]);
        if (shared < most[pair[k].tile[0]] && shared < most[pair[k].tile[1]]) continue;
        for (int side = 0; side < 2; side++) numbers[found->pairs.count++] = (double)pair[k].tile[side];
    }
    fv__bytes_release(&sharing);
}

/* ---------------------------------------------------------------- all together */

fv_status FV_ISA_NAME(fv__tiles_find)(const fv__tiles *p, fv_arena *arena, fv__tiles_found *found, fv_image_type *tile,
                                      fv_error *error) {
    fv_matches files;
    fv_bytes   lines = { 0 };
    FV_TRY(find_files(p, &files, error));
    double   *places = fv__arena_alloc(arena, (size_t)(4 + 3 * files.count) * sizeof *places);
    layout    l = { 2, places + 1, places + 4 };
    fv_status status = place_all(p, &files, tile, &l, error);
    for (int64_t i = 0; i < files.count; i++) fv__bytes_printf(&lines, "%s\n", files.match[i].path);
    fv__bytes_append(&lines, "", 1);
    found->paths = fv__arena_strdup(arena, (char *)lines.data);
    places[0] = l.n;
    found->places = (fv_list){ 4 + 3 * files.count, places };
    if (status == FV_OK) find_pairs(arena, found);
    fv__bytes_release(&lines);
    fv__matches_release(&files);
    return status;
}

fv_status FV_ISA_NAME(fv__tiles_identify)(const fv__tiles *p, fv_hasher *hasher, fv_error *error) {
    fv_matches files;
    fv_status  status = FV_OK;
    FV_TRY(find_files(p, &files, error));
    for (int64_t i = 0; i <= files.count && status == FV_OK; i++) {
        const char *path = i < files.count ? files.match[i].path : p->positions;
        fv_file_id  id;
        if (!path || !*path) continue;
        status = fv__file_identify(path, &id, error);
        fv__hasher_text(hasher, path);
        fv__hasher_int(hasher, id.size);
        fv__hasher_int(hasher, id.mtime_ns);
    }
    fv__matches_release(&files);
    return status;
}

/* ---------------------------------------------------------------- reading */

/* Files that can only be read in order are read by one thread at a time. Of the process: a lock, which holds nothing. */
static pthread_mutex_t in_order = PTHREAD_MUTEX_INITIALIZER;

static fv_status acquire(const fv__tiles_found *found, int64_t tile, fv_reader **reader, fv_error *error) {
    const char *path = found->paths;
    for (int64_t i = 0; i < tile; i++) path = strchr(path, '\n') + 1;
    char     *copy = fv__sprintf("%.*s", (int)strcspn(path, "\n"), path);
    fv_status status = fv__reader_acquire(copy, NULL, reader, error);
    free(copy);
    return status;
}

fv_status FV_ISA_NAME(fv__tile_type)(const fv__tiles_found *found, fv_image_type *type, int64_t *memory, fv_error *error) {
    fv_reader *reader;
    FV_TRY(acquire(found, 0, &reader, error));
    *type = reader->type;
    *memory = reader->read_memory;
    fv__reader_release(reader);
    return FV_OK;
}

fv_status FV_ISA_NAME(fv__tile_read)(const fv__tiles_found *found, int64_t tile, const fv_block *block, fv_error *error) {
    fv_reader *reader;
    FV_TRY(acquire(found, tile, &reader, error));
    fv_region whole = fv__region_whole(&reader->type);
    bool      same =
        reader->type.dtype == block->dtype && whole.ndim == block->region.ndim && fv__region_inside(&block->region, &whole);
    bool      alone = reader->sequential;
    fv_status status = same ? FV_OK : fv_fail(error, FV_ERROR_INPUT, "%s has changed while it was read", reader->path);
    if (alone) fv__io_lock(&in_order);
    if (status == FV_OK) status = fv__reader_read(reader, block, error);
    if (alone) pthread_mutex_unlock(&in_order);
    fv__reader_release(reader);
    return status;
}
