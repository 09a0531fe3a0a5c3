/* Growing scans. */
#include "stream/growing.h"
#include "base/file.h"
#include "base/take.h"
#include "op/axes.h"
#include "op/format.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct fv_growing {
    fv_growing_options options;
    char              *folder;
    fv_scan_file     **scans;
    int64_t            nscans;
};

fv_growing *fv__growing_new(const fv_growing_options *options) {
    fv_growing *g = fv__calloc(sizeof *g);
    g->options = *options;
    g->folder = fv__strdup(options->folder);
    g->options.folder = g->folder;
    return g;
}

int64_t fv__growing_count(const fv_growing *g) { return g ? g->nscans : 0; }

void fv__growing_tell(const fv_growing *g) {
    const fv_scan_file *first = g && g->nscans ? g->scans[0] : NULL;
    bool                rule = g && (g->options.count || g->options.silence > 0);
    if (!first) return;
    fv__log("fovea: scan %s%s not complete: %lld frame%s of it wait%s for the next start%s", first->name,
            g->nscans > 1 ? " is one of several that are" : " is", (long long)first->have_count,
            first->have_count == 1 ? "" : "s", first->have_count == 1 ? "s" : "",
            rule ? "" : "; --count, --silence, or fovea-count and fovea-end of frames tell when one is");
}

/* ---------------------------------------------------------------- files */

typedef struct facts { /* in a file beside the slices */
    char          name[256];
    fv_image_type type;
    int64_t       partition;
} facts;

static fv_scan_file *add_scan(fv_growing *g, const char *name, const fv_image_type *type) {
    fv_scan_file *scan = fv__calloc(sizeof *scan);
    fv_hash       hash = fv__hash_bytes(name, strlen(name));
    scan->name = fv__strdup(name);
    scan->type = *type;
    scan->path = fv__sprintf("%s/%016llx.slices", g->options.folder, (unsigned long long)hash.low);
    scan->facts = fv__sprintf("%s/%016llx.scan", g->options.folder, (unsigned long long)hash.low);
    scan->angles_path = fv__sprintf("%s/%016llx.angles", g->options.folder, (unsigned long long)hash.low);
    scan->fd = scan->angles_fd = -1;
    scan->length = g->options.count;
    scan->last = fv__now();
    g->scans = fv__realloc(g->scans, (size_t)(g->nscans + 1) * sizeof *g->scans);
    g->scans[g->nscans++] = scan;
    return scan;
}

static void free_scan(fv_scan_file *scan) {
    if (scan->fd >= 0) close(scan->fd);
    if (scan->angles_fd >= 0) close(scan->angles_fd);
    free(scan->angles);
    free(scan->angles_path);
    fv__seen_release(&scan->have);
    fv__sums_free(scan->sums);
    free(scan->name);
    free(scan->path);
    free(scan->facts);
    free(scan);
}

void fv__growing_free(fv_growing *g) {
    if (!g) return;
    for (int64_t i = 0; i < g->nscans; i++) free_scan(g->scans[i]);
    free(g->scans);
    free(g->folder);
    free(g);
}

void fv__growing_leave(fv_growing *g, int partition) {
    for (int64_t i = g->nscans - 1; i >= 0; i--) {
        if (g->scans[i]->partition != partition) continue;
        free_scan(g->scans[i]);
        g->scans[i] = g->scans[--g->nscans];
    }
}

void fv__growing_done(fv_growing *g, fv_scan_file *scan) {
    for (int64_t i = 0; i < g->nscans; i++)
        if (g->scans[i] == scan) g->scans[i] = g->scans[--g->nscans];
    fv__path_remove(scan->path, NULL);
    fv__path_remove(scan->facts, NULL);
    fv__path_remove(scan->angles_path, NULL);
    free_scan(scan);
}

static fv_status create(fv_scan_file *scan, fv_error *error) {
    facts f = { .type = scan->type, .partition = scan->partition };
    snprintf(f.name, sizeof f.name, "%s", scan->name);
    FV_TRY(fv__file_write_all(scan->facts, &f, sizeof f, true, error));
    return fv__file_open_update(scan->path, &scan->fd, error);
}

