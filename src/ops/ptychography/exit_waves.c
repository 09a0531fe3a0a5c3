/* Order and sizes of frames, and the sums of a block. */
#include "ops/ptychography/exit_waves.h"
#include "base/take.h"
#include "ops/ptychography/frame_states.h"
#include "ops/ptychography/probe_sums.h"
#include <stdlib.h>

enum { MOST_FRAMES = 1000000, MOST_SIDE = 1 << 20 };
enum { NEAR_BLOCKS = 4 }; /* that share what lies in one part of the object: more would have fewer classes and larger boxes */

/* ---------------------------------------------------------------- sorting */

typedef struct place {
    int64_t frame, y, x; /* in 1 / PARTS of a pixel */
    int64_t stripe;
} place;

static int by_row(const void *a, const void *b) {
    const place *p = a, *q = b;
    if (p->y != q->y) return p->y < q->y ? -1 : 1;
    return (p->frame > q->frame) - (p->frame < q->frame);
}

/* Stripes one below the other; columns to and fro. */
static int by_stripe(const void *a, const void *b) {
    const place *p = a, *q = b;
    if (p->stripe != q->stripe) return p->stripe < q->stripe ? -1 : 1;
    if (p->x != q->x) return (p->x < q->x) == (p->stripe % 2 == 0) ? -1 : 1;
    return (p->frame > q->frame) - (p->frame < q->frame);
}

static fv_status round_places(const fv_list *positions, int64_t parts, place *places, fv_error *error) {
    for (int64_t i = 0; i < positions->count / 2; i++) {
        double y = positions->value[2 * i] * (double)parts, x = positions->value[2 * i + 1] * (double)parts;
        if (!(fabs(y) < (double)MOST_SIDE * (double)parts && fabs(x) < (double)MOST_SIDE * (double)parts))
            return fv_fail(error, FV_ERROR_USAGE,
                           "position %lld is (%g, %g); positions are rows and columns in pixels, below a million: are they in "
                           "metres?",
                           (long long)i, positions->value[2 * i], positions->value[2 * i + 1]);
        places[i] = (place){ i, (int64_t)floor(y + 0.5), (int64_t)floor(x + 0.5), 0 };
    }
    return FV_OK;
}

static int64_t whole(int64_t at, int64_t parts) { return at >= 0 ? at / parts : -((-at + parts - 1) / parts); }

/* Which of the parts x parts shifts a place has: those of the same columns follow each other. */
static int64_t shift_of(const place *p, int64_t parts) {
    return (p->x - whole(p->x, parts) * parts) * parts + p->y - whole(p->y, parts) * parts;
}

static void sort_places(place *places, int64_t count, int64_t block) {
    int64_t blocks = (count + block - 1) / block, stripes = (int64_t)floor(sqrt((double)blocks) + 0.5);
    int64_t each = (blocks + stripes - 1) / stripes * block;
    qsort(places, (size_t)count, sizeof *places, by_row);
    for (int64_t i = 0; i < count; i++) places[i].stripe = i / each;
    qsort(places, (size_t)count, sizeof *places, by_stripe);
}

/* By the shift of columns, then in several rounds over the object, then by the shift of rows. */
typedef struct shifted_place {
    place   at;
    int64_t columns, round, rows, order;
} shifted_place;

static int by_shift(const void *a, const void *b) {
    const shifted_place *p = a, *q = b;
    if (p->columns != q->columns) return p->columns < q->columns ? -1 : 1;
    if (p->round != q->round) return p->round < q->round ? -1 : 1;
    if (p->rows != q->rows) return p->rows < q->rows ? -1 : 1;
    return (p->order > q->order) - (p->order < q->order);
}

