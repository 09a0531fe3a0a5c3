/* Which files a pattern means, for who describes files; see describe.h. */
#include "base/file_pattern.h"
#include "op/format.h"
#include <fovea/describe.h>
#include <stdlib.h>

/* Pointers, and behind them what they point to. */
static char **in_one_piece(const char *const *paths, int count) {
    size_t size = (size_t)count * sizeof(char *);
    for (int i = 0; i < count; i++) size += strlen(paths[i]) + 1;
    char **out = fv__alloc(size), *text = (char *)(out + count);
    for (int i = 0; i < count; i++) {
        out[i] = text;
        text = stpcpy(text, paths[i]) + 1;
    }
    return out;
}

fv_status fv_match_files(const char *pattern, char ***paths, int *count, fv_error *error) {
    *paths = NULL;
    *count = 0;
    if (!fv__pattern_is(pattern)) {
        *paths = in_one_piece(&pattern, *count = 1);
        return FV_OK;
    }
    fv_matches matches;
    fv__pattern_find(pattern, fv__format_is_folder, &matches);
    const char **names = fv__alloc((size_t)(matches.count + 1) * sizeof *names);
    for (int64_t i = 0; i < matches.count; i++) names[i] = matches.match[i].path;
    if (matches.count) *paths = in_one_piece(names, *count = (int)matches.count);
    free(names);
    fv__matches_release(&matches);
    return *count ? FV_OK : fv_fail(error, FV_ERROR_INPUT, "no file matches \"%s\"", pattern);
}
