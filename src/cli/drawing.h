/* A drawing: lines, boxes, discs and words in a list that can be written as SVG and as PNG.
 *
 *     fv_drawing *d = fv_drawing_new(640, 400);
 *     fv_draw_line(d, 10, 10, 100, 50, 2, 0x1f77b4);
 *     fv_draw_text(d, 20, 30, 12, FV_TEXT_LEFT, 0x333333, "words");
 *     fv_drawing_write(d, "picture.svg"); fv_drawing_write(d, "picture.png"); fv_drawing_free(d);
 *
 * y points down; colours are 0xRRGGBB. The PNG has twice the resolution and letters of its own, made of strokes, so
 * that no font is needed.
 */
#ifndef FV_DRAWING_H
#define FV_DRAWING_H

#include <stdbool.h>

typedef struct fv_drawing fv_drawing;
typedef enum fv_anchor { FV_TEXT_LEFT, FV_TEXT_MIDDLE, FV_TEXT_RIGHT } fv_anchor;

fv_drawing *fv_drawing_new(double width, double height);
void        fv_drawing_free(fv_drawing *drawing);

void fv_draw_line(fv_drawing *drawing, double x0, double y0, double x1, double y1, double width, unsigned color);
void fv_draw_dashes(fv_drawing *drawing, double x0, double y0, double x1, double y1, double width, unsigned color);
void fv_draw_box(fv_drawing *drawing, double x, double y, double width, double height, unsigned color);
void fv_draw_disc(fv_drawing *drawing, double x, double y, double radius, unsigned color);
/* y is the base line of the letters. */
void fv_draw_text(fv_drawing *drawing, double x, double y, double size, fv_anchor anchor, unsigned color, const char *format, ...)
    __attribute__((format(printf, 7, 8)));

/* By the extension, .svg or .png. False if it cannot be written; errno tells why. */
bool fv_drawing_write(const fv_drawing *drawing, const char *path);

/* ---- for the rasteriser ---- */
typedef enum fv_shape_kind { FV_SHAPE_LINE, FV_SHAPE_BOX, FV_SHAPE_DISC, FV_SHAPE_TEXT } fv_shape_kind;
typedef struct fv_shape {
    fv_shape_kind kind;
    double        x, y, to_x, to_y, size; /* size: width of a line, radius, height of letters */
    fv_anchor     anchor;
    unsigned      color;
    char         *text;
} fv_shape;
struct fv_drawing {
    double    width, height;
    fv_shape *shapes;
    int       count, room;
};
bool fv_drawing_write_png(const fv_drawing *drawing, const char *path);
/* Strokes of a letter on a grid of 4 by 6 (8 with what hangs below): pairs of digits x y, strokes apart by blanks. */
const char *fv_letter_strokes(char letter);

#endif
