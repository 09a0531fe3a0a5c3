/* The files that studies leave. */
#include "study/sheet_files.h"
#include "base/plugin.h"
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
