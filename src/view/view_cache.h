/* Decoded pieces of what is shown, up to a bound; the least recently used ones go first.
 *
 * Invariants
 * 1. A piece is loaded by one thread; others that want it wait for that one, and load it themselves if it fails.
 * 2. A piece that somebody uses is never freed. The bound may be passed by what is in use.
 */
#ifndef FV_VIEW_CACHE_H
#define FV_VIEW_CACHE_H

#include "base/base.h"

typedef struct fv_view_cache fv_view_cache;
typedef struct fv_view_piece fv_view_piece;

fv_view_cache *fv_view_cache_new(int64_t most_bytes);
void           fv_view_cache_free(fv_view_cache *cache);
/* The piece of this key, which load fills if it is not there. Let go of it with fv_view_cache_release. */
fv_status   fv_view_cache_get(fv_view_cache *cache, fv_hash key, size_t size,
                              fv_status (*load)(void *context, void *data, fv_error *error), void *context, fv_view_piece **piece,
                              fv_error *error);
const void *fv_view_cache_data(const fv_view_piece *piece);
void        fv_view_cache_release(fv_view_cache *cache, fv_view_piece *piece);
bool        fv_view_cache_has(fv_view_cache *cache, fv_hash key);

#endif
