/* Where runs keep things when nobody says where. */
#include "store/store_place.h"
#include "base/remote.h"
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

static const char usual[] = ".fovea";

static char *in_cache(const char *what) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME"), *temporary = getenv("TMPDIR");
    char       *folder, hex[33];
    if (cache && *cache == '/')
        folder = fv__sprintf("%s/fovea", cache);
    else if (home && *home == '/' && !access(home, W_OK))
        folder = fv__sprintf("%s/.cache/fovea", home);
    else
        folder = fv__sprintf("%s/fovea-%d", temporary && *temporary == '/' ? temporary : "/tmp", (int)getuid());
    fv__hash_format(fv__hash_bytes(what, strlen(what)), hex);
    char *place = fv__sprintf("%s/%.16s", folder, hex);
    free(folder);
    return place;
}

char *fv__store_place(const char *given, bool writing) {
    char here[PATH_MAX] = "";
    if (given && fv__is_remote(given)) {
        char *address = fv__sprintf("%.*s", (int)fv__path_length(given), given), *place = in_cache(address);
        free(address);
        return place;
    }
    if (given) return fv__strdup(given);
    bool there = fv__path_is_folder(usual);
    if (!access(there ? usual : ".", W_OK | X_OK)) return fv__strdup(usual);
    if (!getcwd(here, sizeof here)) here[0] = 0;
    char *place = in_cache(here);
    if (writing)
        fv__log("fovea: nothing can be written here, so what the run keeps goes to %s; --store FOLDER chooses another", place);
    else if (there && !fv__path_is_folder(place)) {
        free(place);
        place = fv__strdup(usual);
    }
    return place;
}

fv_status fv__store_check_folder(const char *given, fv_error *error) {
    if (!given || !fv__is_remote(given)) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE,
                   "--store %s: only `fovea run` can keep what it has done behind an address; name a folder", given);
}

const char *fv__temporary_place(void) {
    const char *given = getenv("TMPDIR");
    if (given && *given == '/') return given;
    return access("/var/tmp", W_OK | X_OK) ? "/tmp" : "/var/tmp"; /* /tmp is often memory, of which there is not enough */
}
