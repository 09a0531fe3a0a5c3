/* --within TIME and --within-error PART. */
#include "within.h"
#include "cli.h"
#include <stdlib.h>
#include <string.h>

/* A number above 0 with one of some units; false: it is none. */
static bool measured(const char *text, const char *const *units, const double *factors, double *value) {
    char *end;
    *value = strtod(text, &end);
    while (*end == ' ') end++;
    int u = 0;
    while (units[u] && strcmp(units[u], end)) u++;
    if (end == text || !units[u]) return false;
    *value *= factors[u];
    return *value > 0 && *value < 1e12;
}

bool fv_within(const char *command, const char *within, const char *within_error, double *seconds, double *part) {
    static const char *const times[] = { "s", "", "ms", "min", "h", NULL }, *const parts[] = { "%", "", NULL };
    static const double of_times[] = { 1, 1, 1e-3, 60, 3600 }, of_parts[] = { 0.01, 1 };
    if (within && within_error)
        fv_complain(command, "give --within or --within-error, not both");
    else if (within && !measured(within, times, of_times, seconds))
        fv_complain(command, "--within %s: expected a time above 0, such as 30s, 2min or 500ms", within);
    else if (within_error && !measured(within_error, parts, of_parts, part))
        fv_complain(command, "--within-error %s: expected a part above 0, such as 1%% or 0.01", within_error);
    else if (within_error && *part >= 1 && !strchr(within_error, '%'))
        fv_complain(command, "--within-error %s: this is %g times the value itself; %s %% is written %s%% or %g", within_error,
                    *part, within_error, within_error, *part / 100);
    else
        return true;
    return false;
}
