/* The parts of a report, each of which appends HTML. Internal to story. */
#ifndef FV_STORY_PARTS_H
#define FV_STORY_PARTS_H

#include "story/html.h"
#include "story/run_story.h"

/* ---- graph_drawing.c: boxes of operators, inputs above, coloured by their share of the time ---- */
void fv__put_graph(fv_bytes *out, const fv_story *story, int part);
/* ---- report_charts.c ---- */
void fv__put_timeline(fv_bytes *out, const fv_story *story, const fv_timeline *timeline);
void fv__put_memory(fv_bytes *out, const fv_story *story, const fv_timeline *timeline);
void fv__put_residuals(fv_bytes *out, const fv_residual *all, int64_t count);
/* ---- thumbnail.c: a picture of an image file, under its name, with what is shown of it. False: it is none, or not readable.
 * ----
 */
bool fv__put_thumbnail(fv_bytes *out, const char *path, const char *name);
bool fv__thumbnail_png(fv_bytes *png, const char *path); /* the picture alone, as a PNG file */
/* ---- table_plots.c: histograms of the columns of a table file; false: it is none ---- */
bool fv__put_table(fv_bytes *out, const char *path, const char *name);
/* ---- methods.c: a paragraph for a paper, and its references ---- */
void fv__put_methods(fv_bytes *out, const fv_story *story);
/* ---- report_inputs.c: what was read, with hashes. limit: bytes that may be read to make them ---- */
void fv__put_inputs(fv_bytes *out, const fv_story *story, int64_t limit);

#endif
