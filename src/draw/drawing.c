/* A drawing as a list of shapes, and as SVG. */
#include "draw/drawing.h"
#include "base/file.h"
#include "base/plugin.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

fv_drawing *fv__drawing_new(double width, double height, double pixels) {
    fv_drawing *drawing = fv__calloc(sizeof *drawing);
    *drawing = (fv_drawing){ .width = width, .height = height, .pixels = pixels, .opacity = 1 };
    return drawing;
}

void fv__drawing_free(fv_drawing *drawing) {
    if (!drawing) return;
    for (int i = 0; i < drawing->count; i++) {
        free(drawing->shapes[i].numbers);
        free(drawing->shapes[i].text);
    }
    free(drawing->shapes);
    free(drawing);
}

static fv_shape *add(fv_drawing *drawing, fv_shape_kind kind, const double *numbers, int count, unsigned color) {
    if (drawing->count == drawing->room) {
        drawing->room = 2 * drawing->room + 64;
        drawing->shapes = fv__realloc(drawing->shapes, (size_t)drawing->room * sizeof *drawing->shapes);
    }
    fv_shape *shape = &drawing->shapes[drawing->count++];
    *shape = (fv_shape){ .kind = kind, .count = count, .color = color, .opacity = drawing->opacity };
    shape->numbers = fv__alloc((size_t)(count + 1) * sizeof *numbers);
    memcpy(shape->numbers, numbers, (size_t)count * sizeof *numbers);
    return shape;
}

void fv__draw_opacity(fv_drawing *drawing, double opacity) { drawing->opacity = opacity; }

void fv__draw_path(fv_drawing *drawing, const double *points, int count, double width, double dash, unsigned color) {
    fv_shape *shape = add(drawing, FV_SHAPE_PATH, points, 2 * count, color);
    shape->size = width;
    shape->dash = dash;
}

void fv__draw_line(fv_drawing *drawing, double x0, double y0, double x1, double y1, double width, unsigned color) {
    fv__draw_path(drawing, (double[]){ x0, y0, x1, y1 }, 2, width, 0, color);
}

void fv__draw_dashes(fv_drawing *drawing, double x0, double y0, double x1, double y1, double width, unsigned color) {
    fv__draw_path(drawing, (double[]){ x0, y0, x1, y1 }, 2, width, 4, color);
}

void fv__draw_boxes(fv_drawing *drawing, const double *boxes, int count, unsigned color) {
    add(drawing, FV_SHAPE_BOXES, boxes, 4 * count, color);
}

void fv__draw_box(fv_drawing *drawing, double x, double y, double width, double height, unsigned color) {
    fv__draw_boxes(drawing, (double[]){ x, y, width, height }, 1, color);
}

void fv__draw_disc(fv_drawing *drawing, double x, double y, double radius, unsigned color) {
    add(drawing, FV_SHAPE_DISC, (double[]){ x, y }, 2, color)->size = radius;
}

static fv_shape *add_text(fv_drawing *drawing, double x, double y, double size, fv_anchor anchor, unsigned color,
                          const char *text) {
    fv_shape *shape = add(drawing, FV_SHAPE_TEXT, (double[]){ x, y }, 2, color);
    shape->size = size;
    shape->anchor = anchor;
    shape->text = fv__strdup(text);
    shape->room = fv__text_width(text, size);
    return shape;
}

void fv__draw_text(fv_drawing *drawing, double x, double y, double size, fv_anchor anchor, unsigned color, const char *format,
                   ...) {
    fv_bytes text = { 0 };
    va_list  arguments;
    va_start(arguments, format);
    fv__bytes_vprintf(&text, format, arguments);
    va_end(arguments);
    add_text(drawing, x, y, size, anchor, color, text.data ? (char *)text.data : "");
    fv__bytes_release(&text);
}

void fv__draw_text_up(fv_drawing *drawing, double x, double y, double size, fv_anchor anchor, unsigned color, const char *text) {
    add_text(drawing, x, y, size, anchor, color, text)->up = true;
}

/* ---------------------------------------------------------------- SVG */

/* At most two digits behind the point, none that say nothing. */
static void put_number(fv_bytes *out, const char *before, double value) {
    char text[48];
    int  n = snprintf(text, sizeof text, "%.2f", value);
    while (n && text[n - 1] == '0') n--;
    if (n && text[n - 1] == '.') n--;
    fv__bytes_printf(out, "%s%.*s", before, n, text);
}

static void put_raised(fv_bytes *out, bool raise, double size) {
    put_number(out, "<tspan dy=\"", (raise ? -FV_TEXT_LIFT : FV_TEXT_LIFT) * size);
    put_number(out, "\" font-size=\"", (raise ? FV_TEXT_RAISED : 1) * size);
    fv__bytes_printf(out, "\">");
}

static void put_escaped(fv_bytes *out, const char *text, double size) {
    bool raised = false, changed = false;
    for (const char *c = text; *c; c++)
        if (*c == FV_TEXT_RAISE) {
            if (changed) fv__bytes_printf(out, "</tspan>");
            raised = !raised;
            changed = raised || c[1];
            if (changed) put_raised(out, raised, size);
        } else if (*c == '&')
            fv__bytes_printf(out, "&amp;");
        else if (*c == '<')
            fv__bytes_printf(out, "&lt;");
        else if (*c == '>')
            fv__bytes_printf(out, "&gt;");
        else if ((unsigned char)*c >= ' ')
            fv__bytes_append(out, c, 1);
    if (changed) fv__bytes_printf(out, "</tspan>");
}

