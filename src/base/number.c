/* Numbers as text. Reals between 1e-5 and 2^53 take exact fixed-point arithmetic in 128 bits, after Steele and White, How to
 * print floating-point numbers accurately (1990), algorithm (FP)^2; the others go through printf. Written out here, because
 * printf takes most of the time of a large table. */
#include "base/number.h"
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int format_natural(uint64_t value, char *text) {
    char digits[20];
    int  n = 0;
    do digits[n++] = (char)('0' + value % 10);
    while (value /= 10);
    for (int i = 0; i < n; i++) text[i] = digits[n - 1 - i];
    return n;
}

int fv__integer_format(int64_t value, char text[FV_NUMBER_SIZE]) {
    int sign = value < 0;
    if (sign) text[0] = '-';
    int length = sign + format_natural(sign ? 0 - (uint64_t)value : (uint64_t)value, text + sign);
    text[length] = 0;
    return length;
}

int fv__natural_format(uint64_t value, char text[FV_NUMBER_SIZE]) {
    int length = format_natural(value, text);
    text[length] = 0;
    return length;
}

/* Digits of the fraction rest / 2^bits, as few as tell it from its neighbours, which are 2 * margin away. */
static int format_fraction(unsigned __int128 rest, unsigned __int128 margin, int bits, char *text) {
    unsigned __int128 one = (unsigned __int128)1 << bits;
    for (int n = 0;; n++) {
        rest *= 10;
        margin *= 10;
        int digit = (int)(rest >> bits);
        rest &= one - 1;
        bool below = rest<margin, above = rest> one - margin;
        if (!below && !above) {
            text[n] = (char)('0' + digit);
            continue;
        }
        text[n] = (char)('0' + digit + (above && (!below || rest * 2 >= one)));
        return n + 1;
    }
}

/* 0 <= value < 2^53, and 0 or at least 1e-5. */
static int format_fixed(double value, char *text) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t mantissa = bits & (((uint64_t)1 << 52) - 1);
    int      places = 1075 - (int)(bits >> 52); /* value = mantissa / 2^places */
    bool     power = mantissa == 0;             /* the neighbour below is nearer */
    if (value == 0) return format_natural(0, text);
    mantissa |= (uint64_t)1 << 52;
    uint64_t          whole = places < 64 ? mantissa >> places : 0;
    unsigned __int128 rest = mantissa - (places < 64 ? whole << places : 0);
    int               length = format_natural(whole, text);
    if (!rest) return length;
    text[length++] = '.';
    return length + format_fraction(rest << 2, power ? 1 : 2, places + 2, text + length);
}

static int format_with_printf(double value, char *text) {
    char buffer[400];
    int  least = 1, most = 17; /* significant digits: 17 always do, and if n do, more do too */
    while (least < most) {
        int middle = (least + most) / 2;
        snprintf(buffer, sizeof buffer, "%.*g", middle, value);
        if (strtod(buffer, NULL) == value)
            most = middle;
        else
            least = middle + 1;
    }
    int length = snprintf(buffer, sizeof buffer, "%.*g", most, value);
    for (int i = 0; i <= length; i++) text[i] = buffer[i] == ',' ? '.' : buffer[i]; /* some locales write a comma */
    return length;
}

int fv__real_format(double value, char text[FV_NUMBER_SIZE]) {
    int sign = signbit(value) != 0;
    if (value != value) return (int)strlen(strcpy(text, "nan"));
    if (sign) *text = '-';
    double size = fabs(value);
    int    length = sign;
    if (size == 0 || (size >= 1e-5 && size < 0x1p53))
        length += format_fixed(size, text + sign);
    else if (size > 1.7976931348623157e308)
        length += (int)strlen(strcpy(text + sign, "inf"));
    else
        length += format_with_printf(size, text + sign);
    text[length] = 0;
    return length;
}
