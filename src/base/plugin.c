/* Finding and loading of plug-ins. */
#include "base/plugin.h"
#include "base/file.h"
#include <dlfcn.h>
#include <stdlib.h>

/* Folder of the program or library that this code is in. */
static char *own_folder(void) {
    Dl_info info;
    char   *real = dladdr((void *)(uintptr_t)fv__plugin_find, &info) && info.dli_fname ? realpath(info.dli_fname, NULL) : NULL;
    if (!real) real = realpath("/proc/self/exe", NULL);
    char *slash = real ? strrchr(real, '/') : NULL;
    if (slash) *slash = 0;
    return real ? real : fv__strdup(".");
}

static char *in_folder(const char *folder, const char *below, const char *file) {
    char *path = fv__sprintf("%s%s/%s", folder, below, file);
    if (fv__file_exists(path)) return path;
    free(path);
    return NULL;
}

static char *search(const char *const *below, int nbelow, const char *file) {
    const char *given = getenv("FOVEA_PLUGINS");
    if (given) return in_folder(given, "", file);
    char *own = own_folder(), *found = NULL;
    for (int i = 0; i < nbelow && !found; i++) found = in_folder(own, below[i], file);
    free(own);
    return found ? found : in_folder(FV_PLUGIN_FOLDER, "", file);
}

char *fv__plugin_find(const char *name) {
    static const char *const below[] = { "", "/..", "/fovea", "/../lib/fovea" };
    char                    *file = fv__sprintf("fovea-%s.so", name), *found = search(below, FV_COUNT(below), file);
    free(file);
    return found;
}

char *fv__library_find(const char *file) {
    static const char *const below[] = { "/libraries", "/../libraries", "/fovea", "/../lib/fovea" };
    return search(below, FV_COUNT(below), file);
}

fv_status fv__plugin_load(const char *name, const char *symbol, const char *needed_for, const char *packages, const void **result,
                          fv_error *error) {
    char *path = fv__plugin_find(name);
    if (!path)
        return fv_fail(error, FV_ERROR_USAGE,
                       "%s needs the plug-in fovea-%s.so, which is not there; on Debian: apt-get install %s, "
                       "then build again",
                       needed_for, name, packages);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const void *(*get)(void) = NULL;
    if (library) *(void **)(&get) = dlsym(library, symbol);
    fv_status status = FV_OK;
    if (get)
        *result = get();
    else
        status = fv_fail(error, FV_ERROR_MISSING, "cannot load %s: %s; on Debian: apt-get install %s", path, dlerror(), packages);
    free(path);
    return status;
}
