/* Tilt angles from .tlt, .rawtlt (a number a line) and .mdoc (TiltAngle = number) files. */
#include "formats/tilts.h"
#include "base/file.h"
#include <math.h>
#include <stdlib.h>

enum { MOST_BYTES = 64 << 20 };

void fv__tilts_add(fv_tilts *tilts, double angle) {
    if (!(tilts->count & (tilts->count - 1)))
        tilts->angle = fv__realloc(tilts->angle, (size_t)FV_MAX(2 * tilts->count, 1) * sizeof *tilts->angle);
    tilts->angle[tilts->count++] = angle;
}

void fv__tilts_release(fv_tilts *tilts) {
    free(tilts->angle);
    free(tilts->source);
    *tilts = (fv_tilts){ 0 };
}

/* The number of a line, or behind "TiltAngle =" in one. */
static bool line_angle(const char *line, bool mdoc, double *angle) {
    char *end;
    line += strspn(line, " \t");
    if (mdoc) {
        if (strncmp(line, "TiltAngle", 9)) return false;
        line += 9 + strspn(line + 9, " \t");
        if (*line++ != '=') return false;
    }
    *angle = strtod(line, &end);
    return end != line && !end[strspn(end, " \t\r")] && isfinite(*angle);
}

fv_status fv__tilts_read(const char *path, fv_tilts *tilts, fv_error *error) {
    fv_bytes  text = { 0 };
    bool      mdoc = fv__path_has_extension(path, "mdoc");
    fv_status status = fv__file_read_all(path, MOST_BYTES, &text, error);
    char     *next = status == FV_OK ? (char *)text.data : NULL;
    for (int number = 1; next && status == FV_OK; number++) {
        char  *line = strsep(&next, "\n");
        double angle;
        if (line_angle(line, mdoc, &angle) && tilts->count < FV_TILTS_MOST)
            fv__tilts_add(tilts, angle);
        else if (!mdoc && line[strspn(line, " \t\r")])
            status = fv_fail(error, FV_ERROR_INPUT, "%s: line %d is not an angle; one number a line is expected", path, number);
    }
    fv__bytes_release(&text);
    if (status == FV_OK && !tilts->count)
        status = fv_fail(error, FV_ERROR_INPUT, "%s holds no angles%s", path, mdoc ? " (no line TiltAngle = ...)" : "");
    if (status == FV_OK)
        tilts->source = fv__path_bare_name(path);
    else
        fv__tilts_release(tilts);
    return status;
}

void fv__tilts_find(const char *image_path, fv_tilts *tilts) {
    char  stem[1024];
    char *image = fv__path_bare_name(image_path);
    fv__path_stem(image_path, stem, sizeof stem);
    char *names[] = { fv__sprintf("%s.tlt", stem), fv__sprintf("%s.rawtlt", stem), fv__sprintf("%s.mdoc", image),
                      fv__sprintf("%s.mdoc", stem) };
    bool  found = false;
    for (int i = 0; i < FV_COUNT(names); i++) {
        char *path = fv__path_beside(image_path, names[i]);
        found = found || (fv__file_exists(path) && fv__tilts_read(path, tilts, NULL) == FV_OK);
        free(path);
        free(names[i]);
    }
    free(image);
}
