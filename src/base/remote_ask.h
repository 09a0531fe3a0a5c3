/* What the files that speak with servers share: remote.c asks, remote_hdfs.c knows WebHDFS. */
#ifndef FV_REMOTE_ASK_H
#define FV_REMOTE_ASK_H

#include "base/remote.h"
#include "base/remote_plugin.h"

/* Asks until there is an answer that more asking would not change, or too often. query: of s3 and hdfs; NULL: none. */
fv_status fv__remote_ask(const char *path, const char *query, fv_remote_call *call, fv_error *error);
/* The same for an answer that is text, with a NUL at its end. Whether the server refused is in the call. */
fv_status fv__remote_ask_text(const char *path, const char *query, fv_remote_call *call, fv_bytes *text, fv_error *error);
bool      fv__remote_succeeded(const fv_remote_call *call);
/* What an answer other than success means. */
fv_status fv__remote_refused(const char *path, const fv_remote_call *call, fv_error *error);
/* A variable of the environment that is not empty, or the other one, or a default. */
const char *fv__remote_setting(const char *name, const char *other, const char *otherwise);

/* ---- remote_hdfs.c: files behind hdfs:// ---- */
bool fv__is_hdfs(const char *path);
/* Where WebHDFS has the file, with the query of a request. */
void fv__hdfs_url(fv_bytes *url, const char *path, const char *query);
/* Whom the requests name. */
const char *fv__hdfs_user(void);
fv_status   fv__hdfs_look(const char *path, fv_remote_facts *facts, bool *there, fv_error *error);
/* Sends what call has as its body: it has the name when it is complete. */
fv_status fv__hdfs_put(const char *path, const fv_remote_call *call, fv_error *error);
fv_status fv__hdfs_list(const char *folder, char ***names, size_t *count, fv_error *error);

#endif