static void have(fv_scan_file *scan, int64_t index) {
    if (!fv__seen_add(&scan->have, "", index)) return;
    scan->have_count++;
    scan->most = FV_MAX(scan->most, index + 1);
    const fv_seen_scan *all = fv__seen_scan(&scan->have, "");
    scan->planes = all->range[0] ? 0 : all->range[1];
}

/* ---------------------------------------------------------------- angles */

static void note_angle(fv_scan_file *scan, int64_t index, double degrees) {
    if (index >= scan->nangles) {
        int64_t n = FV_MAX(2 * scan->nangles, index + 64);
        scan->angles = fv__realloc(scan->angles, (size_t)n * sizeof *scan->angles);
        memset(scan->angles + scan->nangles, 0, (size_t)(n - scan->nangles) * sizeof *scan->angles);
        scan->nangles = n;
    }
    scan->angles[index] = (fv_scan_angle){ degrees, 1 };
}

static fv_status put_angle(fv_scan_file *scan, const fv_frame *frame, fv_error *error) {
    int64_t size = sizeof(fv_scan_angle);
    if (isnan(frame->angle)) return FV_OK;
    if (scan->angles_fd < 0) FV_TRY(fv__file_open_update(scan->angles_path, &scan->angles_fd, error));
    note_angle(scan, frame->index, frame->angle);
    return fv__file_write_at(scan->angles_fd, &scan->angles[frame->index], (size_t)size, frame->index * size, scan->angles_path,
                             error);
}

static fv_status restore_angles(fv_scan_file *scan, fv_error *error) {
    fv_bytes bytes = { 0 };
    if (!fv__file_exists(scan->angles_path)) return FV_OK;
    FV_TRY(fv__file_read_all(scan->angles_path, FV_MOST_ANGLES * sizeof(fv_scan_angle), &bytes, error));
    const fv_scan_angle *told = (const void *)bytes.data;
    for (size_t i = 0; i < bytes.size / sizeof *told; i++)
        if (told[i].told && fv__seen_has(&scan->have, "", (int64_t)i)) note_angle(scan, (int64_t)i, told[i].degrees);
    fv__bytes_release(&bytes);
    return fv__file_open_update(scan->angles_path, &scan->angles_fd, error);
}

static bool is_told(const fv_scan_file *scan, int64_t i) { return i < scan->nangles && scan->angles[i].told; }

double *fv__scan_angles(const fv_scan_file *scan, int64_t n) {
    int64_t last = -1, before = -1, next = 0; /* that are known */
    double *angles = scan->nangles && n > 0 && n <= FV_MOST_ANGLES ? fv__alloc((size_t)n * sizeof *angles) : NULL;
    for (int64_t i = 0; i < n && angles; i++) {
        angles[i] = is_told(scan, i) ? scan->angles[i].degrees : NAN;
        if (is_told(scan, i)) {
            before = last;
            last = i;
            continue;
        }
        if (fv__seen_has(&scan->have, "", i)) continue;
        if (next <= i)
            for (next = i + 1; next < n && !is_told(scan, next);) next++;
        bool   inside = last >= 0 && next < n;
        double step = inside        ? (scan->angles[next].degrees - angles[last]) / (double)(next - last)
                      : before >= 0 ? (angles[last] - angles[before]) / (double)(last - before)
                                    : 0;
        angles[i] = last >= 0 ? angles[last] + (double)(i - last) * step : next < n ? scan->angles[next].degrees : 0;
    }
    return angles;
}

/* ---------------------------------------------------------------- after a kill */

