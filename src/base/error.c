/* Errors as plain values. */
#include "base/agreement.h"
#include "base/base.h"
#include <stdio.h>

/* The query of an address may hold a signature. */
static void hide_queries(char *text) {
    for (char *at = text; (at = strstr(at, "://"));) {
        at += strcspn(at, " \t\n\"'?");
        size_t length = *at == '?' ? strcspn(at, " \t\n\"'") : 0;
        while (length > 1 && strchr(":;,.)", at[length - 1])) length--; /* of the sentence */
        if (length > 1) memmove(at, at + length, strlen(at + length) + 1);
    }
}

fv_status fv_fail(fv_error *error, fv_status code, const char *format, ...) {
    if (error) {
        error->code = code;
        error->chunk = -1;
        error->rank = -1;
        va_list arguments;
        va_start(arguments, format);
        fv__vsnprintf(error->message, sizeof error->message, format, arguments);
        va_end(arguments);
        hide_queries(error->message);
    }
    return code;
}

void fv__error_rename(fv_error *error, const char *from, const char *to) {
    char *at = error ? strstr(error->message, from) : NULL;
    if (!at || !*from) return;
    char        message[2 * sizeof error->message];
    const char *rest = at + strlen(from);
    if (*rest == '/') rest += strcspn(rest, ": "); /* a piece of it */
    snprintf(message, sizeof message, "%.*s%s%s", (int)(at - error->message), error->message, to, rest);
    fv_text_cut(message, error->message, sizeof error->message);
}

const char *fv_status_name(fv_status status) {
    switch (status) {
    case FV_OK: return "ok";
    case FV_ERROR_USAGE: return "usage";
    case FV_ERROR_INPUT: return "input";
    case FV_ERROR_IO: return "io";
    case FV_ERROR_FULL: return "full";
    case FV_ERROR_MEMORY: return "memory";
    case FV_ERROR_BUSY: return "busy";
    case FV_ERROR_CANCELLED: return "cancelled";
    case FV_ERROR_MISSING: return "missing";
    case FV_ERROR_INTERNAL: return "internal";
    case FV_ERROR_DEVICE: return "device";
    }
    return "unknown";
}