static void put_path(fv_bytes *out, const fv_shape *s) {
    fv__bytes_printf(out, "<path d=\"");
    for (int i = 0; i + 1 < s->count; i += 2) {
        put_number(out, i ? "L" : "M", s->numbers[i]);
        put_number(out, " ", s->numbers[i + 1]);
    }
    if (s->size > 0) {
        fv__bytes_printf(out, "\" fill=\"none\" stroke=\"#%06x\" stroke-linejoin=\"round\"", s->color);
        put_number(out, " stroke-width=\"", s->size);
        if (s->dash > 0) put_number(out, "\" stroke-dasharray=\"", s->dash);
        fv__bytes_printf(out, "\"");
    } else
        fv__bytes_printf(out, "Z\" fill=\"#%06x\"", s->color);
}

static void put_boxes(fv_bytes *out, const fv_shape *s) {
    fv__bytes_printf(out, "<path d=\"");
    for (int i = 0; i + 3 < s->count; i += 4) {
        put_number(out, "M", s->numbers[i]);
        put_number(out, " ", s->numbers[i + 1]);
        put_number(out, "h", s->numbers[i + 2]);
        put_number(out, "v", s->numbers[i + 3]);
        put_number(out, "h", -s->numbers[i + 2]);
        fv__bytes_printf(out, "z");
    }
    fv__bytes_printf(out, "\" fill=\"#%06x\"", s->color);
}

static void put_words(fv_bytes *out, const fv_shape *s) {
    static const char *const anchors[] = { "start", "middle", "end" };
    if (s->up) {
        put_number(out, "<text transform=\"translate(", s->numbers[0]);
        put_number(out, " ", s->numbers[1]);
        fv__bytes_printf(out, ") rotate(-90)\"");
    } else {
        put_number(out, "<text x=\"", s->numbers[0]);
        put_number(out, "\" y=\"", s->numbers[1]);
        fv__bytes_printf(out, "\"");
    }
    put_number(out, " font-size=\"", s->size);
    fv__bytes_printf(out, "\" text-anchor=\"%s\" fill=\"#%06x\"", anchors[s->anchor], s->color);
}

static void put_shape(fv_bytes *out, const fv_shape *s) {
    if (s->kind == FV_SHAPE_PATH)
        put_path(out, s);
    else if (s->kind == FV_SHAPE_BOXES)
        put_boxes(out, s);
    else if (s->kind == FV_SHAPE_TEXT)
        put_words(out, s);
    else {
        put_number(out, "<circle cx=\"", s->numbers[0]);
        put_number(out, "\" cy=\"", s->numbers[1]);
        put_number(out, "\" r=\"", s->size);
        fv__bytes_printf(out, "\" fill=\"#%06x\"", s->color);
    }
    if (s->opacity < 1) {
        put_number(out, " opacity=\"", s->opacity);
        fv__bytes_printf(out, "\"");
    }
    if (s->kind == FV_SHAPE_TEXT) {
        fv__bytes_printf(out, ">");
        put_escaped(out, s->text, s->size);
        fv__bytes_printf(out, "</text>\n");
    } else
        fv__bytes_printf(out, "/>\n");
}

void fv__drawing_svg(const fv_drawing *d, fv_bytes *out) {
    put_number(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", d->width);
    put_number(out, "pt\" height=\"", d->height);
    put_number(out, "pt\" viewBox=\"0 0 ", d->width);
    put_number(out, " ", d->height);
    fv__bytes_printf(out, "\" font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\">\n"
                          "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n");
    for (int i = 0; i < d->count; i++) put_shape(out, &d->shapes[i]);
    fv__bytes_printf(out, "</svg>\n");
}

static fv_status write_svg(const fv_drawing *d, const char *path, fv_error *error) {
    fv_bytes out = { 0 };
    fv__drawing_svg(d, &out);
    fv_status status = fv__file_write_all(path, out.data, out.size, false, error);
    fv__bytes_release(&out);
    return status;
}

/* ---------------------------------------------------------------- files */

static fv_status load_cairo(const char *name, const fv_cairo_plugin **plugin, fv_error *error) {
    bool        pdf = fv__path_has_extension(name, "pdf");
    const void *found;
    FV_TRY(
        fv__plugin_load("cairo", FV_CAIRO_SYMBOL, pdf ? "a picture as PDF" : "a picture as PNG", "libcairo2-dev", &found, error));
    *plugin = found;
    return FV_OK;
}

fv_status fv__drawing_ready(const char *name, fv_error *error) {
    const fv_cairo_plugin *plugin;
    return fv__path_has_extension(name, "svg") ? FV_OK : load_cairo(name, &plugin, error);
}

fv_status fv__drawing_write(const fv_drawing *drawing, const char *path, const char *name, fv_error *error) {
    const fv_cairo_plugin *plugin;
    char                   message[FV_CAIRO_MESSAGE];
    if (fv__path_has_extension(name, "svg")) return write_svg(drawing, path, error);
    FV_TRY(load_cairo(name, &plugin, error));
    if (plugin->write(drawing, path, fv__path_has_extension(name, "pdf"), message)) return FV_OK;
    return fv_fail(error, FV_ERROR_IO, "%s cannot be written: %s", path, message);
}
