/* Headers of lines; see text_header.h. */
#include "formats/text_header.h"
#include "op/axes.h"
#include <math.h>
#include <stdlib.h>

int fv__text_numbers(const char *text, double *numbers, int most) {
    int count = 0;
    for (;;) {
        char *end;
        text += strspn(text, " \t\r,()");
        if (!*text) return count;
        double value = strtod(text, &end);
        if (end == text || (*end && !strchr(" \t\r,()", *end))) return -1;
        if (count < most) numbers[count++] = value;
        text = end;
    }
}

bool fv__type_by_name(const fv_type_name *list, int count, const char *name, fv_dtype *dtype) {
    size_t length = strlen(name);
    for (int i = 0; i < count; i++)
        for (const char *p = list[i].names; *p;) {
            size_t n = strcspn(p, "|");
            if (n == length && !strncmp(p, name, n)) {
                *dtype = list[i].dtype;
                return true;
            }
            p += n + (p[n] == '|');
        }
    return false;
}

/* ---------------------------------------------------------------- the world */

static const char *const names[] = { "x", "y", "z" };

void fv__world_set(fv_image_type *type, const double direction[3][3], const double origin[3], bool flip_x, bool flip_y) {
    const double sign[3] = { flip_x ? -1 : 1, flip_y ? -1 : 1, 1 };
    bool         straight = !flip_x && !flip_y;
    for (int i = 0; i < 3; i++) {
        int    d = fv__axis_find(type, names[i]);
        double length =
            sqrt(direction[i][0] * direction[i][0] + direction[i][1] * direction[i][1] + direction[i][2] * direction[i][2]);
        for (int k = 0; k < 3; k++)
            if (k != i && direction[i][k] != 0) straight = false;
        straight = straight && direction[i][i] >= 0;
        if (d < 0) continue;
        if (length > 0 && isfinite(length)) type->spacing[d] = length;
        if (isfinite(origin[i])) type->origin[d] = origin[i];
    }
    if (straight) return;
    type->has_affine = true;
    type->affine_code = 1;
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < 3; i++) type->affine[4 * k + i] = sign[k] * direction[i][k];
        type->affine[4 * k + 3] = sign[k] * origin[k];
    }
    for (int i = 0; i < 3; i++) { /* the matrix tells it */
        int d = fv__axis_find(type, names[i]);
        if (d >= 0) type->origin[d] = 0;
    }
}

int fv__world_get(const fv_image_type *type, double direction[3][3], double origin[3], bool flip_x, bool flip_y) {
    const double sign[3] = { flip_x ? -1 : 1, flip_y ? -1 : 1, 1 };
    int          axes = 0;
    for (int i = 0; i < 3; i++) {
        int d = fv__axis_find(type, names[i]);
        axes += d >= 0;
        for (int k = 0; k < 3; k++)
            direction[i][k] = type->has_affine ? sign[k] * type->affine[4 * k + i] : i != k ? 0 : d >= 0 ? type->spacing[d] : 1;
        origin[i] = type->has_affine ? sign[i] * type->affine[4 * i + 3] : d >= 0 ? type->origin[d] : 0;
    }
    return axes;
}
