/* Numbers as text, fast and independent of the locale. */
#ifndef FV_NUMBER_H
#define FV_NUMBER_H

#include <stdint.h>

enum { FV_NUMBER_SIZE = 32 };

/* The shortest decimal text that reads back as the same value: 0.1, -3, 12.5, 1e+300, nan, inf. Gives its length. */
int fv__real_format(double value, char text[FV_NUMBER_SIZE]);
int fv__integer_format(int64_t value, char text[FV_NUMBER_SIZE]);
int fv__natural_format(uint64_t value, char text[FV_NUMBER_SIZE]);

#endif
