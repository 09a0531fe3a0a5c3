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
        folder = fv__sprintf("%s/fovea", cache);
    else if (home && *home == '/' && !access(home, W_OK))
        folder = fv__sprintf("%s/.cache/fovea", home);
    else
        folder = fv__sprintf("%s/fovea-%d", temporary && *temporary == '/' ? temporary : "/tmp", (int)getuid());
    if (!getcwd(here, sizeof here)) here[0] = 0;
    fv__hash_format(fv__hash_bytes(here, strlen(here)), hex);
    char *place = fv__sprintf("%s/%.16s", folder, hex);
    free(folder);
    return place;
}

char *fv__store_place(const char *given, bool writing) {
    if (given) return fv__strdup(given);
    bool there = fv__path_is_folder(usual);
    if (!access(there ? usual : ".", W_OK | X_OK)) return fv__strdup(usual);
    char *place = in_cache();
    if (writing)
        fv__log("fovea: nothing can be written here, so what the run keeps goes to %s; --store FOLDER chooses another", place);
    else if (there && !fv__path_is_folder(place)) {
        free(place);
        place = fv__strdup(usual);
    }
    return place;
}

const char *fv__temporary_place(void) {
    const char *given = getenv("TMPDIR");
    if (given && *given == '/') return given;
    return access("/var/tmp", W_OK | X_OK) ? "/tmp" : "/var/tmp"; /* /tmp is often memory, of which there is not enough */
}
