/* The files of a Zarr array: whether they can be what its metadata claims, and its identity. Chunks may be missing, so any size
 * would be possible; but an image of terabytes of which nearly nothing is there is damage, and reading it would never end. */
#include "base/file.h"
#include "formats/zarr_read.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_DEPTH = FV_MAX_DIMS + 2 };
static const int64_t believed = (int64_t)1 << 44, sparsest = 1 << 16; /* bytes; claimed for each that is there */

typedef struct {
    int64_t  enough, bytes;
    uint64_t sum; /* of all names, sizes and times, in any order */
} files;

static void add_file(files *f, const char *inside, const struct stat *about) {
    fv_hasher hasher;
    fv__hasher_init(&hasher);
    fv__hasher_text(&hasher, inside);
    fv__hasher_int(&hasher, about->st_size);
    fv__hasher_int(&hasher, about->st_mtim.tv_sec);
    fv__hasher_int(&hasher, about->st_mtim.tv_nsec);
    f->sum += fv__hasher_finish(&hasher).low;
    f->bytes += about->st_size;
}

/* Adds the files below an open folder, which it closes, until there are enough bytes. inside: its name below the array's own
 * folder; there may be very many files, so they are asked for by their names in the folder. */
static void add_files(files *f, int folder, fv_bytes *inside, int depth) {
    DIR   *listed = depth ? fdopendir(folder) : NULL;
    size_t length = inside->size;
    if (!listed) close(folder);
    for (struct dirent *entry; listed && f->bytes < f->enough && (entry = readdir(listed));) {
        struct stat about;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        bool known = entry->d_type == DT_DIR;
        if (!known && fstatat(folder, entry->d_name, &about, AT_SYMLINK_NOFOLLOW)) continue;
        inside->size = length;
        fv__bytes_printf(inside, "/%s", entry->d_name);
        if (known || S_ISDIR(about.st_mode)) {
            int below = openat(folder, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
            if (below >= 0) add_files(f, below, inside, depth - 1);
        } else if (S_ISREG(about.st_mode))
            add_file(f, (char *)inside->data, &about);
    }
    if (listed) closedir(listed);
}

static void add_folder(files *f, const char *folder) {
    fv_bytes inside = { 0 };
    int      fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) add_files(f, fd, &inside, MOST_DEPTH);
    fv__bytes_release(&inside);
}

void fv__zarr_identify(const char *folder, fv_hasher *hasher) {
    files f = { .enough = INT64_MAX };
    add_folder(&f, folder);
    fv__hasher_int(hasher, (int64_t)f.sum);
}

fv_status fv__zarr_check_claim(const fv_image_type *type, const char *folder, fv_error *error) {
    int64_t bytes = fv_image_type_bytes(type);
    files   f = { .enough = bytes / sparsest };
    if (bytes < believed || !fv__path_is_folder(folder)) return FV_OK;
    add_folder(&f, folder);
    if (f.bytes >= f.enough) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT, "%s: its \"shape\" claims %lld bytes, far more than chunks of %lld bytes hold", folder,
                   (long long)bytes, (long long)f.bytes);
}
