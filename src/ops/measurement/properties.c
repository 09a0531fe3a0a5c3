/* Properties of labels: names, columns, values; see properties.h. */
#include "ops/measurement/properties.h"
#include "base/math.h"
#include "op/axes.h"
#include <stdio.h>

#define PI 3.14159265358979323846

/* ---------------------------------------------------------------- names */

typedef enum {
    VOXELS,
    VOLUME,
    CENTROID,
    POSITION,
    BBOX,
    EXTENT,
    EQUIVALENT_DIAMETER,
    EIGENVALUES,
    AXIS_LENGTHS,
    ECCENTRICITY,
    ANISOTROPY,
    ORIENTATION,
    EULER_NUMBER,
    PERIMETER,
    PERIMETER_CROFTON,
    SURFACE_AREA,
    MESH_AREA,
    MEAN,
    MIN,
    MAX,
    STD,
    SUM,
    WEIGHTED
} property;

enum {
    USUAL = 1,
    SECOND = 2,
    WINDOWS = 4,
    BORDER = 8,
    INTENSITY = 16,
    WEIGHTS = 32,
    PLANE = 64,
    SPACE = 128,
    SPATIAL = 256,
    MESH = 512,
    PLACE = 1024,
    SPREAD = 2048
};

static const struct {
    const char *name;
    int         needs;
} known[] = {
    [VOXELS] = { "voxels", USUAL },
    [VOLUME] = { "volume", USUAL },
    [CENTROID] = { "centroid", USUAL | PLACE },
    [POSITION] = { "position", PLACE },
    [BBOX] = { "bbox", USUAL | PLACE },
    [EXTENT] = { "extent", PLACE },
    [EQUIVALENT_DIAMETER] = { "equivalent_diameter", SPATIAL },
    [EIGENVALUES] = { "inertia_tensor_eigvals", SECOND | PLACE | SPATIAL },
    [AXIS_LENGTHS] = { "axis_lengths", SECOND | PLACE | PLANE | SPACE },
    [ECCENTRICITY] = { "eccentricity", SECOND | PLACE | PLANE },
    [ANISOTROPY] = { "anisotropy", SECOND | PLACE | PLANE | SPACE },
    [ORIENTATION] = { "orientation", SECOND | PLACE | PLANE | SPACE },
    [EULER_NUMBER] = { "euler_number", WINDOWS | PLANE | SPACE },
    [PERIMETER] = { "perimeter", BORDER | PLANE },
    [PERIMETER_CROFTON] = { "perimeter_crofton", WINDOWS | PLANE },
    [SURFACE_AREA] = { "surface_area", WINDOWS | SPACE },
    [MESH_AREA] = { "mesh_area", WINDOWS | MESH | SPACE },
    [MEAN] = { "mean", USUAL | INTENSITY },
    [MIN] = { "min", USUAL | INTENSITY | SPREAD },
    [MAX] = { "max", USUAL | INTENSITY | SPREAD },
    [STD] = { "std", USUAL | INTENSITY | SPREAD },
    [SUM] = { "sum", INTENSITY },
    [WEIGHTED] = { "weighted_centroid", INTENSITY | SPREAD | PLACE | WEIGHTS },
};

const char *fv__property_name(int which) { return known[which].name; }

static int needs_of(const fv__properties *p) {
    int all = 0;
    for (int i = 0; i < p->count; i++) all |= known[p->which[i]].needs;
    return all;
}

static bool square_pixels(const fv_image_type *labels) {
    int spatial[FV_MAX_DIMS];
    return fv_image_type_spatial(labels, spatial) != 2 || labels->spacing[spatial[0]] == labels->spacing[spatial[1]];
}

