/* Memory for what data decide: blocks, scratch, decoded and encoded pieces, partials, tables, headers, texts. What cannot be had
 * is an error of the caller, FV_ERROR_MEMORY, and never the end of the process:
 *
 *     FV_TRY(FV_TAKE(rows, (size_t)count * sizeof *rows, error));
 *
 * fv__try_alloc and fv__buffer_new give NULL when there is no memory.
 *
 * Small things, and lists and texts that data make longer a little at a time, use fv__alloc and its like, arenas and fv_bytes
 * (base.h), which cannot fail: every session keeps a reserve, FV_RESERVE bytes of address space, for the time when there is no
 * more. Whoever needs it then gets its bytes from there, and the next FV_TAKE or fv__memory_check fails as an error, so that the
 * work ends in good order and what it holds is freed. Only when the reserve is used up as well does the handler of
 * fv_set_out_of_memory end the process: whatever goes on for long between two checks, or takes a megabyte at once, has to use
 * FV_TAKE or check for itself.
 */
#ifndef FV_TAKE_H
#define FV_TAKE_H

#include "base/base.h"

/* The pointer is NULL then; with FV_TAKE_MORE, as it was. */
#define FV_TAKE(pointer, size, error) (((pointer) = fv__try_alloc(size)) ? FV_OK : fv__no_memory(size, error))
#define FV_TAKE_ZEROED(pointer, size, error) (((pointer) = fv__try_calloc(size)) ? FV_OK : fv__no_memory(size, error))
#define FV_TAKE_BUFFER(pointer, size, error) (((pointer) = fv__buffer_new(size)) ? FV_OK : fv__no_memory(size, error))
#define FV_TAKE_IN(arena, pointer, size, error) (((pointer) = fv__arena_try(arena, size)) ? FV_OK : fv__no_memory(size, error))
#define FV_TAKE_MORE(pointer, size, error) fv__take_more((void **)&(pointer), size, error)

void     *fv__try_calloc(size_t size);
void     *fv__arena_try(fv_arena *arena, size_t size); /* as fv__arena_alloc */
fv_status fv__take_more(void **pointer, size_t size, fv_error *error);
/* FV_ERROR_MEMORY, with the usual sentence. */
fv_status fv__no_memory(size_t size, fv_error *error);
/* Room for so many bytes more: to be asked for before they are appended. */
fv_status fv__bytes_need(fv_bytes *bytes, size_t extra, fv_error *error);

/* FV_ERROR_MEMORY if somebody of this session had to use the reserve, which is then filled again, or if it cannot be filled. */
fv_status fv__memory_check(fv_error *error);

/* For libraries that could not get their few bytes: gives the reserve back to the system, so that they may try once more; if that
 * is of no use either, the handler. */
void fv__memory_lend(size_t size);
void fv__out_of_memory(size_t size) __attribute__((noreturn));

enum { FV_RESERVE = 16 << 20, FV_SMALL = 1 << 20 }; /* the second: tests want nothing larger from the reserve */

/* Tests: the n-th allocation from now on fails, 0: none; of those that fail as errors, or with any of those as well that use the
 * reserve then. Returns how many were left to wait for: above 0 if the one asked for last never came. */
int64_t fv__memory_fail(int64_t n);
int64_t fv__memory_fail_any(int64_t n);

#endif