static void sort_by_shift(place *places, int64_t count, int64_t parts, int64_t rounds, shifted_place *room) {
    int64_t met[FV_WAVES_PARTS] = { 0 };
    for (int64_t i = 0; i < count; i++) {
        int64_t shift = shift_of(&places[i], parts);
        room[i] = (shifted_place){ places[i], shift / parts, met[shift / parts]++ % rounds, shift % parts, i };
    }
    qsort(room, (size_t)count, sizeof *room, by_shift);
    for (int64_t i = 0; i < count; i++) places[i] = room[i].at;
}

/* A group of frames that follow each other then has few classes. It should lie all over the object too: places of one class may
 * do so or not, but every n-th of them does as well as all. The blocks of a group lie apart. */
static void sort_into_groups(place *places, int64_t count, const fv_wave_cut *cut, shifted_place *room) {
    bool    met[FV_WAVES_PARTS] = { false };
    int64_t columns = 0, each = fv__waves_group(count, cut->groups, cut->block);
    for (int64_t i = 0; i < count; i++) met[shift_of(&places[i], cut->parts) / cut->parts] = true;
    for (int64_t k = 0; k < cut->parts; k++) columns += met[k];
    sort_by_shift(places, count, cut->parts, FV_MAX(1, (cut->groups + columns / 2) / FV_MAX(1, columns)), room);
    for (int64_t i = 0; i < count; i += each) sort_places(places + i, FV_MIN(each, count - i), cut->block);
}

/* In space, and frames that are near each other by their classes: a block has few of them then, and sums of one class can be
 * made before they are transformed. The blocks of a group have few classes already. */
static fv_status sort_frames(place *places, int64_t count, const fv_wave_cut *cut, fv_error *error) {
    int64_t        near = cut->by_class && cut->groups == 1 ? NEAR_BLOCKS * cut->block : cut->block;
    shifted_place *room;
    sort_places(places, count, near);
    if (!cut->by_class) return FV_OK;
    FV_TRY(FV_TAKE(room, (size_t)count * sizeof *room, error));
    if (cut->groups > 1) sort_into_groups(places, count, cut, room);
    for (int64_t i = 0; i < count; i += near) sort_by_shift(places + i, FV_MIN(near, count - i), cut->parts, 1, room);
    free(room);
    return FV_OK;
}

/* Numbers of the classes that occur, in order of their shifts; class 0 is that without shift. */
static int64_t number_classes(const place *places, int64_t count, int64_t parts, int64_t *number) {
    int64_t classes = 1;
    memset(number, 0, sizeof *number * (size_t)(parts * parts));
    for (int64_t i = 0; i < count; i++) number[shift_of(&places[i], parts)] = 1;
    number[0] = 0;
    for (int64_t k = 1; k < parts * parts; k++)
        if (number[k]) number[k] = classes++;
    return classes;
}

static void fill_scan(const place *places, int64_t count, int64_t parts, const int64_t *origin, const int64_t *number,
                      double *scan) {
    for (int64_t i = 0; i < count; i++) {
        double *to = scan + FV_SCAN_NUMBERS * i;
        to[FV_SCAN_FRAME] = (double)places[i].frame;
        to[FV_SCAN_Y] = (double)(whole(places[i].y, parts) - origin[0]);
        to[FV_SCAN_X] = (double)(whole(places[i].x, parts) - origin[1]);
        to[FV_SCAN_CLASS] = (double)number[shift_of(&places[i], parts)];
    }
}

static void fill_shifts(int64_t parts, const int64_t *number, double *shifts) {
    for (int64_t k = 0; k < parts * parts; k++) {
        if (k && !number[k]) continue;
        shifts[2 * number[k]] = (double)(k % parts) / (double)parts;
        shifts[2 * number[k] + 1] = (double)(k / parts) / (double)parts;
    }
}

