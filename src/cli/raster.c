/* A drawing as PNG: smooth lines, boxes and discs on a white ground, at twice the resolution. */
#include "drawing.h"
#include <math.h>
#include <png.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SCALE 2.0 /* pixels for a unit of the drawing */

typedef struct canvas {
    int      width, height;
    uint8_t *pixels; /* RGB */
} canvas;

static void blend(canvas *c, int x, int y, unsigned color, double cover) {
    if (x < 0 || y < 0 || x >= c->width || y >= c->height || cover <= 0) return;
    uint8_t *p = c->pixels + 3 * ((size_t)y * (size_t)c->width + (size_t)x);
    if (cover > 1) cover = 1;
    for (int k = 0; k < 3; k++) {
        double wanted = (double)(color >> (16 - 8 * k) & 255);
        p[k] = (uint8_t)lround(p[k] + cover * (wanted - p[k]));
    }
}

/* A line with round ends: a pixel is covered by how far it is inside, measured from its middle. No length: a disc. */
static void line(canvas *c, double x0, double y0, double x1, double y1, double radius, unsigned color) {
    double dx = x1 - x0, dy = y1 - y0, length = dx * dx + dy * dy;
    int    left = (int)floor(fmin(x0, x1) - radius - 1), right = (int)ceil(fmax(x0, x1) + radius + 1);
    int    top = (int)floor(fmin(y0, y1) - radius - 1), bottom = (int)ceil(fmax(y0, y1) + radius + 1);
    for (int y = top < 0 ? 0 : top; y <= bottom && y < c->height; y++)
        for (int x = left < 0 ? 0 : left; x <= right && x < c->width; x++) {
            double px = x + 0.5 - x0, py = y + 0.5 - y0;
            double along = length > 0 ? fmin(fmax((px * dx + py * dy) / length, 0), 1) : 0;
            blend(c, x, y, color, radius + 0.5 - hypot(px - along * dx, py - along * dy));
        }
}

static void box(canvas *c, double x0, double y0, double x1, double y1, unsigned color) {
    for (int y = (int)floor(fmax(y0, 0)); y < y1 && y < c->height; y++)
        for (int x = (int)floor(fmax(x0, 0)); x < x1 && x < c->width; x++)
            blend(c, x, y, color, (fmin(x + 1, x1) - fmax(x, x0)) * (fmin(y + 1, y1) - fmax(y, y0)));
}

/* ---------------------------------------------------------------- words */

#define ADVANCE 5.6 /* from letter to letter, on their grid */

static void letter(canvas *c, char which, double x, double y, double unit, unsigned color) {
    double from_x = 0, from_y = 0;
    bool   started = false;
    for (const char *s = fv_letter_strokes(which); *s; s++) {
        if (*s == ' ' || !s[1]) {
            started = false;
            continue;
        }
        double to_x = x + (s[0] - '0') * unit, to_y = y + (s[1] - '0' - 6) * unit;
        s++;
        if (started) line(c, from_x, from_y, to_x, to_y, 0.42 * unit, color);
        started = true;
        from_x = to_x;
        from_y = to_y;
    }
}

static void words(canvas *c, const fv_shape *s) {
    double unit = s->size * SCALE * 0.72 / 6, width = ((double)strlen(s->text) * ADVANCE - (ADVANCE - 4)) * unit;
    double x = s->x * SCALE - (s->anchor == FV_TEXT_LEFT ? 0 : s->anchor == FV_TEXT_MIDDLE ? width / 2 : width);
    for (const char *t = s->text; *t; t++, x += ADVANCE * unit) letter(c, *t, x, s->y * SCALE, unit, s->color);
}

static void shape(canvas *c, const fv_shape *s) {
    switch (s->kind) {
    case FV_SHAPE_LINE:
        line(c, s->x * SCALE, s->y * SCALE, s->to_x * SCALE, s->to_y * SCALE, s->size * SCALE / 2, s->color);
        break;
    case FV_SHAPE_BOX: box(c, s->x * SCALE, s->y * SCALE, s->to_x * SCALE, s->to_y * SCALE, s->color); break;
    case FV_SHAPE_DISC: line(c, s->x * SCALE, s->y * SCALE, s->x * SCALE, s->y * SCALE, s->size * SCALE, s->color); break;
    case FV_SHAPE_TEXT: words(c, s); break;
    }
}

bool fv_drawing_write_png(const fv_drawing *d, const char *path) {
    canvas c = { (int)(d->width * SCALE), (int)(d->height * SCALE), NULL };
    size_t bytes = 3 * (size_t)c.width * (size_t)c.height;
    c.pixels = malloc(bytes);
    if (!c.pixels) return false;
    memset(c.pixels, 255, bytes);
    for (int i = 0; i < d->count; i++) shape(&c, &d->shapes[i]);
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = (png_uint_32)c.width, .height = (png_uint_32)c.height, .format = PNG_FORMAT_RGB
    };
    bool good = png_image_write_to_file(&image, path, 0, c.pixels, 0, NULL) != 0;
    free(c.pixels);
    return good;
}
