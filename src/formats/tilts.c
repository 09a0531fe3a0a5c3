/* Tilt angles from .tlt, .rawtlt (a number a line) and .mdoc (TiltAngle = number) files. */
#include "formats/tilts.h"
#include "base/file.h"
#include <math.h>
#include <stdlib.h>

enum { MOST_BYTES = 64 << 20 };

void fv_tilts_add(fv_tilts *tilts, double angle) {
    if (!(tilts->count & (tilts->count - 1)))
        tilts->angle = fv_realloc(tilts->angle, (size_t)FV_MAX(2 * tilts->count, 1) * sizeof *tilts->angle);
    tilts->angle[tilts->count++] = angle;
}

void fv_tilts_release(fv_tilts *tilts) {
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

static bool read_text(const char *path, bool mdoc, fv_tilts *tilts) {
    fv_bytes text = { 0 };
    bool     good = fv_file_exists(path) && fv_file_read_all(path, MOST_BYTES, &text, NULL) == FV_OK;
    char    *save = NULL;
    for (char *line = good ? strtok_r((char *)text.data, "\n", &save) : NULL; line; line = strtok_r(NULL, "\n", &save)) {
        double angle;
        if (line_angle(line, mdoc, &angle) && tilts->count < FV_TILTS_MOST)
            fv_tilts_add(tilts, angle);
        else if (!mdoc && line[strspn(line, " \t\r")])
            good = false;
    }
    fv_bytes_release(&text);
    good = good && tilts->count > 0;
    if (good)
        tilts->source = fv_strdup(fv_path_name(path));
    else
        fv_tilts_release(tilts);
    return good;
}

void fv_tilts_find(const char *image_path, fv_tilts *tilts) {
    char stem[1024];
    fv_path_stem(image_path, stem, sizeof stem);
    char *base = fv_sprintf("%.*s%s", (int)(fv_path_name(image_path) - image_path), image_path, stem);
    char *paths[] = { fv_sprintf("%s.tlt", base), fv_sprintf("%s.rawtlt", base), fv_sprintf("%s.mdoc", image_path),
                      fv_sprintf("%s.mdoc", base) };
    bool  found = false;
    for (int i = 0; i < FV_COUNT(paths); i++) {
        found = found || read_text(paths[i], i >= 2, tilts);
        free(paths[i]);
    }
    free(base);
}