/* Why a property cannot be had of these images; NULL: it can. */
static const char *objection(int which, const fv_image_type *labels, int nintensities) {
    int spatial[FV_MAX_DIMS], n = fv_image_type_spatial(labels, spatial), needs = known[which].needs;
    if (needs & INTENSITY && !nintensities) return "it needs an intensity image, measure(labels, image)";
    if (needs & SPATIAL && (n < 1 || n > 3)) return "it needs one to three axes named z, y, x";
    if (!(needs & (PLANE | SPACE))) return NULL;
    if (n != labels->ndim) return "it needs labels without axes other than z, y, x; slice them apart";
    if (needs & PLANE && n == 2)
        return which == PERIMETER && !square_pixels(labels)
                   ? "it is defined for square pixels; perimeter_crofton takes any spacing"
                   : NULL;
    if (needs & SPACE && n == 3) return NULL;
    return needs & PLANE && needs & SPACE ? "it needs labels with two or three axes"
           : needs & PLANE                ? "it is one of planes; volumes have surface_area"
                                          : "it is one of volumes; planes have perimeter and perimeter_crofton";
}

/* What scikit-image calls them. */
static const struct {
    const char *there, *here;
} familiar[] = {
    { "area", "voxels, or volume in units" },
    { "area_bbox", "bbox" },
    { "area_convex", "convex_volume" },
    { "axis_major_length", "axis_lengths" },
    { "axis_minor_length", "axis_lengths" },
    { "bbox_area", "bbox" },
    { "centroid_weighted", "weighted_centroid" },
    { "convex_area", "convex_volume" },
    { "equivalent_diameter_area", "equivalent_diameter" },
    { "feret_diameter_max", "feret_max" },
    { "intensity_max", "max" },
    { "intensity_mean", "mean" },
    { "intensity_min", "min" },
    { "intensity_std", "std" },
    { "major_axis_length", "axis_lengths" },
    { "max_intensity", "max" },
    { "mean_intensity", "mean" },
    { "min_intensity", "min" },
    { "minor_axis_length", "axis_lengths" },
};

