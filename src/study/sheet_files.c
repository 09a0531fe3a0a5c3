/* The files that studies leave. */
#include "study/sheet_files.h"
#include "base/file.h"
#include "base/plugin.h"
#include "story/html.h"
#include "story/page_frame.h"
#include <errno.h>
#include <stdlib.h>

static fv_status failed(const char *path, fv_error *error) {
    return fv_fail(error, FV_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
}

fv_status fv__sheet_open(const char *path, FILE **file, fv_error *error) {
    *file = fopen(path, "w");
    return *file ? FV_OK : failed(path, error);
}

fv_status fv__sheet_close(const char *path, FILE *file, fv_error *error) {
    bool good = !ferror(file);
    return fclose(file) == 0 && good ? FV_OK : failed(path, error);
}

fv_status fv__sheet_pictures(fv_drawing *drawing, const char *folder, const char *name, fv_error *error) {
    static const char *const endings[] = { "svg", "png" };
    char                    *plugin = fv__plugin_find("cairo");
    fv_status                status = FV_OK;
    for (int i = 0; i < (plugin ? 2 : 1) && status == FV_OK; i++) {
        char *path = fv__sprintf("%s/%s.%s", folder, name, endings[i]);
        status = fv__drawing_write(drawing, path, path, error);
        free(path);
    }
    free(plugin);
    fv__drawing_free(drawing);
    return status;
}

/* ---------------------------------------------------------------- pages */

enum { SHOWN = 200 };

static void put_cell(fv_bytes *out, const char *text, size_t length, bool heading) {
    char *cell = fv__sprintf("%.*s", (int)length, text), *end;
    bool  number = length && (strtod(cell, &end), !*end);
    fv__bytes_printf(out, heading ? "<th>" : number ? "<td class=\"n\">" : "<td>");
    fv__html_text(out, cell);
    fv__bytes_printf(out, heading ? "</th>" : "</td>");
    free(cell);
}

/* Our own tables: a cell in quotes holds none. */
static void put_line(fv_bytes *out, const char *line, size_t length, bool heading) {
    const char *end = line + length;
    fv__bytes_printf(out, "<tr>");
    for (const char *p = line; p <= end;) {
        bool        quoted = p < end && *p == '"';
        const char *stop = memchr(p + quoted, quoted ? '"' : ',', (size_t)(end - p - quoted));
        stop = stop ? stop : end;
        put_cell(out, p + quoted, (size_t)(stop - p - quoted), heading);
        p = stop + 1 + quoted;
    }
    fv__bytes_printf(out, "</tr>\n");
}

static void put_table(fv_bytes *out, const char *name, const char *text) {
    int lines = 0;
    fv__bytes_printf(out, "<h2>");
    fv__html_text(out, name);
    fv__bytes_printf(out, "</h2>\n<table>\n");
    for (const char *p = text; *p; lines++) {
        size_t length = strcspn(p, "\n");
        if (lines <= SHOWN) put_line(out, p, length, !lines);
        p += length + (p[length] == '\n');
    }
    fv__bytes_printf(out, "</table>\n");
    if (lines > SHOWN + 1) fv__bytes_printf(out, "<p>%d more rows are in the file.</p>\n", lines - SHOWN - 1);
}

static fv_status read_part(const char *folder, const char *name, const char *ending, fv_bytes *text, fv_error *error) {
    char *path = fv__sprintf("%s/%s.%s", folder, name, ending);
    fv__bytes_clear(text);
    fv_status status = fv__file_read_all(path, (size_t)1 << 30, text, error);
    free(path);
    return status;
}

fv_status fv__sheet_page(const char *folder, const char *name, const char *title, const char *const *pictures,
                         const char *const *tables, fv_error *error) {
    fv_bytes  page = { 0 }, text = { 0 };
    fv_status status = FV_OK;
    fv__page_begin(&page, title);
    fv__bytes_printf(&page, "<h1>");
    fv__html_text(&page, title);
    fv__bytes_printf(&page, "</h1>\n");
    for (; *pictures && status == FV_OK; pictures++) {
        status = read_part(folder, *pictures, "svg", &text, error);
        if (status == FV_OK) fv__bytes_append(&page, text.data, text.size);
    }
    for (; *tables && status == FV_OK; tables++) {
        status = read_part(folder, *tables, "csv", &text, error);
        if (status == FV_OK) put_table(&page, *tables, (char *)text.data);
    }
    fv__page_end(&page);
    char *path = fv__sprintf("%s/%s.html", folder, name);
    if (status == FV_OK) status = fv__file_write_all(path, page.data, page.size, false, error);
    free(path);
    fv__bytes_release(&page);
    fv__bytes_release(&text);
    return status;
}
