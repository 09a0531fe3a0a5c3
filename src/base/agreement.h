/* Sentences in which a number and its noun agree: "%d bytes are too few" is "1 byte is too few" for one. */
#ifndef FV_AGREEMENT_H
#define FV_AGREEMENT_H

#include <stdarg.h>
#include <stddef.h>

/* As vsnprintf. Only words of the format change, never those of what is filled in. */
int fv__vsnprintf(char *text, size_t size, const char *format, va_list arguments) __attribute__((format(printf, 3, 0)));

#endif