static fv_status unknown(const char *word, fv_error *error) {
    for (int i = 0; i < FV_COUNT(familiar); i++)
        if (!strcmp(word, familiar[i].there))
            return fv_fail(error, FV_ERROR_USAGE, "properties: there is no %s; it is called %s here", word, familiar[i].here);
    const char *names[FV_COUNT(known)];
    char        list[600] = "";
    for (int i = 0; i < FV_COUNT(known); i++) {
        names[i] = known[i].name;
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = fv_nearest_word(word, names, FV_COUNT(known));
    return fv_fail(error, FV_ERROR_USAGE, "properties: there is no %s%s%s%s; there are %s, " FV__FURTHER_PROPERTIES ", or all",
                   word, near ? " (did you mean " : "", near ? near : "", near ? "?)" : "", list);
}

static fv_status add_named(fv__properties *p, const char *word, const fv_image_type *labels, fv_error *error) {
    if (!strcmp(word, "label")) return FV_OK;
    for (int i = 0; i < FV_COUNT(known); i++) {
        if (strcmp(word, known[i].name)) continue;
        const char *why = objection(i, labels, p->nintensities);
        if (why) return fv_fail(error, FV_ERROR_USAGE, "properties: %s cannot be measured here: %s", word, why);
        for (int k = 0; k < p->count; k++)
            if (p->which[k] == i) return fv_fail(error, FV_ERROR_USAGE, "properties: %s is named twice", word);
        p->which[p->count++] = i;
        return FV_OK;
    }
    return unknown(word, error);
}

fv_status fv__properties_parse(fv__properties *p, const char *text, const fv_image_type *labels, const fv__views *views,
                               fv_error *error) {
    bool all = text && !strcmp(text, "all");
    *p = (fv__properties){ .nintensities = views->count };
    if (!text || !*text || all) {
        for (int i = 0; i < FV_COUNT(known); i++)
            if ((all || known[i].needs & USUAL) && !objection(i, labels, p->nintensities)) p->which[p->count++] = i;
        return FV_OK;
    }
    while (*(text += strspn(text, " ,\t\n"))) {
        char   word[40];
        size_t length = strcspn(text, " ,\t\n");
        snprintf(word, sizeof word, "%.*s", (int)FV_MIN(length, sizeof word), text);
        FV_TRY(add_named(p, word, labels, error));
        text += length;
    }
    return FV_OK;
}

fv__object_plan fv__properties_plan(const fv__properties *p, const fv_type *const *in, const fv__views *views) {
    fv_dtype intensity[FV__CHANNELS];
    int      n = 0, needs = needs_of(p);
    for (int i = 0; i < views->count && needs & INTENSITY; i++) intensity[n++] = in[views->view[i].input]->image.dtype;
    return fv__object_planned(&in[0]->image, intensity, n,
                              (fv__object_wishes){ .place = needs & PLACE,
                                                   .second = needs & SECOND,
                                                   .weighted = needs & WEIGHTS,
                                                   .windows = needs & WINDOWS,
                                                   .border = needs & BORDER,
                                                   .mesh = needs & MESH,
                                                   .spread = needs & SPREAD });
}

/* ---------------------------------------------------------------- columns */

static fv_status add_column(fv_table_type *table, fv_column_kind kind, fv_error *error, const char *format, ...) {
    va_list arguments;
    if (table->ncolumns == FV_MAX_COLUMNS)
        return fv_fail(error, FV_ERROR_USAGE, "properties: a table can have %d columns; choose fewer properties", FV_MAX_COLUMNS);
    fv_column *column = &table->column[table->ncolumns++];
    column->kind = kind;
    va_start(arguments, format);
    vsnprintf(column->name, sizeof column->name, format, arguments);
    va_end(arguments);
    return FV_OK;
}

static fv_status axis_columns(fv_table_type *table, fv_column_kind kind, const char *name, const fv_image_type *labels,
                              const char *suffix, fv_error *error) {
    for (int d = 0; d < labels->ndim; d++) FV_TRY(add_column(table, kind, error, "%s_%s%s", name, labels->axis[d], suffix));
    return FV_OK;
}

/* The first image's columns have the plain names, the others' end in _2, _3 ... */
static fv_status intensity_columns(int which, const fv__object_plan *plan, const fv_image_type *labels, const fv__views *views,
                                   fv_table_type *table, fv_error *error) {
    for (int i = 0; i < plan->nchannels; i++) {
        const char    *suffix = views->view[i].suffix;
        fv_column_kind kind = FV_COLUMN_REAL;
        if ((which == MIN || which == MAX) && fv__channel_integral(&plan->channel[i])) kind = FV_COLUMN_INTEGER;
        if (which == WEIGHTED)
            FV_TRY(axis_columns(table, kind, known[which].name, labels, suffix, error));
        else
            FV_TRY(add_column(table, kind, error, "%s%s", known[which].name, suffix));
    }
    return FV_OK;
}

static fv_status columns_of(int which, const fv__object_plan *plan, const fv_image_type *labels, const fv__views *views,
                            fv_table_type *table, fv_error *error) {
    const char *name = known[which].name;
    if (known[which].needs & INTENSITY) return intensity_columns(which, plan, labels, views, table, error);
    switch (which) {
    case VOXELS:
    case EULER_NUMBER: return add_column(table, FV_COLUMN_INTEGER, error, "%s", name);
    case CENTROID:
    case POSITION: return axis_columns(table, FV_COLUMN_REAL, name, labels, "", error);
    case BBOX:
        FV_TRY(axis_columns(table, FV_COLUMN_INTEGER, "bbox_min", labels, "", error));
        return axis_columns(table, FV_COLUMN_INTEGER, "bbox_max", labels, "", error);
    case EIGENVALUES:
        for (int i = 0; i < plan->nspatial; i++) FV_TRY(add_column(table, FV_COLUMN_REAL, error, "%s_%d", name, i));
        return FV_OK;
    case AXIS_LENGTHS:
        FV_TRY(add_column(table, FV_COLUMN_REAL, error, "axis_major_length"));
        if (plan->nspatial == 3) FV_TRY(add_column(table, FV_COLUMN_REAL, error, "axis_middle_length"));
        return add_column(table, FV_COLUMN_REAL, error, "axis_minor_length");
    case ORIENTATION:
        if (plan->nspatial == 3) return axis_columns(table, FV_COLUMN_REAL, name, labels, "", error);
        return add_column(table, FV_COLUMN_REAL, error, "%s", name);
    default: return add_column(table, FV_COLUMN_REAL, error, "%s", name);
    }
}

fv_status fv__property_columns(const fv__properties *p, int place, const fv_type *const *in, const fv__views *views,
                               fv_table_type *table, fv_error *error) {
    fv__object_plan plan = fv__properties_plan(p, in, views);
    return columns_of(p->which[place], &plan, &in[0]->image, views, table, error);
}

fv_status fv__properties_table(const fv__properties *p, const fv_type *const *in, const fv__views *views, fv_table_type *table,
                               fv_error *error) {
    fv__object_plan plan = fv__properties_plan(p, in, views);
    FV_TRY(add_column(table, FV_COLUMN_INTEGER, error, "label"));
    for (int k = 0; k < views->naxes; k++) FV_TRY(add_column(table, FV_COLUMN_INTEGER, error, "%s", views->axis[k]));
    for (int i = 0; i < p->count; i++) FV_TRY(columns_of(p->which[i], &plan, &in[0]->image, views, table, error));
    return FV_OK;
}

/* ---------------------------------------------------------------- second moments */

typedef struct {
    int    n;
    double tensor[3][3], value[3], vector[3][3];
} inertia; /* value: descending; vector[i] belongs to it */

/* Sum of (a - mean a)(b - mean b), from exact sums about the lowest corner: voxels * second - sum * sum is an integer. */
static double central(const fv__object *o, __int128 second, int a, int b) {
    __int128 n = o->voxels, la = o->low[a], lb = o->low[b];
    __int128 sa = o->sum[a] - n * la, sb = o->sum[b] - n * lb;
    __int128 about = second - lb * o->sum[a] - la * o->sum[b] + la * lb * n, all, product;
    if (__builtin_mul_overflow(n, about, &all) || __builtin_mul_overflow(sa, sb, &product))
        return (double)about - (double)sa / (double)n * (double)sb;
    return (double)(all - product) / (double)n;
}

/* Eigenvalues and eigenvectors by Jacobi's rotations: a fixed number of sweeps, more than a matrix of three needs. */
static void diagonalise(inertia *t) {
    double a[3][3];
    memcpy(a, t->tensor, sizeof a);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) t->vector[i][k] = i == k;
    for (int sweep = 0; sweep < 12; sweep++)
        for (int p = 0; p < t->n; p++)
            for (int q = p + 1; q < t->n; q++) {
                if (a[p][q] == 0) continue;
                double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
                double tangent = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
                double c = 1 / sqrt(tangent * tangent + 1), s = tangent * c;
                for (int k = 0; k < t->n; k++) {
                    double kp = a[k][p], kq = a[k][q];
                    a[k][p] = c * kp - s * kq;
                    a[k][q] = s * kp + c * kq;
                }
                for (int k = 0; k < t->n; k++) {
                    double pk = a[p][k], qk = a[q][k];
                    a[p][k] = c * pk - s * qk;
                    a[q][k] = s * pk + c * qk;
                    pk = t->vector[p][k], qk = t->vector[q][k];
                    t->vector[p][k] = c * pk - s * qk;
                    t->vector[q][k] = s * pk + c * qk;
                }
            }
    for (int i = 0; i < t->n; i++) t->value[i] = a[i][i] > 0 ? a[i][i] : 0;
    for (int i = 0; i < t->n; i++)
        for (int k = i + 1; k < t->n; k++)
            if (t->value[k] > t->value[i]) {
                double swap[3], value = t->value[i];
                t->value[i] = t->value[k];
                t->value[k] = value;
                memcpy(swap, t->vector[i], sizeof swap);
                memcpy(t->vector[i], t->vector[k], sizeof swap);
                memcpy(t->vector[k], swap, sizeof swap);
            }
}

