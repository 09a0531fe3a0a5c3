/* The names in a folder of s3, a page of a thousand after another: what keys have between the name of the folder and the next
 * slash (ListObjectsV2 of Amazon's interface). */
#include "base/remote_ask.h"
#include "base/take.h"
#include <stdio.h>
#include <stdlib.h>

bool fv__remote_lists(const char *path) { return !strncmp(path, "s3://", 5) || fv__is_hdfs(path); }

typedef struct {
    char **name;
    size_t count;
} name_list;

static void add_name(name_list *list, const char *text, size_t length) {
    if (!(list->count & (list->count - 1)))
        list->name = fv__realloc(list->name, FV_MAX(2 * list->count, (size_t)1) * sizeof *list->name);
    list->name[list->count++] = fv__sprintf("%.*s", (int)length, text);
}

/* ---------------------------------------------------------------- pages */

/* The text of the first element of this name; NULL: there is none. Keys come encoded, so that none has a bracket. */
static const char *element(const char *xml, const char *name, size_t *length) {
    char tag[40];
    snprintf(tag, sizeof tag, "<%s>", name);
    const char *start = strstr(xml, tag), *end = start ? strchr(start + strlen(tag), '<') : NULL;
    if (!end) return NULL;
    *length = (size_t)(end - start) - strlen(tag);
    return start + strlen(tag);
}

static int digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* %XX and + back to what they stand for; the caller frees. */
static char *decoded(const char *text, size_t length) {
    char *plain = fv__alloc(length + 1), *to = plain;
    for (size_t i = 0; i < length; i++) {
        bool coded = text[i] == '%' && i + 2 < length && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
        *to++ = coded ? (char)(16 * digit(text[i + 1]) + digit(text[i + 2])) : text[i] == '+' ? ' ' : text[i];
        if (coded) i += 2;
    }
    *to = 0;
    return plain;
}

/* Keys (element "Key" of "Contents") or folders ("Prefix" of "CommonPrefixes"), without the name of the folder that they are in.
 */
static void add_names(const char *xml, const char *around, const char *inner, size_t prefix, name_list *list) {
    char tag[40];
    snprintf(tag, sizeof tag, "<%s>", around);
    for (const char *p = xml; (p = strstr(p, tag)); p += strlen(tag)) {
        size_t      length;
        const char *text = element(p, inner, &length);
        char       *key = text ? decoded(text, length) : NULL;
        if (key && strlen(key) > prefix) add_name(list, key + prefix, strlen(key) - prefix); /* the folder itself may be a key */
        free(key);
    }
}

/* From the page that the token of the one before tells; false: it was the last. */
static bool next_page(const char *xml, fv_bytes *token) {
    size_t      length = 0, size = 0;
    const char *cut = element(xml, "IsTruncated", &length), *next = element(xml, "NextContinuationToken", &size);
    token->size = 0;
    if (!cut || strncmp(cut, "true", 4) || !next) return false;
    fv__bytes_append(token, next, size);
    fv__bytes_append(token, "", 1);
    return true;
}

static char *query_of(const char *prefix, const fv_bytes *token) {
    fv_bytes query = { 0 };
    if (token->size) {
        fv__bytes_printf(&query, "continuation-token=");
        fv__remote_encode(&query, (const char *)token->data, "-_.~");
        fv__bytes_printf(&query, "&");
    }
    fv__bytes_printf(&query, "delimiter=%%2F&encoding-type=url&list-type=2&prefix=");
    fv__remote_encode(&query, prefix, "-_.~");
    fv__bytes_append(&query, "", 1);
    return (char *)query.data;
}

fv_status fv__remote_list(const char *folder, char ***names, size_t *count, fv_error *error) {
    if (fv__is_hdfs(folder)) return fv__hdfs_list(folder, names, count, error);
    const char *bucket = folder + strlen("s3://"), *slash = bucket + strcspn(bucket, "/"), *prefix = slash + (*slash == '/');
    char       *place = fv__sprintf("%.*s", (int)(slash - folder), folder);
    name_list   list = { 0 };
    fv_bytes    xml = { 0 }, token = { 0 };
    fv_status   status;
    do {
        char *query = query_of(prefix, &token);
        status = fv__remote_ask_s3(place, query, &xml, error);
        free(query);
        if (status != FV_OK) break;
        add_names((char *)xml.data, "Contents", "Key", strlen(prefix), &list);
        add_names((char *)xml.data, "CommonPrefixes", "Prefix", strlen(prefix), &list);
        status = fv__memory_check(error);
    } while (status == FV_OK && next_page((char *)xml.data, &token));
    fv__bytes_release(&xml);
    fv__bytes_release(&token);
    free(place);
    *names = list.name;
    *count = list.count;
    return status;
}
