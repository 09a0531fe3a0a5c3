/* One file format as help text and as JSON, from its descriptor. */
#include "api/describe_ops.h"
#include "api/paragraph.h"

static void put_extensions(const char *extensions, fv_bytes *out) {
    for (const char *c = extensions; *c; c++) {
        if (c == extensions) fv__bytes_printf(out, ".");
        fv__bytes_printf(out, *c == ' ' ? " ." : "%c", *c);
    }
}

static const char *use(const fv_format *format) {
    return format->layout ? format->open ? "read and written" : "written" : "read";
}

void fv__format_text(const fv_format *format, fv_bytes *out) {
    enum { COLUMN = 12 };
    fv_bytes words = { 0 };
    fv__bytes_printf(out, "%s, an image format\n\n", format->name);
    fv__put_wrapped(out, format->brief, 0);
    fv__bytes_printf(out, "\n");
    put_extensions(format->extensions, &words);
    if (words.size) fv__put_entry(out, "files", COLUMN, (char *)words.data); /* slices have no extension of their own */
    fv__put_entry(out, "is", COLUMN, use(format));
    if (format->reads) fv__put_entry(out, "reading", COLUMN, format->reads);
    if (format->writes) fv__put_entry(out, "writing", COLUMN, format->writes);
    if (format->keeps) fv__put_entry(out, "keeps", COLUMN, format->keeps);
    if (format->compressions) {
        fv__bytes_clear(&words);
        fv__put_words(&words, format->compressions, '|');
        fv__bytes_printf(&words, " (the first is the default)");
        fv__put_entry(out, "compression", COLUMN, (char *)words.data);
    }
    fv__bytes_release(&words);
}

cJSON *fv__format_json(const fv_format *format) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "name", format->name);
    cJSON_AddStringToObject(json, "brief", format->brief);
    cJSON_AddItemToObject(json, "extensions", fv__words_json(format->extensions, ' '));
    cJSON_AddBoolToObject(json, "reads", format->open != NULL);
    cJSON_AddBoolToObject(json, "writes", format->layout != NULL);
    if (format->reads) cJSON_AddStringToObject(json, "reading", format->reads);
    if (format->writes) cJSON_AddStringToObject(json, "writing", format->writes);
    if (format->keeps) cJSON_AddStringToObject(json, "keeps", format->keeps);
    if (format->compressions) cJSON_AddItemToObject(json, "compressions", fv__words_json(format->compressions, '|'));
    return json;
}

void fv__table_format_text(const fv_table_format *format, fv_bytes *out) {
    enum { COLUMN = 12 };
    fv_bytes words = { 0 };
    fv__bytes_printf(out, "%s, a table format\n\n", format->name);
    fv__put_wrapped(out, format->brief, 0);
    fv__bytes_printf(out, "\n");
    put_extensions(format->extensions, &words);
    fv__put_entry(out, "files", COLUMN, (char *)words.data);
    fv__put_entry(out, "is", COLUMN, format->open ? format->write ? "read and written" : "read" : "written");
    fv__bytes_release(&words);
}

cJSON *fv__table_format_json(const fv_table_format *format) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "name", format->name);
    cJSON_AddStringToObject(json, "brief", format->brief);
    cJSON_AddItemToObject(json, "extensions", fv__words_json(format->extensions, ' '));
    cJSON_AddBoolToObject(json, "reads", format->open != NULL);
    cJSON_AddBoolToObject(json, "writes", format->write != NULL);
    return json;
}