/* As scikit-image: the diagonal holds the variances along all other axes, the rest the covariances with their sign turned; in
 * units of the spacing. */
static inertia inertia_of(const fv__object_plan *p, const fv_image_type *labels, const fv__object *o) {
    inertia t = { .n = p->nspatial };
    double  covariance[3][3], trace = 0;
    for (int i = 0, k = 0; i < t.n; i++)
        for (int j = i; j < t.n; j++, k++) {
            double scale = labels->spacing[p->spatial[i]] * labels->spacing[p->spatial[j]] / (double)o->voxels;
            covariance[i][j] = covariance[j][i] = central(o, o->second[k], p->spatial[i], p->spatial[j]) * scale;
        }
    for (int i = 0; i < t.n; i++) trace += covariance[i][i];
    for (int i = 0; i < t.n; i++)
        for (int j = 0; j < t.n; j++) t.tensor[i][j] = i == j ? trace - covariance[i][j] : -covariance[i][j];
    if (t.n == 1) t.tensor[0][0] = covariance[0][0]; /* of a line: the variance along it */
    diagonalise(&t);
    return t;
}

static double root(double x) { return sqrt(x > 0 ? x : 0); }

static int axis_lengths(const inertia *t, fv_cell *cells) {
    const double *e = t->value;
    if (t->n == 2) {
        cells[0].real = 4 * root(e[0]);
        cells[1].real = 4 * root(e[1]);
        return 2;
    }
    cells[0].real = root(10 * (e[0] + e[1] - e[2]));
    cells[1].real = root(10 * (e[0] - e[1] + e[2]));
    cells[2].real = root(10 * (-e[0] + e[1] + e[2]));
    return 3;
}

