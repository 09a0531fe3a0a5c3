/* Where runs keep things when nobody says where. */
#include "store/store_place.h"
#include "base/file.h"
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

static const char usual[] = ".fovea";

static char *in_cache(void) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME"), *temporary = getenv("TMPDIR");
    char       *folder, here[PATH_MAX] = "", hex[33];
    if (cache && *cache == '/')
        folder = fv_sprintf("%s/fovea", cache);
    else if (home && *home == '/' && !access(home, W_OK))
        folder = fv_sprintf("%s/.cache/fovea", home);
    else
        folder = fv_sprintf("%s/fovea-%d", temporary && *temporary == '/' ? temporary : "/tmp", (int)getuid());
    if (!getcwd(here, sizeof here)) here[0] = 0;
    fv_hash_format(fv_hash_bytes(here, strlen(here)), hex);
    char *place = fv_sprintf("%s/%.16s", folder, hex);
    free(folder);
    return place;
}

char *fv_store_place(const char *given, bool writing) {
    if (given) return fv_strdup(given);
    bool there = fv_path_is_folder(usual);
    if (!access(there ? usual : ".", W_OK | X_OK)) return fv_strdup(usual);
    char *place = in_cache();
    if (writing)
        fv_log("fovea: nothing can be written here, so what the run keeps goes to %s; --store FOLDER chooses another", place);
    else if (there && !fv_path_is_folder(place)) {
        free(place);
        place = fv_strdup(usual);
    }
    return place;
}