static void find_extent(const place *places, int64_t count, int64_t parts, int64_t origin[2], int64_t extent[2]) {
    int64_t last[2] = { INT64_MIN, INT64_MIN };
    origin[0] = origin[1] = INT64_MAX;
    for (int64_t i = 0; i < count; i++)
        for (int d = 0; d < 2; d++) {
            int64_t at = whole(d ? places[i].x : places[i].y, parts);
            origin[d] = FV_MIN(origin[d], at);
            last[d] = FV_MAX(last[d], at);
        }
    for (int d = 0; d < 2; d++) extent[d] = last[d] - origin[d];
}

fv_status fv__waves_sort(const fv_list *positions, fv_wave_cut cut, fv_arena *arena, fv_wave_scan *at, int64_t origin[2],
                         int64_t extent[2], fv_error *error) {
    int64_t count = positions->count / 2, number[FV_WAVES_PARTS * FV_WAVES_PARTS];
    double *scan, *shifts;
    place  *places;
    if (count < 1 || positions->count % 2 || count > MOST_FRAMES)
        return fv_fail(error, FV_ERROR_USAGE,
                       "positions has %lld numbers; it takes a row and a column for each of 1 to %d frames",
                       (long long)positions->count, (int)MOST_FRAMES);
    FV_TRY(FV_TAKE(places, (size_t)count * sizeof *places, error));
    fv_status status = round_places(positions, cut.parts, places, error);
    if (status == FV_OK) status = FV_TAKE_IN(arena, scan, (size_t)(count * FV_SCAN_NUMBERS) * sizeof *scan, error);
    if (status == FV_OK) status = FV_TAKE_IN(arena, shifts, (size_t)(2 * cut.parts * cut.parts) * sizeof *shifts, error);
    if (status == FV_OK) status = sort_frames(places, count, &cut, error);
    if (status == FV_OK) {
        find_extent(places, count, cut.parts, origin, extent);
        int64_t classes = number_classes(places, count, cut.parts, number);
        fill_scan(places, count, cut.parts, origin, number, scan);
        fill_shifts(cut.parts, number, shifts);
        *at = (fv_wave_scan){ { count * FV_SCAN_NUMBERS, scan }, { 2 * classes, shifts }, cut.block };
    }
    free(places);
    return status;
}

/* ---------------------------------------------------------------- sizes */

fv_wave_box fv__waves_box(const fv_waves *w, int64_t block) {
    int64_t     first = block * w->block, end = FV_MIN(first + w->block, w->frames), last[2] = { 0, 0 };
    fv_wave_box box = { .y = INT64_MAX, .x = INT64_MAX, .frames = end - first };
    for (int64_t f = first; f < end; f++) {
        int64_t y = (int64_t)w->given[FV_SCAN_NUMBERS * f + FV_SCAN_Y], x = (int64_t)w->given[FV_SCAN_NUMBERS * f + FV_SCAN_X];
        box.y = FV_MIN(box.y, y);
        box.x = FV_MIN(box.x, x);
        last[0] = FV_MAX(last[0], y);
        last[1] = FV_MAX(last[1], x);
    }
    box.height = last[0] - box.y + w->height + 2 * w->margin;
    box.width = last[1] - box.x + w->width + 2 * w->margin;
    box.y -= w->margin;
    box.x -= w->margin;
    return box;
}

/* Whether classes are all places between pixels of a square grid, row by row. */
static bool is_grid(const fv_list *shifts) {
    int64_t parts = fv__wave_parts(shifts->count / 2);
    if (2 * parts * parts != shifts->count) return false;
    for (int64_t k = 0; k < parts * parts; k++)
        for (int a = 0; a < 2; a++)
            if (fabs(shifts->value[2 * k + a] * (double)parts - (double)(a ? k % parts : k / parts)) > 1e-6) return false;
    return true;
}

