/* Boxes of uncompressed files: axes that are adjacent in file and block are merged first, so that a whole image is one call
 * and a small box is read row by row, or through small gaps where that saves calls. */
#include "op/dense.h"
#include "base/file.h"
#include "base/take.h"

/* A call costs about as much as copying this many bytes, so rows with smaller gaps are read together. */
enum { WORTH_A_CALL = 8192 };

/* One axis of the walk; steps count elements. */
typedef struct {
    int64_t size, file_step, block_step;
} axis;

/* The walk over a box, fastest axis of the file first, and where it begins in the file (in elements). At least two axes. */
typedef struct {
    int     ndim;
    axis    axis[FV_MAX_DIMS + 2];
    int64_t start;
} walk;

static size_t file_element(const fv_dense *dense) { return dense->half ? 2 : fv_dtype_size(dense->dtype); }

int64_t fv__dense_bytes(const fv_dense *dense) {
    int64_t n = (int64_t)file_element(dense);
    for (int d = 0; d < dense->ndim; d++)
        if (dense->shape[d] < 0 || !fv__mul(n, dense->shape[d], &n)) return -1;
    return n;
}

void fv__dense_piece(const fv_image_type *type, int64_t bytes, int64_t piece[FV_MAX_DIMS]) {
    int64_t size = (int64_t)fv_dtype_size(type->dtype);
    for (int d = type->ndim - 1; d >= 0; d--) {
        piece[d] = FV_MAX(FV_MIN(type->shape[d], bytes / size), 1);
        size *= piece[d];
    }
}

static walk walk_of(const fv_dense *dense, const fv_block *block) {
    walk    w = { 0 };
    int64_t step = 1;
    for (int i = 0; i < dense->ndim; i++) {
        int  d = dense->fortran ? i : dense->ndim - 1 - i;
        axis next = { block->region.size[d], step, block->stride[d] };
        w.start += block->region.start[d] * step;
        step *= dense->shape[d];
        axis *last = w.ndim ? &w.axis[w.ndim - 1] : NULL;
        if (next.size == 1) continue;
        if (last && next.file_step == last->file_step * last->size && next.block_step == last->block_step * last->size)
            last->size *= next.size;
        else
            w.axis[w.ndim++] = next;
    }
    /* A box of single elements along the fastest axis still needs a row to read: one element long. */
    if (w.ndim == 0 || w.axis[0].file_step != 1) {
        memmove(w.axis + 1, w.axis, (size_t)w.ndim * sizeof *w.axis);
        w.axis[0] = (axis){ 1, 1, 1 };
        w.ndim++;
    }
    if (w.ndim == 1) w.axis[w.ndim++] = (axis){ 1, w.axis[0].size, w.axis[0].size };
    return w;
}

/* ---------------------------------------------------------------- elements */

void fv__swap_elements(fv_dtype dtype, void *data, int64_t n) {
    size_t size = fv_dtype_size(dtype);
    if (fv_dtype_is_complex(dtype)) {
        size /= 2;
        n *= 2;
    }
    if (size == 2)
        for (uint16_t *p = data; n-- > 0; p++) *p = __builtin_bswap16(*p);
    else if (size == 4)
        for (uint32_t *p = data; n-- > 0; p++) *p = __builtin_bswap32(*p);
    else if (size == 8)
        for (uint64_t *p = data; n-- > 0; p++) *p = __builtin_bswap64(*p);
}

