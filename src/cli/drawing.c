/* A drawing as a list of shapes, and as SVG. */
#include "drawing.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fv_drawing *fv_drawing_new(double width, double height) {
    fv_drawing *drawing = calloc(1, sizeof *drawing);
    if (!drawing) abort();
    drawing->width = width;
    drawing->height = height;
    return drawing;
}

void fv_drawing_free(fv_drawing *drawing) {
    if (!drawing) return;
    for (int i = 0; i < drawing->count; i++) free(drawing->shapes[i].text);
    free(drawing->shapes);
    free(drawing);
}

static void add(fv_drawing *drawing, fv_shape shape) {
    if (drawing->count == drawing->room) {
        drawing->room = 2 * drawing->room + 64;
        drawing->shapes = realloc(drawing->shapes, (size_t)drawing->room * sizeof *drawing->shapes);
        if (!drawing->shapes) abort();
    }
    drawing->shapes[drawing->count++] = shape;
}

void fv_draw_line(fv_drawing *drawing, double x0, double y0, double x1, double y1, double width, unsigned color) {
    add(drawing, (fv_shape){ FV_SHAPE_LINE, x0, y0, x1, y1, width, .color = color });
}

void fv_draw_dashes(fv_drawing *drawing, double x0, double y0, double x1, double y1, double width, unsigned color) {
    double length = hypot(x1 - x0, y1 - y0);
    int    count = (int)(length / 8) + 1;
    for (int i = 0; i < count; i++) {
        double a = i / (double)count, b = (i + 0.5) / count;
        fv_draw_line(drawing, x0 + a * (x1 - x0), y0 + a * (y1 - y0), x0 + b * (x1 - x0), y0 + b * (y1 - y0), width, color);
    }
}

void fv_draw_box(fv_drawing *drawing, double x, double y, double width, double height, unsigned color) {
    add(drawing, (fv_shape){ FV_SHAPE_BOX, x, y, x + width, y + height, .color = color });
}

void fv_draw_disc(fv_drawing *drawing, double x, double y, double radius, unsigned color) {
    add(drawing, (fv_shape){ FV_SHAPE_DISC, x, y, x, y, radius, .color = color });
}

void fv_draw_text(fv_drawing *drawing, double x, double y, double size, fv_anchor anchor, unsigned color, const char *format,
                  ...) {
    char    text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fv_shape shape = { FV_SHAPE_TEXT, x, y, x, y, size, anchor, color, strdup(text) };
    if (!shape.text) abort();
    add(drawing, shape);
}

/* ---------------------------------------------------------------- SVG */

static void escape(FILE *file, const char *text) {
    for (const char *c = text; *c; c++)
        if (*c == '&')
            fputs("&amp;", file);
        else if (*c == '<')
            fputs("&lt;", file);
        else if (*c == '>')
            fputs("&gt;", file);
        else if ((unsigned char)*c >= ' ')
            fputc(*c, file);
}

static void write_shape(FILE *file, const fv_shape *s) {
    static const char *const anchors[] = { "start", "middle", "end" };
    switch (s->kind) {
    case FV_SHAPE_LINE:
        fprintf(file,
                "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" stroke=\"#%06x\" stroke-width=\"%.2f\""
                " stroke-linecap=\"round\"/>\n",
                s->x, s->y, s->to_x, s->to_y, s->color, s->size);
        break;
    case FV_SHAPE_BOX:
        fprintf(file, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"#%06x\"/>\n", s->x, s->y, s->to_x - s->x,
                s->to_y - s->y, s->color);
        break;
    case FV_SHAPE_DISC:
        fprintf(file, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.2f\" fill=\"#%06x\"/>\n", s->x, s->y, s->size, s->color);
        break;
    case FV_SHAPE_TEXT:
        fprintf(file, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%.1f\" text-anchor=\"%s\" fill=\"#%06x\">", s->x, s->y, s->size,
                anchors[s->anchor], s->color);
        escape(file, s->text);
        fprintf(file, "</text>\n");
        break;
    }
}

static bool write_svg(const fv_drawing *d, const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) return false;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\""
            " font-family=\"sans-serif\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
            d->width, d->height, d->width, d->height);
    for (int i = 0; i < d->count; i++) write_shape(file, &d->shapes[i]);
    fprintf(file, "</svg>\n");
    bool good = !ferror(file);
    return fclose(file) == 0 && good;
}

bool fv_drawing_write(const fv_drawing *drawing, const char *path) {
    size_t length = strlen(path);
    if (length > 4 && !strcmp(path + length - 4, ".png")) return fv_drawing_write_png(drawing, path);
    return write_svg(drawing, path);
}