/* Whoever completed a scan removes its facts. */
static fv_status read_facts(const fv_growing *g, const char *name, facts *f, bool *there, fv_error *error) {
    fv_hash   hash = fv__hash_bytes(name, strlen(name));
    char     *path = fv__sprintf("%s/%016llx.scan", g->options.folder, (unsigned long long)hash.low);
    fv_bytes  bytes = { 0 };
    fv_status status = fv__file_exists(path) ? fv__file_read_all(path, sizeof *f, &bytes, error) : FV_OK;
    *there = bytes.size == sizeof *f;
    if (*there) memcpy(f, bytes.data, sizeof *f);
    fv__bytes_release(&bytes);
    free(path);
    return status;
}

static fv_status restore_scan(fv_growing *g, const facts *f, const fv_seen_scan *staged, const fv_seen_scan *length,
                              fv_error *error) {
    fv_scan_file *scan = add_scan(g, staged->name + 1, &f->type);
    scan->partition = (int)f->partition;
    for (int64_t r = 0; r < staged->nranges; r++)
        for (int64_t i = staged->range[2 * r]; i < staged->range[2 * r + 1]; i++) have(scan, i);
    if (length) scan->length = length->range[0];
    scan->shown = scan->have_count;
    FV_TRY(fv__file_open_update(scan->path, &scan->fd, error));
    return restore_angles(scan, error);
}

static fv_status restore(fv_growing *g, const fv_stream_state *state, const fv_seen_scan *staged, int partition,
                         fv_error *error) {
    const char *name = staged->name + 1;
    char       *over = fv__sprintf("%s%s", FV_MARK_OVER, name), *known = fv__sprintf("%s%s", FV_MARK_LENGTH, name);
    bool        done = fv__seen_has(&state->seen, over, 0), there = false;
    facts       f = { .partition = -1 };
    fv_status   status = FV_OK;
    for (int64_t i = 0; i < g->nscans; i++) done = done || !strcmp(g->scans[i]->name, name);
    if (!done) status = read_facts(g, name, &f, &there, error);
    if (status == FV_OK && there && (partition < 0 || f.partition == partition))
        status = restore_scan(g, &f, staged, fv__seen_scan(&state->seen, known), error);
    free(over);
    free(known);
    return status;
}

fv_status fv__growing_restore(fv_growing *g, const fv_stream_state *state, int partition, fv_error *error) {
    FV_TRY(fv__path_make_folders(g->options.folder, error));
    for (int64_t i = 0; i < state->seen.nscans; i++)
        if (state->seen.scans[i].name[0] == FV_MARK_STAGED[0]) FV_TRY(restore(g, state, &state->seen.scans[i], partition, error));
    return FV_OK;
}

/* ---------------------------------------------------------------- frames */

static fv_status read_whole(const fv_frame *frame, fv_image_type *type, void **data, fv_error *error) {
    fv_reader *reader;
    fv_region  whole;
    fv_block   block;
    FV_TRY(fv__reader_acquire(frame->path, &(fv_read_options){ 0 }, &reader, error));
    *type = reader->type;
    whole = fv__region_whole(type);
    fv_status status = FV_TAKE(*data, (size_t)fv_image_type_bytes(type), error);
    if (status == FV_OK) {
        fv__block_init(&block, type->dtype, &whole, *data);
        status = fv__reader_read(reader, &block, error);
    }
    fv__reader_release(reader);
    return status;
}

static bool same_shape(const fv_image_type *a, const fv_image_type *b) {
    return a->dtype == b->dtype && a->ndim == b->ndim && !memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape);
}

