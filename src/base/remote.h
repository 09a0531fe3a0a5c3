/* Files behind http://, https://, s3:// and hdfs:// addresses, by way of the plug-in fovea-remote.so.
 *
 * A remote file that is opened for reading gets a descriptor of a temporary local file as long as it; what is read is fetched
 * into that first, in blocks and once. So everything that reads through base/file.h reads remote files as well.
 *
 * s3://BUCKET/KEY goes to AWS_ENDPOINT_URL if that is set (the bucket in the path), otherwise to Amazon's in AWS_REGION; it is
 * signed if AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are set. Neither these nor the query of an address are in a message.
 * hdfs://HOST/PATH is asked for by WebHDFS at FOVEA_WEBHDFS, otherwise at port 9870 of the host, as HADOOP_USER_NAME or USER.
 * FOVEA_PATIENCE: seconds after which a server that sends nothing, or next to nothing, is asked again (30). */
#ifndef FV_REMOTE_H
#define FV_REMOTE_H

#include "base/file.h"

bool fv__is_remote(const char *path);

typedef struct fv_remote_facts {
    int64_t size;
    char    etag[256], modified[256];
} fv_remote_facts;

/* What the server says about a file; asked again after some seconds. *there is false, without an error, if it says 404. */
fv_status fv__remote_look(const char *path, fv_remote_facts *facts, bool *there, fv_error *error);
/* Size, and in place of the time what changes with the contents (ETag, Last-Modified). A folder is known by its metadata. */
fv_status fv__remote_identify(const char *path, fv_file_id *id, fv_error *error);
bool      fv__remote_exists(const char *path); /* also if the server cannot be asked: whoever opens it hears why */
fv_status fv__remote_open(const char *path, int *fd, fv_error *error);
/* Makes the bytes of a descriptor readable, if it is of a remote file. */
fv_status fv__remote_fetch(int fd, int64_t offset, size_t size, fv_error *error);

/* For libraries that open files by their name: a local one for the contents of a remote file, which must not be too large to be
 * fetched whole. It is good while the descriptor is open; the caller closes that and frees the name. */
fv_status fv__remote_copy(const char *path, char **name, int *fd, fv_error *error);
/* The error of a library that must have the file here. */
fv_status fv__remote_refuse(const char *path, const char *format, fv_error *error);

/* size bytes at an offset. *in_parts is false, without an error, if the server gives whole files only: nothing came then. */
fv_status fv__remote_get(const char *path, const fv_remote_facts *facts, int64_t offset, size_t size, void *data, bool *in_parts,
                         fv_error *error);
/* All of it into a local file. */
fv_status fv__remote_get_all(const char *path, const fv_remote_facts *facts, int fd, fv_error *error);

/* Files of servers that give no ranges, fetched once and kept while the session lives: another descriptor for one that is here,
 * false if it is not; and its bytes into a local file. */
bool      fv__remote_open_kept(const char *path, const fv_remote_facts *facts, int *fd);
fv_status fv__remote_keep(const char *path, const fv_remote_facts *facts, int fd, fv_error *error);
/* What a server of s3 answers to a query about a bucket, s3://BUCKET: text with a NUL at its end. Parameters of the query must be
 * in order of their names, with encoded values (which signatures want). */
fv_status fv__remote_ask_s3(const char *path, const char *query, fv_bytes *text, fv_error *error);
/* Letters, digits and the characters of `kept` as they are, others as %XX. */
void fv__remote_encode(fv_bytes *out, const char *text, const char *kept);

/* Whether folders behind the address can be listed, as those of s3 and hdfs can. */
bool fv__remote_lists(const char *path);
/* The names in such a folder, s3://BUCKET/a/b/, those of folders with a slash at their end. The caller frees them and the list.
 */
fv_status fv__remote_list(const char *folder, char ***names, size_t *count, fv_error *error);
/* Whether files behind the address lie on machines that are known by name, as those of hdfs do. */
bool fv__remote_has_places(const char *path);
/* Whether a copy of the file's beginning lies on the machine of this name. */
fv_status fv__remote_is_on(const char *path, const char *host, bool *there, fv_error *error);
/* Sends a local file, or a part of an open one. */
fv_status fv__remote_put_file(const char *file, const char *path, fv_error *error);
fv_status fv__remote_put_part(int fd, int64_t offset, int64_t size, const char *path, fv_error *error);
/* The files of a local folder below a remote address; those that describe it (zarr.json, .zarray, ...) last, and its own at the
 * very end: who finds these finds everything. */
fv_status fv__remote_upload(const char *folder, const char *path, fv_error *error);

#endif