fv_status fv__waves_find(const fv_wave_scan *at, int64_t height, int64_t width, int64_t modes, fv_waves *w, fv_error *error) {
    *w = (fv_waves){ .scan = at->scan.value,
                     .given = at->scan.value,
                     .frames = at->scan.count / FV_SCAN_NUMBERS,
                     .block = at->block,
                     .margin = at->margin,
                     .classes = at->shifts.count / 2,
                     .modes = modes,
                     .height = height,
                     .width = width };
    if (w->frames < 1 || at->scan.count % FV_SCAN_NUMBERS || w->classes < 1 || at->shifts.count % 2)
        return fv_fail(error, FV_ERROR_USAGE, "scan must have four numbers for each frame, and shifts two for each class");
    if (modes > FV_WAVES_MODES)
        return fv_fail(error, FV_ERROR_USAGE, "the probe has %lld modes; %d are possible", (long long)modes, FV_WAVES_MODES);
    for (int64_t f = 0; f < w->frames; f++) {
        const double *frame = fv__wave_frame(w, f);
        for (int k = 0; k < FV_SCAN_NUMBERS; k++)
            if (!(frame[k] >= 0 && frame[k] < MOST_SIDE))
                return fv_fail(error, FV_ERROR_USAGE, "scan: number %d of frame %lld is %g; 0 to %d is possible", k, (long long)f,
                               frame[k], MOST_SIDE - 1);
        if (frame[FV_SCAN_Y] < (double)w->margin || frame[FV_SCAN_X] < (double)w->margin)
            return fv_fail(error, FV_ERROR_USAGE, "scan: frame %lld lies within the margin of %lld pixels", (long long)f,
                           (long long)w->margin);
        if (frame[FV_SCAN_CLASS] >= (double)w->classes)
            return fv_fail(error, FV_ERROR_USAGE, "scan: class %g of frame %lld is not in shifts", frame[FV_SCAN_CLASS],
                           (long long)f);
    }
    if (w->margin && !is_grid(&at->shifts))
        return fv_fail(error, FV_ERROR_USAGE, "shifts must be those of a grid for frames that may be moved");
    w->blocks = (w->frames + w->block - 1) / w->block;
    w->row = 2 * width;
    w->wave_rows = w->block * modes * height;
    for (int64_t b = 0; b < w->blocks; b++) {
        fv_wave_box box = fv__waves_box(w, b);
        w->box_height = FV_MAX(w->box_height, box.height);
        w->box_width = FV_MAX(w->box_width, box.width);
    }
    w->sum_rows = (3 * w->box_height * w->box_width + 3 + w->row - 1) / w->row;
    return FV_OK;
}

fv_status fv__waves_of(const fv_wave_scan *at, const fv_type *amplitudes, const fv_type *probe, fv_waves *w, fv_error *error) {
    const fv_image_type *a = &amplitudes->image, *p = &probe->image;
    int64_t              classes = at->shifts.count / 2;
    if (a->ndim != 3 || a->dtype != FV_FLOAT32 || at->block < 1 || a->shape[1] % at->block)
        return fv_fail(error, FV_ERROR_USAGE, "amplitudes is not what ptycho_frames gives");
    if (p->ndim != 4 || p->dtype != FV_FLOAT32 || classes < 1 || p->shape[0] % classes ||
        p->shape[1] != a->shape[1] / at->block || p->shape[2] != 2 || p->shape[3] != a->shape[2])
        return fv_fail(error, FV_ERROR_USAGE, "probe is not what ptycho_probe gives for these frames");
    FV_TRY(fv__waves_find(at, p->shape[1], p->shape[3], p->shape[0] / classes, w, error));
    if (a->shape[0] != w->blocks) return fv_fail(error, FV_ERROR_USAGE, "amplitudes and scan have not the same frames");
    return FV_OK;
}

/* Rows of a block that end with its sums: what ptycho_sums, ptycho_waves, ptycho_pie and ptycho_errors give. */
static bool ends_with_sums(const fv_waves *w, int64_t rows) {
    int64_t before = rows - w->sum_rows;
    return before == 0 || before == w->wave_rows || before == fv__pie_states_row(w) + fv__state_rows(w) + w->height ||
           before == fv__probe_sum_rows(w->height, w->modes);
}

