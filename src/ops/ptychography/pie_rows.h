/* How ptycho_pie lays out what it finds in a block: [block][rows][re, im x column], as waves are laid out.
 *
 * modes x height rows with the change of the probe; a few rows with the places of the block's frames, two numbers each: how far
 * they lie below and right of their corners in the scan, in pixels; then the sums of exit_waves.h, from which ptycho_object makes
 * the change of the object.
 */
#ifndef FV_PIE_ROWS_H
#define FV_PIE_ROWS_H

#include "ops/ptychography/exit_waves.h"

static inline int64_t fv__pie_probe_rows(const fv_waves *w) { return w->modes * w->height; }
static inline int64_t fv__pie_place_rows(const fv_waves *w) { return (2 * w->block + w->row - 1) / w->row; }

#endif
