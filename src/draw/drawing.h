/* A drawing: lines, boxes, discs and words in a list that is written as SVG, PNG or PDF.
 *
 *     fv_drawing *d = fv__drawing_new(640, 400, 2);
 *     fv__draw_line(d, 10, 10, 100, 50, 2, 0x0072b2);
 *     fv__draw_text(d, 20, 30, 12, FV_TEXT_LEFT, 0x333333, "words");
 *     status = fv__drawing_write(d, temporary, "picture.svg", error);
 *     fv__drawing_free(d);
 *
 * y points down, lengths are points, colours are 0xRRGGBB. In SVG, text stays text, which journals ask for. How wide words are
 * is known from Helvetica's metrics and not from the fonts of a machine, so that a drawing is laid out alike everywhere.
 */
#ifndef FV_DRAWING_H
#define FV_DRAWING_H

#include "base/base.h"
#include "draw/cairo_plugin.h"

/* pixels: of a PNG for each point. */
fv_drawing *fv__drawing_new(double width, double height, double pixels);
void        fv__drawing_free(fv_drawing *drawing);

/* Of everything that is drawn from now on, 0 to 1. */
void fv__draw_opacity(fv_drawing *drawing, double opacity);
void fv__draw_line(fv_drawing *drawing, double x0, double y0, double x1, double y1, double width, unsigned color);
void fv__draw_dashes(fv_drawing *drawing, double x0, double y0, double x1, double y1, double width, unsigned color);
void fv__draw_box(fv_drawing *drawing, double x, double y, double width, double height, unsigned color);
/* Many boxes of a colour: left, top, width and height of each. */
void fv__draw_boxes(fv_drawing *drawing, const double *boxes, int count, unsigned color);
void fv__draw_disc(fv_drawing *drawing, double x, double y, double radius, unsigned color);
/* A line through points x0 y0 x1 y1 ...; dash 0: unbroken. width 0: the area that they enclose. */
void fv__draw_path(fv_drawing *drawing, const double *points, int count, double width, double dash, unsigned color);
/* y is the base line of the letters. */
void fv__draw_text(fv_drawing *drawing, double x, double y, double size, fv_anchor anchor, unsigned color, const char *format,
                   ...) __attribute__((format(printf, 7, 8)));
/* Text that runs upwards, with its base line at x. */
void fv__draw_text_up(fv_drawing *drawing, double x, double y, double size, fv_anchor anchor, unsigned color, const char *text);

double fv__text_width(const char *text, double size);
/* The text, or its beginning with "…" where it would be wider than room. The caller frees. */
char *fv__text_fit(const char *text, double size, double room);

/* Appends it as SVG. */
void fv__drawing_svg(const fv_drawing *drawing, fv_bytes *out);
/* Whether what this needs for `name` is there. */
fv_status fv__drawing_ready(const char *name, fv_error *error);
/* Writes the file `path` in the format that the extension of `name` tells: svg, png or pdf. */
fv_status fv__drawing_write(const fv_drawing *drawing, const char *path, const char *name, fv_error *error);

#endif
