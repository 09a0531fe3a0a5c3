/* cairo behind the one function of cairo_plugin.h. */
#include "draw/cairo_plugin.h"
#include <cairo-pdf.h>
#include <cairo.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void set_color(cairo_t *c, const fv_shape *s) {
    cairo_set_source_rgba(c, (s->color >> 16 & 255) / 255.0, (s->color >> 8 & 255) / 255.0, (s->color & 255) / 255.0, s->opacity);
}

static void draw_path(cairo_t *c, const fv_shape *s) {
    for (int i = 0; i + 1 < s->count; i += 2) cairo_line_to(c, s->numbers[i], s->numbers[i + 1]);
    if (s->size <= 0) {
        cairo_fill(c);
        return;
    }
    cairo_set_line_width(c, s->size);
    cairo_set_line_join(c, CAIRO_LINE_JOIN_ROUND);
    cairo_set_dash(c, &s->dash, s->dash > 0, 0);
    cairo_stroke(c);
}

/* Shows a text, or only measures it; what is raised is smaller. Gives its width. */
static double run_text(cairo_t *c, const fv_shape *s, bool show) {
    char   part[512];
    bool   raised = false;
    double width = 0;
    for (const char *p = s->text; *p; p += *p == FV_TEXT_RAISE) {
        size_t n = strcspn(p, (char[]){ FV_TEXT_RAISE, 0 });
        snprintf(part, sizeof part, "%.*s", (int)n, p);
        cairo_text_extents_t extents;
        cairo_set_font_size(c, s->size * (raised ? FV_TEXT_RAISED : 1));
        cairo_text_extents(c, part, &extents);
        cairo_move_to(c, width, raised ? -FV_TEXT_LIFT * s->size : 0);
        if (show) cairo_show_text(c, part);
        width += extents.x_advance;
        p += n;
        raised = raised != (*p == FV_TEXT_RAISE);
    }
    return width;
}

/* Letters of a font that is wider than the one the drawing was laid out for are narrowed, so that nothing runs into anything. */
static void draw_text(cairo_t *c, const fv_shape *s) {
    cairo_select_font_face(c, "Helvetica", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    double width = run_text(c, s, false), narrow = width > s->room && s->room > 0 ? s->room / width : 1;
    cairo_save(c);
    cairo_translate(c, s->numbers[0], s->numbers[1]);
    if (s->up) cairo_rotate(c, -M_PI / 2);
    cairo_scale(c, narrow, 1);
    cairo_translate(c, s->anchor == FV_TEXT_LEFT ? 0 : s->anchor == FV_TEXT_MIDDLE ? -width / 2 : -width, 0);
    run_text(c, s, true);
    cairo_restore(c);
}

static void draw_shape(cairo_t *c, const fv_shape *s) {
    set_color(c, s);
    cairo_new_path(c);
    switch (s->kind) {
    case FV_SHAPE_PATH: draw_path(c, s); break;
    case FV_SHAPE_BOXES:
        for (int i = 0; i + 3 < s->count; i += 4)
            cairo_rectangle(c, s->numbers[i], s->numbers[i + 1], s->numbers[i + 2], s->numbers[i + 3]);
        cairo_fill(c);
        break;
    case FV_SHAPE_DISC:
        cairo_arc(c, s->numbers[0], s->numbers[1], s->size, 0, 2 * M_PI);
        cairo_fill(c);
        break;
    case FV_SHAPE_TEXT: draw_text(c, s); break;
    }
}

static cairo_status_t draw(const fv_drawing *drawing, cairo_surface_t *surface) {
    cairo_t *c = cairo_create(surface);
    cairo_set_source_rgb(c, 1, 1, 1);
    cairo_paint(c);
    for (int i = 0; i < drawing->count; i++) draw_shape(c, &drawing->shapes[i]);
    cairo_status_t status = cairo_status(c);
    cairo_destroy(c);
    return status;
}

static cairo_status_t write_pdf(const fv_drawing *drawing, const char *path) {
    cairo_surface_t *surface = cairo_pdf_surface_create(path, drawing->width, drawing->height);
    /* The file depends on what it shows and not on the hour. */
    cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE, "2000-01-01T00:00:00Z");
    cairo_status_t status = cairo_surface_status(surface);
    if (status == CAIRO_STATUS_SUCCESS) status = draw(drawing, surface);
    cairo_surface_finish(surface);
    if (status == CAIRO_STATUS_SUCCESS) status = cairo_surface_status(surface);
    cairo_surface_destroy(surface);
    return status;
}

static cairo_status_t write_png(const fv_drawing *drawing, const char *path) {
    int              width = (int)ceil(drawing->width * drawing->pixels), height = (int)ceil(drawing->height * drawing->pixels);
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    cairo_status_t   status = cairo_surface_status(surface);
    cairo_surface_set_device_scale(surface, drawing->pixels, drawing->pixels);
    if (status == CAIRO_STATUS_SUCCESS) status = draw(drawing, surface);
    if (status == CAIRO_STATUS_SUCCESS) status = cairo_surface_write_to_png(surface, path);
    cairo_surface_destroy(surface);
    return status;
}

static bool write_file(const fv_drawing *drawing, const char *path, bool pdf, char message[FV_CAIRO_MESSAGE]) {
    cairo_status_t status = pdf ? write_pdf(drawing, path) : write_png(drawing, path);
    if (status == CAIRO_STATUS_SUCCESS) return true;
    snprintf(message, FV_CAIRO_MESSAGE, "%s", cairo_status_to_string(status));
    return false;
}

const fv_cairo_plugin *fv_cairo_plugin_get(void) {
    static const fv_cairo_plugin plugin = { .write = write_file };
    return &plugin;
}