/* Variances along the longest and the shortest axis. */
static double anisotropy(const inertia *t) {
    const double *e = t->value;
    double        longest = t->n == 2 ? e[0] : e[0] + e[1] - e[2], shortest = t->n == 2 ? e[1] : -e[0] + e[1] + e[2];
    return longest > 0 ? 1 - (shortest > 0 ? shortest : 0) / longest : 0;
}

static int orientation(const inertia *t, fv_cell *cells) {
    if (t->n == 2) {
        double a = t->tensor[0][0], b = t->tensor[0][1], c = t->tensor[1][1];
        cells[0].real = a == c ? (b > 0 ? -PI / 4 : PI / 4) : 0.5 * fv__atan2(-2 * b, c - a);
        return 1;
    }
    const double *axis = t->vector[2]; /* least inertia: the longest axis */
    int           first = 0;
    while (first < 2 && fabs(axis[first]) < 1e-12) first++;
    for (int i = 0; i < 3; i++) cells[i].real = axis[first] < 0 ? -axis[i] : axis[i];
    return 3;
}

/* ---------------------------------------------------------------- values */

static double volume_of(const fv__object_plan *p, const fv_image_type *labels, const fv__object *o) {
    double voxel = 1;
    for (int i = 0; i < p->nspatial; i++) voxel *= labels->spacing[p->spatial[i]];
    return (double)o->voxels * voxel;
}

static double diameter_of(double volume, int n) {
    if (n == 1) return volume;
    return n == 2 ? sqrt(4 * volume / PI) : fv__pow(6 * volume / PI, 1. / 3);
}

static double extent_of(const fv__object_plan *p, const fv__object *o) {
    double box = 1;
    for (int d = 0; d < p->ndim; d++) box *= (double)(o->high[d] - o->low[d] + 1);
    return (double)o->voxels / box;
}

/* Where a place in voxels is in the world, along axis d. */
static double position_of(const fv_image_type *labels, const double *centroid, int d) {
    static const char *const names[] = { "x", "y", "z" };
    double                   at = 0;
    for (int row = 0; row < 3; row++) {
        if (!labels->has_affine || strcmp(labels->axis[d], names[row])) continue;
        for (int column = 0; column < 3; column++) {
            int axis = fv__axis_find(labels, names[column]);
            at += axis < 0 ? 0 : labels->affine[4 * row + column] * centroid[axis];
        }
        return at + labels->affine[4 * row + 3];
    }
    return centroid[d] * labels->spacing[d] + labels->origin[d];
}

