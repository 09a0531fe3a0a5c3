/* What the plug-in around cairo offers: a list of shapes as a PNG or PDF file.
 *
 * y points down, lengths are points (1/72 inch), colours are 0xRRGGBB. */
#ifndef FV_CAIRO_PLUGIN_H
#define FV_CAIRO_PLUGIN_H

#include <stdbool.h>

typedef enum fv_anchor { FV_TEXT_LEFT, FV_TEXT_MIDDLE, FV_TEXT_RIGHT } fv_anchor;
/* What stands between two of these in a text is raised and smaller: "10\0013\001". */
#define FV_TEXT_RAISE '\1'
#define FV_TEXT_RAISED 0.7 /* of the height of letters */
#define FV_TEXT_LIFT 0.4

typedef enum fv_shape_kind {
    FV_SHAPE_PATH,  /* points joined by lines: x0 y0 x1 y1 ... */
    FV_SHAPE_BOXES, /* left, top, width, height of each */
    FV_SHAPE_DISC,  /* its middle */
    FV_SHAPE_TEXT,  /* where it begins, ends or has its middle, on the base line */
} fv_shape_kind;

typedef struct fv_shape {
    fv_shape_kind kind;
    double       *numbers;
    int           count;   /* of numbers */
    double        size;    /* width of a line, 0: the path is filled; radius; height of letters */
    double        dash;    /* of a line: length of dashes and gaps; 0: none */
    double        opacity; /* 0 to 1 */
    double        room;    /* of a text: the width that it was given */
    fv_anchor     anchor;
    bool          up; /* a text that runs upwards */
    unsigned      color;
    char         *text;
} fv_shape;

typedef struct fv_drawing {
    double    width, height;
    double    pixels; /* of a PNG, for a point */
    double    opacity;
    fv_shape *shapes;
    int       count, room;
} fv_drawing;

enum { FV_CAIRO_MESSAGE = 200 };

typedef struct fv_cairo_plugin {
    /* False: message says why. */
    bool (*write)(const fv_drawing *drawing, const char *path, bool pdf, char message[FV_CAIRO_MESSAGE]);
} fv_cairo_plugin;

#define FV_CAIRO_SYMBOL "fv_cairo_plugin_get"
const fv_cairo_plugin *fv_cairo_plugin_get(void);

#endif
