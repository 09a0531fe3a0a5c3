/* Where the numbers of an axis stand and how they are written. */
#include "draw/chart.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHORT = 5 }; /* digits that a number may have before it is divided by a power of ten */

double fv__round_step(double range, int most) {
    if (!(range > 0) || most < 1) return 1;
    double power = pow(10, floor(log10(range / most)));
    for (int i = 0; i < 4; i++) {
        static const double multiples[] = { 1, 2, 5, 10 };
        if (range / (power * multiples[i]) <= most + 1e-9) return power * multiples[i];
    }
    return 10 * power;
}

static int linear_ticks(const fv_axis *axis, int most, double *ticks) {
    double step = fv__round_step(axis->high - axis->low, most), first = ceil(axis->low / step - 1e-9);
    int    count = 0;
    for (double k = first; k * step <= axis->high + 1e-9 * step && count <= most; k++) ticks[count++] = k == 0 ? 0 : k * step;
    return count;
}

/* Powers of ten, every second or third of them where there are many; 2 and 5 times them where there are few. */
static int log_ticks(const fv_axis *axis, int most, double *ticks) {
    double low = log10(axis->low), high = log10(axis->high), skip = ceil((high - low) / most);
    int    count = 0;
    if (high - low < 1) return linear_ticks(axis, most, ticks);
    if (skip < 1) skip = 1;
    bool between = 3 * (high - low) < most;
    for (double k = floor(low); k <= high + 1e-9 && count + 3 <= most + 3; k++) {
        static const double multiples[] = { 1, 2, 5 };
        for (int i = 0; i < (between ? 3 : 1) && count <= most; i++) {
            double value = multiples[i] * pow(10, k), at = log10(value);
            if (fmod(fabs(k), skip) == 0 && at >= low - 1e-9 && at <= high + 1e-9) ticks[count++] = value;
        }
    }
    return count;
}

int fv__axis_ticks(const fv_axis *axis, int most, double *ticks) {
    return axis->log ? log_ticks(axis, most, ticks) : linear_ticks(axis, most, ticks);
}

int fv__axis_power(const fv_axis *axis) {
    double largest = fmax(fabs(axis->low), fabs(axis->high));
    if (axis->names || axis->log || axis->ticks || !(largest > 0)) return 0;
    int digits = (int)floor(log10(largest));
    return digits >= SHORT || digits < -2 ? 3 * (int)floor(digits / 3.0) : 0;
}

/* A hyphen is too short for a minus; \1 begins and ends what stands raised. */
static char *with_minus(const char *text) { return fv__sprintf("%s%s", *text == '-' ? "−" : "", text + (*text == '-')); }

static char *power_of_ten(double value) {
    int  power = (int)floor(log10(value) + 1e-9), factor = (int)lround(value / pow(10, power));
    char many[16] = "";
    if (factor != 1) snprintf(many, sizeof many, "%d×", factor);
    return fv__sprintf("%s10\1%s%d\1", many, power < 0 ? "−" : "", abs(power));
}

char *fv__axis_number(const fv_axis *axis, double value, int power, double step) {
    char   text[48];
    double factor = pow(10, power);
    bool   decades = axis->log && axis->high >= 10 * axis->low;
    if (decades && (axis->high >= 1e5 || axis->low < 1e-2)) return power_of_ten(value);
    double digits = step > 0 ? ceil(-log10(step / factor) - 1e-6) : 0;
    if (decades || axis->ticks)
        snprintf(text, sizeof text, "%g", value);
    else
        snprintf(text, sizeof text, "%.*f", (int)fmin(fmax(digits, 0), 12), value / factor);
    return with_minus(text);
}

char *fv__axis_label(const fv_axis *axis, int power) {
    char factor[32] = "";
    if (power) snprintf(factor, sizeof factor, "10\1%s%d\1", power < 0 ? "−" : "", abs(power));
    bool unit = axis->unit && *axis->unit;
    if (!power && !unit) return fv__strdup(axis->label);
    return fv__sprintf("%s%s(%s%s%s)", axis->label, *axis->label ? " " : "", factor, power && unit ? " " : "",
                       unit ? axis->unit : "");
}