fv_status fv__waves_again(const fv_wave_scan *at, const fv_type *waves, bool sums, const fv_type *probe, fv_waves *w,
                          fv_error *error) {
    const fv_image_type *a = &waves->image, *p = &probe->image;
    int64_t              classes = at->shifts.count / 2;
    if (p->ndim != 4 || p->dtype != FV_FLOAT32 || classes < 1 || p->shape[0] % classes || p->shape[2] != 2)
        return fv_fail(error, FV_ERROR_USAGE, "probe is not what ptycho_probe gives for this scan");
    FV_TRY(fv__waves_find(at, p->shape[1], p->shape[3], p->shape[0] / classes, w, error));
    if (a->ndim != 3 || a->dtype != FV_FLOAT32 || a->shape[0] != w->blocks || a->shape[2] != w->row ||
        (sums ? !ends_with_sums(w, a->shape[1]) : a->shape[1] != w->wave_rows + w->sum_rows))
        return fv_fail(error, FV_ERROR_USAGE, "%s do not belong to this scan and probe", sums ? "sums" : "waves");
    return FV_OK;
}

void fv__waves_type(const fv_waves *w, bool sums, fv_image_type *type) {
    int64_t shape[] = { w->blocks, (sums ? 0 : w->wave_rows) + w->sum_rows, w->row };
    fv_image_type_init(type, FV_FLOAT32, 3, shape);
    memcpy(type->axis[0], "block", 6);
    memcpy(type->axis[1], "row", 4);
    memcpy(type->axis[2], "number", 7);
}

fv_region fv__waves_window(const fv_waves *w, int64_t first, int64_t count) {
    fv_region all = { .ndim = 3 };
    for (int64_t b = first; b < first + count; b++) {
        fv_wave_box box = fv__waves_box(w, b);
        fv_region   one = { .ndim = 3, .start = { box.y, 0, box.x }, .size = { box.height, 2, box.width } };
        all = b == first ? one : fv__region_bound(&all, &one);
    }
    return all;
}

fv_status fv__waves_fit(const fv_waves *w, const fv_type *object, fv_error *error) {
    const fv_image_type *o = &object->image;
    fv_region            window = fv__waves_window(w, 0, w->blocks);
    if (o->ndim != 3 || o->dtype != FV_FLOAT32 || o->shape[1] != 2)
        return fv_fail(error, FV_ERROR_USAGE, "object must be float32 with axes row, part (real, imaginary) and column");
    if (window.start[0] + window.size[0] <= o->shape[0] && window.start[2] + window.size[2] <= o->shape[2]) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE, "the frames cover %lld x %lld pixels, the object has %lld x %lld",
                   (long long)(window.start[0] + window.size[0]), (long long)(window.start[2] + window.size[2]),
                   (long long)o->shape[0], (long long)o->shape[2]);
}

/* ---------------------------------------------------------------- sums */

void fv__wave_sums(const fv_waves *w, const fv_wave_rows *rows, int64_t y, int64_t x, float *sums) {
    for (int64_t i = 0; i < w->height; i++) {
        const float *p = rows->probe.data + i * rows->probe.row, *a = rows->wave + i * rows->wave_stride;
        fv__wave_fetch(a, rows->wave_stride, w->row);
        fv__wave_sums_row(w, p, p + rows->probe.part, a, a + w->width, sums + fv__wave_sums_at(w, y + i, x));
    }
}

void fv__wave_tail(const fv_waves *w, const double left[2], float *sums) {
    float *end = sums + w->sum_rows * w->row, most = 0;
    for (int64_t y = 0; y < w->box_height; y++)
        most = FV_MAX(most, fv__lanes_most(sums + fv__wave_sums_at(w, y, 0) + 2 * w->box_width, w->box_width));
    end[-3] = most;
    end[-2] = (float)left[0];
    end[-1] = (float)left[1];
}