float fv__half_widen(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 1023, bits;
    if (exponent == 0) {
        float value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    bits = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | fraction << 13;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* From the file's representation to the block's, in place; never for half. */
static void normalise(const fv_dense *dense, void *data, int64_t n) {
    if (dense->swapped) fv__swap_elements(dense->dtype, data, n);
    if (dense->dtype == FV_BOOL)
        for (uint8_t *p = data; n-- > 0; p++) *p = *p != 0;
}

void fv__copy_strided(void *to, int64_t to_step, const void *from, int64_t from_step, int64_t n, size_t size) {
    if (size == 1)
        for (int64_t i = 0; i < n; i++) ((uint8_t *)to)[i * to_step] = ((const uint8_t *)from)[i * from_step];
    else if (size == 2)
        for (int64_t i = 0; i < n; i++) ((uint16_t *)to)[i * to_step] = ((const uint16_t *)from)[i * from_step];
    else if (size == 4)
        for (int64_t i = 0; i < n; i++) ((uint32_t *)to)[i * to_step] = ((const uint32_t *)from)[i * from_step];
    else if (size == 8)
        for (int64_t i = 0; i < n; i++) ((uint64_t *)to)[i * to_step] = ((const uint64_t *)from)[i * from_step];
    else
        for (int64_t i = 0; i < n; i++)
            memcpy((char *)to + i * to_step * (int64_t)size, (const char *)from + i * from_step * (int64_t)size, size);
}

/* One row, as it lies in the file, into the block. */
static void place(const fv_dense *dense, const walk *w, void *row, int64_t n, char *to) {
    if (dense->half) {
        for (int64_t i = 0; i < n; i++) {
            uint16_t half = ((uint16_t *)row)[i];
            ((float *)to)[i * w->axis[0].block_step] = fv__half_widen(dense->swapped ? __builtin_bswap16(half) : half);
        }
        return;
    }
    normalise(dense, row, n);
    fv__copy_strided(to, w->axis[0].block_step, row, 1, n, fv_dtype_size(dense->dtype));
}

/* ---------------------------------------------------------------- reading */

typedef struct {
    const fv_dense *dense;
    const walk     *walk;
    int             fd;
    const char     *path;
    void           *buffer; /* FV_DENSE_MEMORY bytes, or NULL while none was needed */
} job;

static int64_t file_position(const job *j, int64_t element) {
    return j->dense->offset + element * (int64_t)file_element(j->dense);
}

/* A row straight into the block. */
static fv_status read_row(job *j, int64_t element, char *to, fv_error *error) {
    int64_t n = j->walk->axis[0].size;
    FV_TRY(fv__file_read_at(j->fd, to, (size_t)n * file_element(j->dense), file_position(j, element), j->path, error));
    normalise(j->dense, to, n);
    return FV_OK;
}

/* A row through the buffer, in parts that fit it. */
static fv_status read_row_in_parts(job *j, int64_t element, char *to, fv_error *error) {
    size_t  size = file_element(j->dense);
    int64_t fits = FV_DENSE_MEMORY / (int64_t)size, n = j->walk->axis[0].size;
    for (int64_t i = 0; i < n; i += fits) {
        int64_t part = FV_MIN(fits, n - i);
        FV_TRY(fv__file_read_at(j->fd, j->buffer, (size_t)part * size, file_position(j, element + i), j->path, error));
        place(j->dense, j->walk, j->buffer, part, to + i * j->walk->axis[0].block_step * (int64_t)fv_dtype_size(j->dense->dtype));
    }
    return FV_OK;
}

/* Rows of one plane (the two fastest axes): element is where it begins in the file, to where in the block. */
static fv_status read_plane(job *j, int64_t element, char *to, fv_error *error) {
    const axis *row = &j->walk->axis[0], *next = &j->walk->axis[1];
    size_t      size = file_element(j->dense);
    int64_t     block_step = next->block_step * (int64_t)fv_dtype_size(j->dense->dtype);
    bool        direct = row->block_step == 1 && !j->dense->half;
    int64_t     gap = (next->file_step - row->size) * (int64_t)size;
    int64_t     together = gap <= WORTH_A_CALL ? FV_DENSE_MEMORY / (next->file_step * (int64_t)size) : 1;
    if (direct && row->size * (int64_t)size >= WORTH_A_CALL * 8) together = 1; /* long rows need no copy */
    if (!(direct && together <= 1) && !j->buffer) FV_TRY(FV_TAKE_BUFFER(j->buffer, FV_DENSE_MEMORY, error));
    for (int64_t i = 0; i < next->size;) {
        int64_t rows = FV_MAX(FV_MIN(together, next->size - i), 1), first = element + i * next->file_step;
        if (rows == 1) {
            FV_TRY(direct ? read_row(j, first, to + i * block_step, error)
                          : read_row_in_parts(j, first, to + i * block_step, error));
        } else {
            int64_t span = (rows - 1) * next->file_step + row->size;
            FV_TRY(fv__file_read_at(j->fd, j->buffer, (size_t)span * size, file_position(j, first), j->path, error));
            for (int64_t r = 0; r < rows; r++)
                place(j->dense, j->walk, (char *)j->buffer + r * next->file_step * (int64_t)size, row->size,
                      to + (i + r) * block_step);
        }
        i += rows;
    }
    return FV_OK;
}

/* Steps through all axes but the two fastest; false at the end. */
static bool next_plane(const walk *w, int64_t *index) {
    for (int d = 2; d < w->ndim; d++) {
        if (++index[d] < w->axis[d].size) return true;
        index[d] = 0;
    }
    return false;
}

fv_status fv__dense_read(const fv_dense *dense, int fd, const char *path, const fv_block *block, fv_error *error) {
    if (fv__region_empty(&block->region)) return FV_OK;
    walk      w = walk_of(dense, block);
    job       j = { dense, &w, fd, path, NULL };
    int64_t   index[FV_MAX_DIMS + 2] = { 0 };
    fv_status status;
    do {
        int64_t element = w.start, to = 0;
        for (int d = 2; d < w.ndim; d++) {
            element += index[d] * w.axis[d].file_step;
            to += index[d] * w.axis[d].block_step;
        }
        status = read_plane(&j, element, (char *)block->data + to * (int64_t)fv_dtype_size(dense->dtype), error);
    } while (status == FV_OK && next_plane(&w, index));
    if (j.buffer) fv__buffer_free(j.buffer, FV_DENSE_MEMORY);
    return status;
}

/* ---------------------------------------------------------------- writing */

fv_status fv__dense_write(const fv_dense *dense, int fd, const char *path, const fv_block *block, fv_error *error) {
    if (fv__region_empty(&block->region)) return FV_OK;
    walk    w = walk_of(dense, block);
    size_t  size = fv_dtype_size(dense->dtype);
    int64_t index[FV_MAX_DIMS + 2] = { 0 };
    do {
        for (int64_t i = 0; i < w.axis[1].size; i++) {
            int64_t element = w.start + i * w.axis[1].file_step, from = i * w.axis[1].block_step;
            for (int d = 2; d < w.ndim; d++) {
                element += index[d] * w.axis[d].file_step;
                from += index[d] * w.axis[d].block_step;
            }
            FV_TRY(fv__file_write_at(fd, (char *)block->data + from * (int64_t)size, (size_t)w.axis[0].size * size,
                                     dense->offset + element * (int64_t)size, path, error));
        }
    } while (next_plane(&w, index));
    return FV_OK;
}
