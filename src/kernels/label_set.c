/* Sets of labels; see label_set.h. */
#include "kernels/label_set.h"
#include "base/take.h"
#include "op/scratch.h"
#include <stdlib.h>

/* ---------------------------------------------------------------- one chunk */

size_t fv__label_set_init(fv__label_set *set, const fv_region *region, void *scratch) {
    fv_scratch pieces = { scratch, 0 };
    int64_t    voxels = FV_MAX(fv__region_voxels(region), 1);
    int64_t    slots = fv__hash_table_slots(voxels);
    set->count = 0;
    set->item = fv__scratch_take(&pieces, voxels * (int64_t)sizeof *set->item);
    set->table.slot = fv__scratch_take(&pieces, slots * (int64_t)sizeof *set->table.slot);
    set->table.mask = (uint64_t)slots - 1;
    set->row = fv__scratch_take(&pieces, region->size[region->ndim - 1] * (int64_t)sizeof *set->row);
    if (scratch) memset(set->table.slot, 0, (size_t)slots * sizeof *set->table.slot);
    return pieces.used;
}

typedef struct {
    const fv__labelled *item;
    int64_t             label;
} wanted;

static bool is_wanted(const void *context, uint32_t number) {
    const wanted *w = context;
    return w->item[number].label == w->label;
}

/* Of a label: number of its item + 1, or 0. */
static uint32_t *slot_of(const fv__label_set *set, int64_t label) {
    wanted w = { set->item, label };
    return &set->table.slot[fv__hash_table_find(&set->table, false, fv__label_hash(label), is_wanted, &w)];
}

void fv__label_set_add(fv__label_set *set, int64_t label, int64_t count) {
    uint32_t *slot = slot_of(set, label);
    if (!*slot) {
        set->item[set->count++] = (fv__labelled){ .label = label };
        *slot = (uint32_t)set->count;
    }
    set->item[*slot - 1].count += count;
}

int64_t fv__label_set_find(const fv__label_set *set, int64_t label) { return (int64_t)*slot_of(set, label) - 1; }

static void sift(fv__labelled *item, int64_t root, int64_t count) {
    for (int64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && item[child + 1].label > item[child].label) child++;
        if (item[root].label >= item[child].label) return;
        fv__labelled swap = item[root];
        item[root] = item[child];
        item[child] = swap;
    }
}

/* In place: kernels do not allocate. */
static void sort(fv__label_set *set) {
    for (int64_t i = set->count / 2 - 1; i >= 0; i--) sift(set->item, i, set->count);
    for (int64_t i = set->count - 1; i > 0; i--) {
        fv__labelled swap = set->item[0];
        set->item[0] = set->item[i];
        set->item[i] = swap;
        sift(set->item, 0, i);
    }
    memset(set->table.slot, 0, (set->table.mask + 1) * sizeof *set->table.slot);
    for (int64_t i = 0; i < set->count; i++) *slot_of(set, set->item[i].label) = (uint32_t)i + 1;
}

int64_t fv__border_count(const fv_image_type *image, int64_t border, int axis, const int64_t *position, int64_t start,
                         int64_t end) {
    int spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    if (!border) return end - start;
    int64_t low = 0, high = INT64_MAX; /* of the part of the row that does not count */
    for (int k = 0; k < n; k++) {
        int     d = spatial[k];
        int64_t far = image->shape[d] - border;
        if (d == axis)
            low = border, high = far;
        else if (position[d] < border || position[d] >= far)
            return end - start;
    }
    if (high < low) return end - start;
    int64_t inner = FV_MIN(end, high) - FV_MAX(start, low);
    return end - start - FV_MAX(inner, 0);
}

fv_status fv__label_set_gather(fv__label_set *set, const fv_block *labels, const fv_image_type *image, int64_t border,
                               fv_error *error) {
    int     last = labels->region.ndim - 1;
    fv_rows rows;
    for (fv__rows_begin(&rows, &labels->region); fv__rows_next(&rows);) {
        const void *row = fv__block_at(labels, rows.position);
        int64_t     first = rows.position[last], count = fv__stretches(set->row, labels->dtype, row, labels->region.size[last]);
        for (int64_t i = 0; i < count; i++) {
            fv_stretch *s = &set->row[i];
            if (labels->dtype == FV_UINT64 && s->label < 0)
                return fv_fail(error, FV_ERROR_INPUT, "image holds the label %llu; labels must be below 2^63",
                               (unsigned long long)s->label);
            fv__label_set_add(set, s->label,
                              fv__border_count(image, border, last, rows.position, first + s->start, first + s->end));
        }
    }
    sort(set);
    return FV_OK;
}

/* ---------------------------------------------------------------- all chunks */

static int by_label(const void *a, const void *b) {
    const fv__labelled *x = a, *y = b;
    return x->label < y->label ? -1 : x->label > y->label;
}

static fv_status put_chunk(fv_finish *f, int64_t chunk, const fv__labelled *all, fv_error *error) {
    const void *data;
    int64_t     n = (int64_t)(f->size(f, chunk) / sizeof(fv__labelled)), at = 0;
    if (!n) return FV_OK;
    FV_TRY(f->partial(f, chunk, &data, error));
    for (int64_t i = 0; i < n; i++) {
        fv__labelled item;
        memcpy(&item, (const char *)data + i * (int64_t)sizeof item, sizeof item);
        while (all[at].label < item.label) at++; /* both are in order */
        FV_TRY(f->put(f, chunk, &all[at].count, sizeof all[at].count, error));
    }
    return FV_OK;
}

static fv_status read_all(fv_finish *f, fv__labelled *all, fv_error *error) {
    for (int64_t c = 0, n = 0; c < f->npartials; c++) {
        size_t size = f->size(f, c);
        if (size) FV_TRY(f->read(f, c, 0, all + n, size, error));
        n += (int64_t)(size / sizeof *all);
    }
    return FV_OK;
}

fv_status fv__label_sets_merge(fv_finish *f, int64_t (*decide)(void *context, int64_t label, int64_t count), void *context,
                               fv_error *error) {
    int64_t items = 0, labels = 0;
    for (int64_t c = 0; c < f->npartials; c++) items += (int64_t)(f->size(f, c) / sizeof(fv__labelled));
    fv__labelled *all;
    FV_TRY(FV_TAKE(all, (size_t)items * sizeof *all + 1, error));
    fv_status status = read_all(f, all, error);
    if (status == FV_OK) qsort(all, (size_t)items, sizeof *all, by_label);
    for (int64_t i = 0; i < items && status == FV_OK; i++)
        if (labels && all[labels - 1].label == all[i].label)
            all[labels - 1].count += all[i].count;
        else
            all[labels++] = all[i];
    for (int64_t i = 0; i < labels && status == FV_OK; i++) all[i].count = decide(context, all[i].label, all[i].count);
    for (int64_t c = 0; c < f->npartials && status == FV_OK; c++) status = put_chunk(f, c, all, error);
    free(all);
    return status;
}