static int along_axes(int which, const fv__object_plan *p, const fv_image_type *labels, const fv__object *o, fv_cell *cells) {
    double centroid[FV_MAX_DIMS];
    for (int d = 0; d < p->ndim; d++) centroid[d] = (double)o->sum[d] / (double)o->voxels;
    for (int d = 0; d < p->ndim; d++) {
        if (which == BBOX) {
            cells[d].integer = o->low[d];
            cells[p->ndim + d].integer = o->high[d] + 1;
        } else
            cells[d].real = which == CENTROID ? centroid[d] : position_of(labels, centroid, d);
    }
    return which == BBOX ? 2 * p->ndim : p->ndim;
}

static int intensities(int which, const fv__object_plan *p, fv__object *o, fv_cell *cells) {
    int made = 0;
    for (int i = 0; i < p->nchannels; i++) {
        fv__channel *channel = fv__object_channel(p, o, i);
        fv_cell      moments[5];
        double       centroid[FV_MAX_DIMS];
        if (which == WEIGHTED) {
            fv__channel_weighted(&p->channel[i], channel, centroid);
            for (int d = 0; d < p->ndim; d++) cells[made++].real = centroid[d];
            continue;
        }
        fv__channel_moments(&p->channel[i], channel, o->voxels, moments);
        cells[made++] = moments[which - MEAN];
    }
    return made;
}

/* Fills the cells of a property; returns how many. */
static double mesh_area(const fv__object_plan *p, const fv__surfaces *surfaces, fv__object *o) {
    double sum = 0;
    for (int c = 0; c < p->configurations; c++) sum += surfaces->mesh[c] * (double)fv__object_shapes(p, o)[c];
    return sum;
}

static int values_of(int which, const fv__object_plan *p, const fv_image_type *labels, const fv__surfaces *surfaces,
                     const inertia *t, fv__object *o, fv_cell *cells) {
    double volume = volume_of(p, labels, o);
    switch (which) {
    case VOXELS: cells[0].integer = o->voxels; return 1;
    case VOLUME: cells[0].real = volume; return 1;
    case CENTROID:
    case POSITION:
    case BBOX: return along_axes(which, p, labels, o, cells);
    case EXTENT: cells[0].real = extent_of(p, o); return 1;
    case EQUIVALENT_DIAMETER: cells[0].real = diameter_of(volume, p->nspatial); return 1;
    case EIGENVALUES:
        for (int i = 0; i < t->n; i++) cells[i].real = t->value[i];
        return t->n;
    case AXIS_LENGTHS: return axis_lengths(t, cells);
    case ECCENTRICITY: cells[0].real = sqrt(anisotropy(t)); return 1;
    case ANISOTROPY: cells[0].real = anisotropy(t); return 1;
    case ORIENTATION: return orientation(t, cells);
    case EULER_NUMBER: cells[0].integer = o->euler / (p->nspatial == 3 ? 8 : 4); return 1;
    case PERIMETER:
        cells[0].real = labels->spacing[0] *
                        ((double)o->border[0] + sqrt(2) * (double)o->border[1] + (1 + sqrt(2)) / 2 * (double)o->border[2]);
        return 1;
    case PERIMETER_CROFTON:
    case SURFACE_AREA: cells[0].real = fv__crofton_measure(&surfaces->crofton, o); return 1;
    case MESH_AREA: cells[0].real = mesh_area(p, surfaces, o); return 1;
    default: return intensities(which, p, o, cells);
    }
}

void fv__properties_row(const fv__properties *p, const fv__object_plan *plan, const fv_image_type *labels, const fv__views *views,
                        int64_t row, const fv__surfaces *surfaces, fv__object *o, fv_cell *cells) {
    inertia t = { 0 };
    if (plan->second) t = inertia_of(plan, labels, o);
    cells++->integer = o->label;
    for (int k = views->naxes - 1; k >= 0; k--) {
        cells[k].integer = row % views->length[k];
        row /= views->length[k];
    }
    cells += views->naxes;
    for (int i = 0; i < p->count; i++) cells += values_of(p->which[i], plan, labels, surfaces, &t, o, cells);
}
