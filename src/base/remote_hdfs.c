/* Files of HDFS by way of WebHDFS, which every NameNode offers: questions go to it, and bytes to and from the DataNodes that it
 * names (https://hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-hdfs/WebHDFS.html). */
#include "base/remote_ask.h"
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#define SCHEME "hdfs://"
#define PORT "9870" /* of a NameNode's pages; the port in an address is that of Hadoop's own protocol */

bool fv__is_hdfs(const char *path) { return !strncmp(path, SCHEME, strlen(SCHEME)); }

const char *fv__hdfs_user(void) { return fv__remote_setting("HADOOP_USER_NAME", "USER", NULL); }

void fv__hdfs_url(fv_bytes *url, const char *path, const char *query) {
    const char *host = path + strlen(SCHEME), *file = host + strcspn(host, "/"), *user = fv__hdfs_user();
    const char *given = fv__remote_setting("FOVEA_WEBHDFS", NULL, NULL);
    size_t      length = strcspn(host, ":/"), end = given ? strlen(given) : 0;
    while (end && given[end - 1] == '/') end--;
    if (given)
        fv__bytes_printf(url, "%.*s/webhdfs/v1", (int)end, given);
    else
        fv__bytes_printf(url, "http://%.*s:" PORT "/webhdfs/v1", (int)length, host);
    fv__remote_encode(url, *file ? file : "/", "/-_.~");
    fv__bytes_printf(url, "?%s", query);
    if (!user) return;
    fv__bytes_printf(url, "&user.name=");
    fv__remote_encode(url, user, "-_.~");
}

/* What is answered to a question about a file. *there is false, without an error, if there is none. */
static fv_status ask(const char *method, const char *path, const char *query, cJSON **answer, bool *there, fv_error *error) {
    fv_remote_call call = { .method = method };
    fv_bytes       text = { 0 };
    fv_status      status = fv__remote_ask_text(path, query, &call, &text, error);
    *there = status == FV_OK && fv__remote_succeeded(&call);
    *answer = *there ? cJSON_Parse((const char *)text.data) : NULL;
    fv__bytes_release(&text);
    if (status != FV_OK || *there || call.status == 404) return status;
    return fv__remote_refused(path, &call, error);
}

static fv_status not_understood(const char *path, fv_error *error) {
    return fv_fail(error, FV_ERROR_IO, "%s: what answers there is no WebHDFS", path);
}

static double number_in(const cJSON *object, const char *name) {
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(found) ? found->valuedouble : -1;
}

static const char *text_in(const cJSON *object, const char *name) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
    return text ? text : "";
}

fv_status fv__hdfs_look(const char *path, fv_remote_facts *facts, bool *there, fv_error *error) {
    cJSON *answer;
    FV_TRY(ask("GET", path, "op=GETFILESTATUS", &answer, there, error));
    if (!*there) return FV_OK;
    const cJSON *status = cJSON_GetObjectItemCaseSensitive(answer, "FileStatus");
    double       size = number_in(status, "length");
    bool         folder = !strcmp(text_in(status, "type"), "DIRECTORY");
    if (size >= 0 && !folder) {
        facts->size = (int64_t)size;
        snprintf(facts->modified, sizeof facts->modified, "%.0f of %.0f", number_in(status, "modificationTime"),
                 number_in(status, "fileId"));
    }
    cJSON_Delete(answer);
    *there = !folder;
    return size < 0 ? not_understood(path, error) : FV_OK;
}

/* ---------------------------------------------------------------- writing */

/* Next to the file and like no other: several workers may write the same. */
static char *passing_name(const char *path) {
    struct {
        double      now;
        long        pid;
        const void *place;
    } seed = { fv__now(), getpid(), &seed };
    char        host[64] = "";
    fv_hasher   hasher;
    const char *name = strrchr(path, '/') + 1;
    gethostname(host, sizeof host - 1);
    fv__hasher_init(&hasher);
    fv__hasher_add(&hasher, &seed, sizeof seed);
    fv__hasher_text(&hasher, host);
    return fv__sprintf("%.*s.%s.%016llx.part", (int)(name - path), path, name,
                       (unsigned long long)fv__hasher_finish(&hasher).low);
}

