/* Memory for what data decide: blocks, scratch, decoded and encoded pieces, partials, tables, headers, texts. What cannot be had
 * is an error of the caller, FV_ERROR_MEMORY, and never the end of the process:
 *
 *     FV_TRY(FV_TAKE(rows, (size_t)count * sizeof *rows, error));
 *
 * Small things of fixed size use fv__alloc and its like (base.h), which call the handler of fv_set_out_of_memory. fv__try_alloc
 * and fv__buffer_new give NULL when there is no memory.
 */
#ifndef FV_TAKE_H
#define FV_TAKE_H

#include "base/base.h"

/* The pointer is NULL then; with FV_TAKE_MORE, as it was. */
#define FV_TAKE(pointer, size, error) (((pointer) = fv__try_alloc(size)) ? FV_OK : fv__no_memory(size, error))
#define FV_TAKE_ZEROED(pointer, size, error) (((pointer) = fv__try_calloc(size)) ? FV_OK : fv__no_memory(size, error))
#define FV_TAKE_BUFFER(pointer, size, error) (((pointer) = fv__buffer_new(size)) ? FV_OK : fv__no_memory(size, error))
#define FV_TAKE_MORE(pointer, size, error) fv__take_more((void **)&(pointer), size, error)

void     *fv__try_calloc(size_t size);
fv_status fv__take_more(void **pointer, size_t size, fv_error *error);
/* FV_ERROR_MEMORY, with the usual sentence. */
fv_status fv__no_memory(size_t size, fv_error *error);
/* Room for so many bytes more: to be asked for before they are appended. */
fv_status fv__bytes_need(fv_bytes *bytes, size_t extra, fv_error *error);

/* For libraries that could not get their few bytes: as fv__alloc. */
void fv__out_of_memory(size_t size) __attribute__((noreturn));

/* Tests: the n-th allocation of this kind from now on fails, 0: none. Returns how many were left to wait for: above 0 if the one
 * asked for last never came. */
int64_t fv__memory_fail(int64_t n);

#endif