static fv_status put(fv_growing *g, fv_scan_file *scan, const fv_frame *frame, const fv_image_type *type, const void *data,
                     char **why, fv_error *error) {
    int64_t bytes = fv_image_type_bytes(type), offset = 0;
    if (type->ndim == FV_MAX_DIMS || fv__axis_find(type, g->options.axis) >= 0)
        *why = fv__sprintf("it has an axis %s already, or too many; --scan takes a new one, such as t or z", g->options.axis);
    else if (!same_shape(&scan->type, type))
        *why = fv__sprintf("it has another shape or type than the first frame of its scan %s", scan->name);
    else if (scan->queued)
        *why = fv__sprintf("it comes too late: its scan %s is complete", scan->name);
    else if (scan->length && frame->index >= scan->length)
        *why = fv__sprintf("its number is %lld, and the %lld frames of its scan %s have the numbers 0 to %lld",
                           (long long)frame->index, (long long)scan->length, scan->name, (long long)scan->length - 1);
    else if (!fv__mul(frame->index, bytes, &offset) || offset > (int64_t)1 << 50)
        *why = fv__sprintf("its number %lld is too large", (long long)frame->index);
    else if (!isnan(frame->angle) && frame->index >= FV_MOST_ANGLES)
        *why = fv__sprintf("its number %lld is too large for a frame with an angle", (long long)frame->index);
    if (*why) return FV_OK;
    scan->partition = frame->partition;
    if (scan->fd < 0) FV_TRY(create(scan, error));
    FV_TRY(fv__file_write_at(scan->fd, data, (size_t)bytes, offset, scan->path, error));
    FV_TRY(put_angle(scan, frame, error));
    have(scan, frame->index);
    scan->last = fv__now();
    return FV_OK;
}

fv_status fv__growing_add(fv_growing *g, const fv_frame *frame, fv_scan_file **out, char **why, fv_error *error) {
    fv_image_type type = frame->type;
    const void   *data = frame->data;
    void         *mine = NULL;
    fv_scan_file *scan = NULL;
    fv_status     status = FV_OK;
    for (int64_t i = 0; i < g->nscans && !scan; i++)
        if (!strcmp(g->scans[i]->name, frame->scan)) scan = g->scans[i];
    bool only_end = frame->end && !frame->bytes;
    if (!data && !only_end) {
        fv_error wrong = { 0 };
        if (read_whole(frame, &type, &mine, &wrong) != FV_OK) *why = fv__strdup(wrong.message);
        data = mine;
    }
    if (!*why && !scan && !only_end) scan = add_scan(g, frame->scan, &type);
    if (!*why && !only_end) status = put(g, scan, frame, &type, data, why, error);
    if (status == FV_OK && !*why && scan) {
        if (frame->length) scan->length = frame->length;
        if (frame->end && !frame->length && !scan->length) scan->length = only_end ? scan->most : frame->index + 1;
        *out = scan;
    }
    free(mine);
    return status;
}

int64_t fv__growing_next(const fv_growing *g, const char *scan) {
    for (int64_t i = 0; i < g->nscans; i++)
        if (!strcmp(g->scans[i]->name, scan)) return g->scans[i]->most;
    return 0;
}

/* ---------------------------------------------------------------- complete ones */

void fv__growing_end_before(fv_growing *g, int partition, const char *name) {
    for (int64_t i = 0; i < g->nscans; i++) {
        fv_scan_file *scan = g->scans[i];
        if (scan->partition == partition && !scan->length && strcmp(scan->name, name) < 0) scan->length = scan->most;
    }
}

fv_scan_file *fv__growing_ready(fv_growing *g, bool over, bool *preview) {
    double now = fv__now();
    for (int64_t i = 0; i < g->nscans; i++) {
        fv_scan_file *scan = g->scans[i];
        bool          silent = g->options.silence > 0 && now - scan->last > g->options.silence;
        *preview = false;
        if (scan->queued || !scan->have_count) continue;
        if ((scan->length && scan->have_count >= scan->length) || silent || over) {
            if (!scan->length) scan->length = scan->most;
            if (scan->have_count < scan->length)
                fv__log("fovea: scan %s: %lld of %lld frames never came, first of all number %lld; they count as zeros",
                        scan->name, (long long)(scan->length - scan->have_count), (long long)scan->length,
                        (long long)scan->planes);
            scan->queued = true;
            return scan;
        }
        if (g->options.every && !scan->previewing && scan->have_count / g->options.every > scan->shown / g->options.every) {
            scan->shown = scan->have_count;
            *preview = scan->previewing = true;
            return scan;
        }
    }
    return NULL;
}