/* The DataNode takes the bytes. */
static fv_status send_body(const char *name, const fv_remote_call *body, fv_error *error) {
    cJSON         *answer;
    bool           there;
    fv_remote_call call = *body;
    FV_TRY(ask("PUT", name, "op=CREATE&overwrite=true&noredirect=true", &answer, &there, error));
    const char *where = text_in(answer, "Location");
    fv_status   status = *where ? fv__remote_ask(where, NULL, &call, error) : not_understood(name, error);
    if (status == FV_OK && !fv__remote_succeeded(&call)) status = fv__remote_refused(name, &call, error);
    cJSON_Delete(answer);
    return status;
}

static fv_status rename_to(const char *name, const char *path, fv_error *error) {
    const char *host = path + strlen(SCHEME);
    fv_bytes    query = { 0 };
    cJSON      *answer;
    bool        there;
    fv__bytes_printf(&query, "op=RENAME&renameoptions=OVERWRITE&destination=");
    fv__remote_encode(&query, host + strcspn(host, "/"), "-_.~");
    fv__bytes_append(&query, "", 1);
    fv_status status = ask("PUT", name, (const char *)query.data, &answer, &there, error);
    if (status == FV_OK && !there) status = fv_fail(error, FV_ERROR_IO, "%s has vanished while it was being written", path);
    cJSON_Delete(answer);
    fv__bytes_release(&query);
    return status;
}

fv_status fv__hdfs_put(const char *path, const fv_remote_call *call, fv_error *error) {
    const char *file = path + strlen(SCHEME) + strcspn(path + strlen(SCHEME), "/");
    cJSON      *answer;
    bool        there;
    if (strlen(file) < 2) return fv_fail(error, FV_ERROR_USAGE, "%s names no file: expected hdfs://HOST/PATH", path);
    char     *name = passing_name(path);
    fv_status status = send_body(name, call, error);
    if (status == FV_OK) status = rename_to(name, path, error);
    if (status != FV_OK && ask("DELETE", name, "op=DELETE", &answer, &there, NULL) == FV_OK) cJSON_Delete(answer);
    free(name);
    return status;
}

/* ---------------------------------------------------------------- folders */

fv_status fv__hdfs_list(const char *folder, char ***names, size_t *count, fv_error *error) {
    cJSON       *answer;
    bool         there;
    const cJSON *file;
    *names = NULL;
    *count = 0;
    FV_TRY(ask("GET", folder, "op=LISTSTATUS", &answer, &there, error));
    if (!there) return FV_OK;
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(answer, "FileStatuses"), "FileStatus");
    fv_status    status = cJSON_IsArray(list) ? FV_OK : not_understood(folder, error);
    *names = fv__calloc((size_t)FV_MAX(cJSON_GetArraySize(list), 1) * sizeof **names);
    cJSON_ArrayForEach(file, list) {
        const char *name = text_in(file, "pathSuffix");
        if (*name) (*names)[(*count)++] = fv__sprintf("%s%s", name, strcmp(text_in(file, "type"), "DIRECTORY") ? "" : "/");
    }
    cJSON_Delete(answer);
    return status;
}

/* ---------------------------------------------------------------- where blocks are */

bool fv__remote_has_places(const char *path) { return fv__is_hdfs(path); }

/* Names of one machine may have its domain or not. */
static bool same_machine(const char *a, const char *b) {
    size_t n = strcspn(a, "."), m = strcspn(b, ".");
    if (!strcasecmp(a, b)) return true;
    return n == m && !strncasecmp(a, b, n) && (!a[n] || !b[m]);
}

fv_status fv__remote_is_on(const char *path, const char *host, bool *there, fv_error *error) {
    cJSON       *answer;
    bool         exists;
    const cJSON *name;
    *there = false;
    FV_TRY(ask("GET", path, "op=GETFILEBLOCKLOCATIONS&offset=0&length=1", &answer, &exists, error));
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(answer, "BlockLocations");
    const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(all, "BlockLocation"), 0);
    cJSON_ArrayForEach(name, cJSON_GetObjectItemCaseSensitive(first, "hosts")) if (cJSON_IsString(name)) *there =
        *there || same_machine(name->valuestring, host);
    fv_status status = !exists || all ? FV_OK : not_understood(path, error);
    cJSON_Delete(answer);
    return status;
}
