/* Files: whole reads and writes with clear errors, atomic replacement, and the I/O gate.
 *
 * Every blocking call here passes the I/O gate: an engine may install hooks so that a worker that waits for the disk lends
 * its core to another one.
 */
#ifndef FV_FILE_H
#define FV_FILE_H

#include "base/base.h"
#include <pthread.h>
#include <sys/types.h>

typedef struct fv_file_id { /* identity of an input */
    int64_t size;
    int64_t mtime_ns;
} fv_file_id;

fv_status fv__file_identify(const char *path, fv_file_id *id, fv_error *error);
bool      fv__file_exists(const char *path); /* file or folder */
bool      fv__path_is_folder(const char *path);

fv_status fv__file_open_read(const char *path, int *fd, fv_error *error);
/* Creates or truncates. */
fv_status fv__file_open_write(const char *path, int *fd, fv_error *error);
/* For reading and writing; created if missing, its contents kept otherwise. */
fv_status fv__file_open_update(const char *path, int *fd, fv_error *error);
/* A file in TMPDIR that is gone when it is closed, for reading and writing. */
fv_status   fv__file_open_nameless(int64_t size, int *fd, fv_error *error);
const char *fv__file_scratch(void); /* the folder of such files */
/* A name for such a file, for libraries that want one; the caller unlinks and frees it. */
fv_status fv__file_name_nameless(int fd, char **name, fv_error *error);
/* Cuts the file or lengthens it with zeros. */
fv_status fv__file_resize(int fd, int64_t size, const char *path, fv_error *error);
/* Reads exactly size bytes at offset; a short file is FV_ERROR_INPUT "ends early". path is for the message. */
fv_status fv__file_read_at(int fd, void *data, size_t size, int64_t offset, const char *path, fv_error *error);
fv_status fv__file_write_at(int fd, const void *data, size_t size, int64_t offset, const char *path, fv_error *error);
fv_status fv__file_sync(int fd, const char *path, fv_error *error);
/* The disk starts writing what is in the file, so that a later sync has less to wait for. */
void fv__file_start_sync(int fd);
void fv__file_start_sync_part(int fd, int64_t offset, int64_t size); /* size 0: to the end */
/* From now on large writes of this thread go past the page cache where they can: for files that are made durable at once and that
 * nobody reads soon. It saves a copy, which costs more than the disk itself on some machines. */
void      fv__file_past_cache(bool on);
fv_status fv__file_close(int fd, const char *path, fv_error *error);
/* Whole small file; appends a NUL that is not counted. */
fv_status fv__file_read_all(const char *path, size_t limit, fv_bytes *bytes, fv_error *error);
/* Writes beside path and renames; synced when durable. */
fv_status fv__file_write_all(const char *path, const void *data, size_t size, bool durable, fv_error *error);
fv_status fv__rename(const char *from, const char *to, fv_error *error);
/* Puts a finished file or folder under its final name; a folder already there is swapped out and removed. The name is durable
 * once the folder that holds it is synced. */
fv_status fv__path_replace(const char *temporary, const char *path, fv_error *error);
fv_status fv__path_remove(const char *path, fv_error *error);       /* a file or a whole folder; missing is fine */
fv_status fv__path_make_folders(const char *path, fv_error *error); /* like mkdir -p */
fv_status fv__path_sync_folder(const char *path, fv_error *error);  /* fsync of the folder that holds path */
/* Makes the contents of many files and folders durable, several at a time. */
fv_status fv__paths_sync(char *const *paths, size_t count, fv_error *error);
/* The same where paths from `from` on, before `until`, may be missing: others may take them away meanwhile. */
fv_status fv__paths_sync_some(char *const *paths, size_t count, size_t from, size_t until, fv_error *error);

/* Pieces of paths; results in caller's buffers, always NUL-terminated. */
size_t      fv__path_length(const char *path); /* without slashes at its end and without the query of an http address */
const char *fv__path_name(const char *path);   /* after the last '/' of those; a query follows */
/* What hidden files that belong to a file of this name are named after, so that they may have a longer ending: the name
 * itself, or of a long one the start and a hash. The caller frees. */
char *fv__path_short_name(const char *name);
char *fv__path_bare_name(const char *path);                     /* the last name without slashes and query; the caller frees */
void  fv__path_stem(const char *path, char *stem, size_t size); /* name without extension; ".nii.gz" counts as one */
bool  fv__path_has_extension(const char *path, const char *extension); /* "nii.gz", case-insensitive */
/* Paths in a folder and beside a file, with the query of its address. The caller frees. */
char *fv__path_inside(const char *folder, const char *name);
char *fv__path_beside(const char *path, const char *name); /* the name alone if it starts with '/' */

/* I/O gate. A thread that has passed it already may do so again, which changes nothing. */
void fv__io_hooks(void (*enter)(void), void (*leave)(void));
void fv__io_enter(void);
void fv__io_leave(void);
/* For a mutex that somebody may hold around such a call: who waits for it lends its turn, since who holds it may want one. */
void fv__io_lock(pthread_mutex_t *mutex);

/* Fault injection for the crash tests: FOVEA_FAULT="NAME:N[:kill|error|stop|eatMIB]" makes the N-th passing of the point NAME
 * end the process at once (as SIGKILL would), fail, stop (as SIGSTOP would) or use that much memory for some seconds. Costs one
 * branch otherwise. */
fv_status fv__fault_point(const char *name, fv_error *error);

#endif