int64_t *fv__scan_there(const fv_scan_file *scan) {
    const fv_seen_scan *all = fv__seen_scan(&scan->have, "");
    int64_t            *there = fv__alloc((size_t)scan->have_count * sizeof *there), n = 0;
    for (int64_t r = 0; r < all->nranges; r++)
        for (int64_t i = all->range[2 * r]; i < all->range[2 * r + 1]; i++) there[n++] = i;
    return there;
}

/* So many at a time, since each step goes through all of what is summed up; near the end one by one, so that little is left to do
 * after the last one. */
enum { STEP = 4 };

static bool is_worth_a_step(const fv_scan_file *scan) {
    int64_t more = scan->planes - scan->summed;
    return more >= STEP || (more > 0 && scan->planes + STEP >= scan->length);
}

fv_scan_file *fv__growing_summable(fv_growing *g) {
    for (int64_t i = 0; i < g->nscans; i++) {
        fv_scan_file *scan = g->scans[i];
        if (scan->queued || scan->previewing || scan->summing || !scan->length || !is_worth_a_step(scan)) continue;
        scan->summed = scan->planes;
        scan->summing = true;
        return scan;
    }
    return NULL;
}

/* Frames that are not there are holes of the file, and zeros. */
static fv_status read_bytes(const fv_scan_file *scan, void *to, int64_t size, int64_t offset, fv_error *error) {
    for (ssize_t got = 1; size > 0 && got > 0; size -= got, offset += got, to = (char *)to + got)
        if ((got = pread(scan->fd, to, (size_t)size, offset)) < 0)
            return fv_fail(error, FV_ERROR_IO, "%s cannot be read", scan->path);
    memset(to, 0, (size_t)size);
    return FV_OK;
}

/* Axes from this one on lie together in the file and where they go: they are read at once. */
static int first_dense(const fv_scan_file *scan, const int64_t *count, const int64_t *stride) {
    int     d = scan->type.ndim;
    int64_t dense = 1;
    while (d > 0 && count[d] == scan->type.shape[d - 1] && stride[d] == dense && stride[d - 1] == dense * count[d])
        dense *= count[d--];
    return d;
}

static fv_status read_slices(void *context, const int64_t *start, const int64_t *count, const int64_t *stride, void *data,
                             fv_error *error) {
    const fv_scan_part *part = context;
    const fv_scan_file *scan = part->scan;
    int                 last = scan->type.ndim, dense = first_dense(scan, count, stride); /* axes of the scan */
    int64_t             run = 1, element = (int64_t)fv_dtype_size(scan->type.dtype), pitch[FV_MAX_DIMS], at[FV_MAX_DIMS] = { 0 };
    pitch[last] = element;
    for (int d = last; d > 0; d--) pitch[d - 1] = pitch[d] * scan->type.shape[d - 1];
    if (part->there && !dense) dense = 1; /* frames of a part need not follow each other */
    for (int d = dense; d <= last; d++) run *= count[d];
    for (bool more = true; more;) {
        int64_t from = 0, to = 0;
        for (int d = 0; d <= last; d++) {
            int64_t place = start[d] + at[d];
            from += (part->there && !d ? part->there[place] : place) * pitch[d];
            to += at[d] * stride[d] * element;
        }
        FV_TRY(read_bytes(scan, (char *)data + to, run * element, from, error));
        more = false;
        for (int d = dense - 1; d >= 0 && !more; d--) {
            more = ++at[d] < count[d];
            if (!more) at[d] = 0;
        }
    }
    return FV_OK;
}

void fv__scan_image(const fv_scan_part *part, const char *axis, fv_array *image) {
    *image = (fv_array){ .name = "scan", .type = part->scan->type, .read = read_slices, .context = (void *)(uintptr_t)part };
    fv__axis_insert(&image->type, 0, axis, part->nthere);
    image->chunk[0] = 1;
    for (int d = 1; d < image->type.ndim; d++) image->chunk[d] = image->type.shape[d];
}
