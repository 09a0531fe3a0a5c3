/* Outputs that are more than one file; see output_parts.h. */
#include "op/output_parts.h"
#include "base/file.h"
#include <stdlib.h>

enum { KEY_DIGITS = 16 };
static const char header_name[] = "header";

char *fv__parts_folder(const char *temporary) {
    const char *name = fv__path_name(temporary), *end = name + strlen(name) - FV_MIN(strlen(name), strlen(".fovea")), *key = end;
    while (key > name && key[-1] != '.') key--;
    bool known = *name == '.' && !strcmp(end, ".fovea") && end - key >= KEY_DIGITS;
    return known ? fv__sprintf("%.*s", (int)(key + KEY_DIGITS - name - 1), name + 1) : fv__sprintf("%s.parts", name);
}

char *fv__parts_place(const char *path, fv_hash key) {
    char        hex[33];
    const char *name = fv__path_name(path);
    char       *shown = fv__path_short_name(name);
    fv__hash_format(key, hex);
    char *place = fv__sprintf("%.*s%s.%.*s", (int)(name - path), path, shown, KEY_DIGITS, hex);
    free(shown);
    return place;
}

char *fv__parts_header(const char *temporary) { return fv__sprintf("%s/%s", temporary, header_name); }

fv_status fv__parts_begin(const char *temporary, fv_error *error) { return fv__path_make_folders(temporary, error); }

fv_status fv__parts_write_header(const char *temporary, const void *text, size_t size, fv_error *error) {
    char     *path = fv__parts_header(temporary);
    fv_status status = fv__file_write_all(path, text, size, true, error);
    free(path);
    return status;
}

fv_status fv__parts_check(const char *path, fv_error *error) {
    if (!strpbrk(fv__path_name(path), "%\r\n")) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE,
                   "%s: a name with a %% or a line break cannot stand in a header, where the first means "
                   "several files; choose another name",
                   path);
}

fv_status fv__parts_point_to(const char *temporary, const fv_bytes *front, const char *part, fv_error *error) {
    fv_bytes text = { 0 };
    char    *folder = fv__parts_folder(temporary);
    fv__bytes_append(&text, front->data, front->size);
    fv__bytes_printf(&text, "./%s/%s\n", folder, part); /* a name may begin with a blank, or with LIST, which has a meaning */
    fv_status status = fv__parts_write_header(temporary, text.data, text.size, error);
    fv__bytes_release(&text);
    free(folder);
    return status;
}

fv_status fv__parts_name(const char *temporary, const char *path, fv_error *error) {
    char     *folder = fv__parts_folder(temporary);
    char     *place = fv__sprintf("%.*s%s", (int)(fv__path_name(path) - path), path, folder), *header = fv__parts_header(place);
    fv_status status = fv__path_replace(temporary, place, error);
    if (status == FV_OK) status = fv__path_sync_folder(path, error);
    if (status == FV_OK) status = fv__path_replace(header, path, error);
    free(folder);
    free(place);
    free(header);
    return status;
}
