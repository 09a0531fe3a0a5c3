/* Whether a Zarr array can be what its metadata claims. Chunks may be missing, so any size would be possible; but an image of
 * terabytes of which nearly nothing is there is damage, and reading it would come to no end. */
#include "base/file.h"
#include "formats/zarr_read.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { MOST_DEPTH = FV_MAX_DIMS + 2 };
static const int64_t believed = (int64_t)1 << 44, sparsest = 1 << 16; /* bytes; claimed for each that is there */

/* Adds the sizes of files below a folder until there are enough. */
static void add_files(const char *folder, int depth, int64_t enough, int64_t *found) {
    DIR *listed = depth ? opendir(folder) : NULL;
    for (struct dirent *entry; listed && *found < enough && (entry = readdir(listed));) {
        struct stat about;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        char *path = fv_sprintf("%s/%s", folder, entry->d_name);
        if (lstat(path, &about)) about.st_mode = 0;
        if (S_ISDIR(about.st_mode)) add_files(path, depth - 1, enough, found);
        if (S_ISREG(about.st_mode)) *found += about.st_size;
        free(path);
    }
    if (listed) closedir(listed);
}

fv_status fv_zarr_check_claim(const fv_image_type *type, const char *folder, fv_error *error) {
    int64_t bytes = fv_image_type_bytes(type), found = 0;
    if (bytes < believed || !fv_path_is_folder(folder)) return FV_OK;
    add_files(folder, MOST_DEPTH, bytes / sparsest, &found);
    if (found >= bytes / sparsest) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT, "%s: its \"shape\" claims %lld bytes, far more than chunks of %lld bytes hold", folder,
                   (long long)bytes, (long long)found);
}
