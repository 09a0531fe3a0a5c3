#include "ops/registration/numbered_rows.h"
#include <stdlib.h>

static int in_order(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

fv_status fv__numbered_rows(fv_finish *f, size_t size, fv_numbered_put *put, fv_error *error) {
    fv_row_writer rows;
    fv_bytes      all = { 0 };
    fv_status     status = FV_OK;
    fv__row_writer_init(&rows, f);
    for (int64_t k = 0; k < f->npartials && status == FV_OK; k++) {
        const void *data;
        if (!f->size(f, k)) continue;
        status = f->partial(f, k, &data, error);
        if (status == FV_OK) fv__bytes_append(&all, data, f->size(f, k));
    }
    int64_t count = (int64_t)(all.size / size);
    if (count) qsort(all.data, (size_t)count, size, in_order);
    if (status == FV_OK) status = put(f, all.data, count, &rows, error);
    if (status == FV_OK) status = fv__row_writer_flush(&rows, error);
    fv__row_writer_release(&rows);
    fv__bytes_release(&all);
    return status;
}
