/* The files of a Zarr array: whether they can be what its metadata claims, and its identity. Chunks may be missing, so any size
 * would be possible; but an image of terabytes of which nearly nothing is there is damage, and reading it would never end. */
#include "base/file.h"
#include "formats/zarr_read.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { MOST_DEPTH = FV_MAX_DIMS + 2 };
static const int64_t believed = (int64_t)1 << 44, sparsest = 1 << 16; /* bytes; claimed for each that is there */

typedef struct {
    size_t   root; /* length of the array's own path */
    int64_t  enough, bytes;
    uint64_t sum; /* of all names, sizes and times, in any order */
} files;

static void add_file(files *f, const char *path, const struct stat *about) {
    fv_hasher hasher;
    fv__hasher_init(&hasher);
    fv__hasher_text(&hasher, path + f->root);
    fv__hasher_int(&hasher, about->st_size);
    fv__hasher_int(&hasher, about->st_mtim.tv_sec);
    fv__hasher_int(&hasher, about->st_mtim.tv_nsec);
    f->sum += fv__hasher_finish(&hasher).low;
    f->bytes += about->st_size;
}

/* Adds the files below a folder until there are enough bytes. */
static void add_files(files *f, const char *folder, int depth) {
    DIR *listed = depth ? opendir(folder) : NULL;
    for (struct dirent *entry; listed && f->bytes < f->enough && (entry = readdir(listed));) {
        struct stat about;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        char *path = fv__sprintf("%s/%s", folder, entry->d_name);
        if (lstat(path, &about)) about.st_mode = 0;
        if (S_ISDIR(about.st_mode)) add_files(f, path, depth - 1);
        if (S_ISREG(about.st_mode)) add_file(f, path, &about);
        free(path);
    }
    if (listed) closedir(listed);
}

void fv__zarr_identify(const char *folder, fv_hasher *hasher) {
    files f = { .root = strlen(folder), .enough = INT64_MAX };
    if (fv__path_is_folder(folder)) add_files(&f, folder, MOST_DEPTH);
    fv__hasher_int(hasher, (int64_t)f.sum);
}

fv_status fv__zarr_check_claim(const fv_image_type *type, const char *folder, fv_error *error) {
    int64_t bytes = fv_image_type_bytes(type);
    files   f = { .root = strlen(folder), .enough = bytes / sparsest };
    if (bytes < believed || !fv__path_is_folder(folder)) return FV_OK;
    add_files(&f, folder, MOST_DEPTH);
    if (f.bytes >= f.enough) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT, "%s: its \"shape\" claims %lld bytes, far more than chunks of %lld bytes hold", folder,
                   (long long)bytes, (long long)f.bytes);
}
