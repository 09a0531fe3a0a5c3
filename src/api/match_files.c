/* Which files a pattern means, for who describes files; see describe.h. */
#include "base/file_pattern.h"
#include "base/take.h"
#include "op/format.h"
#include <fovea/describe.h>
#include <stdlib.h>

/* Pointers, and behind them what they point to. */
static fv_status in_one_piece(const char *const *from, int count, char ***paths, fv_error *error) {
    size_t size = (size_t)count * sizeof(char *);
    for (int i = 0; i < count; i++) size += strlen(from[i]) + 1;
    FV_TRY(FV_TAKE(*paths, size, error));
    char *text = (char *)(*paths + count);
    for (int i = 0; i < count; i++) {
        (*paths)[i] = text;
        text = stpcpy(text, from[i]) + 1;
    }
    return FV_OK;
}

fv_status fv_match_files(const char *pattern, char ***paths, int *count, fv_error *error) {
    *paths = NULL;
    *count = 0;
    if (!fv__pattern_is(pattern)) {
        *count = 1;
        return in_one_piece(&pattern, 1, paths, error);
    }
    fv_matches   matches;
    const char **names = NULL;
    fv_status    status = fv__pattern_find(pattern, fv__format_is_folder, &matches, error);
    if (status == FV_OK) status = FV_TAKE(names, (size_t)(matches.count + 1) * sizeof *names, error);
    for (int64_t i = 0; i < matches.count && status == FV_OK; i++) names[i] = matches.match[i].path;
    if (matches.count && status == FV_OK) status = in_one_piece(names, (int)matches.count, paths, error);
    if (*paths) *count = (int)matches.count;
    free(names);
    fv__matches_release(&matches);
    if (status != FV_OK) return status;
    return *count ? FV_OK : fv_fail(error, FV_ERROR_INPUT, "no file matches \"%s\"", pattern);
}
