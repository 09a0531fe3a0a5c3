/* Names of other programs. Those of operators stand in their descriptors; here is what is no operator. */
#include "op/familiar.h"
#include "op/sampling.h"
#include <stdlib.h>
#include <strings.h>

/* words: what it may be called; as soon as one of them is an operator, that is what the others lead to. */
static const struct {
    const char *words, *sentence;
} others[] = {
    { "threshold, imbinarize, binarize, im2bw, segment",
      "compare with a number or with one that is computed: image > 100, or image > otsu(image)" },
    { "threshold_mean", "compare: image > mean(image)" },
    { "reshape, squeeze, expand_dims, ravel, flatten",
      "the shape of an image stays; image[0] takes one position of an axis, and the axis away" },
    { "imshow, show, display, figure, view, imagesc, imtool, volshow",
      "nothing is shown on the screen: write(image, \"look.png\") makes a picture, montage(volume) one of a volume's slices" },
    { "print, disp, printf", "a scalar or a table on a line of its own is printed" },
    { "shape, size, ndim, dtype, class, info, whos",
      "`fovea info FILE` tells shape and type of a file, `fovea plan` those of every "
      "value" },
    { "len, length, numel", "count(image > 0) counts voxels, max(labels) gives the number of labels" },
    { "skeletonize, skeleton, bwskel, thin, medial_axis, bwmorph",
      "there is no operator for it yet; distance(mask) gives how far "
      "each voxel is from the background" },
    { "canny, edge", "there is no operator of that name; gaussian_gradient_magnitude(image, sigma) with hysteresis finds edges" },
    { "bilateral, denoise_bilateral, nlmeans, denoise_nl_means, denoise_tv_chambolle, denoise_wavelet, imdiffusefilt, imnlmfilt",
      "there is no operator for it yet; median and gaussian are there" },
    { "fft, fft2, fftn, ifft, rfft, fftshift", "Fourier transforms are used inside operators and are none themselves" },
    { "convex_hull_image, bwconvhull, convex_hull", "there is no operator for it yet" },
    { "for, while, if, foreach, map",
      "there are no loops: read(\"scans/*.tif\") makes everything happen for each file, --set for "
      "each value of a parameter" },
    { "import, from, include, using, addpath", "nothing has to be imported; `fovea ops` lists what is there" },
};

static const char *after_module(const char *word) {
    const char *dot = strrchr(word, '.');
    return dot ? dot + 1 : word;
}

/* Whether a list "a, m.b" holds the word, as it stands or without its module. */
static bool lists(const char *list, const char *word) {
    size_t length = strlen(word);
    for (const char *p = list; *p;) {
        size_t      n = strcspn(p, ",");
        const char *dot = memrchr(p, '.', n);
        size_t      bare = dot ? (size_t)(p + n - dot - 1) : n;
        if ((n == length && !strncasecmp(p, word, n)) || (bare == length && !strncasecmp(p + n - bare, word, bare))) return true;
        p += n;
        p += strspn(p, ", ");
    }
    return false;
}

const fv_op *fv__op_known_as(const char *word) {
    for (int pass = 0; pass < 2; pass++, word = after_module(word)) {
        for (int i = 0; i < fv__op_count(); i++)
            if (fv__op_at(i)->also && lists(fv__op_at(i)->also, word)) return fv__op_at(i);
        if (pass && fv__op_find(word)) return fv__op_find(word);
    }
    return NULL;
}

static const fv_op *first_operator(const char *list) {
    const fv_op *found = NULL;
    for (const char *p = list; *p && !found;) {
        size_t n = strcspn(p, ",");
        char  *name = fv__sprintf("%.*s", (int)n, p);
        found = fv__op_find(name);
        free(name);
        p += n;
        p += strspn(p, ", ");
    }
    return found;
}

char *fv__familiar_hint(const char *word) {
    const fv_op *op = fv__op_known_as(word);
    const char  *bare = after_module(word), *sentence = NULL;
    for (int i = 0; i < FV_COUNT(others) && !op && !sentence; i++)
        if (lists(others[i].words, bare)) {
            op = first_operator(others[i].words);
            sentence = others[i].sentence;
        }
    if (op) return fv__sprintf("it is called %s here: %s", op->name, op->brief);
    return sentence ? fv__strdup(sentence) : NULL;
}

const char *fv__table_hint(const fv_op *op) {
    static const struct {
        const char *family, *sentence;
    } of_tables[] = {
        { "statistics", "group(table, \"\", \"count(), mean(volume)\") gives numbers of all rows of a table" },
        { "logic", "filter(table, \"volume > 100\") keeps rows of a table" },
        { "comparison", "filter(table, \"volume > 100\") keeps rows of a table" },
        { "arithmetic", "with(table, ratio = a / b) adds a column that is computed from others" },
        { "math", "with(table, root = sqrt(volume)) adds a column that is computed from others" },
    };
    for (int i = 0; i < FV_COUNT(of_tables); i++)
        if (!strcmp(of_tables[i].family, op->family)) return of_tables[i].sentence;
    return NULL;
}

static bool has_geometry(const fv_op *op) {
    for (const fv_param *p = op->params; p && p->name; p++)
        if (p->kind == FV_PARAM_GEOMETRY) return true;
    return false;
}

const char *fv__argument_hint(const fv_op *op, const char *name) {
    if (name && has_geometry(op) && lists("center, rotation_center, cor, angles, theta, ang", name))
        return "this belongs to the geometry: parallel(angles = range(0, 179), center = 319.5)";
    if (name && (op->sink || op->layout) && lists("spacing, pixel_size, voxel_size, pixelsize, resolution, units, unit", name))
        return "set_spacing(image, [2, 0.5, 0.5], \"um\") says how large the voxels are; files keep it";
    if (fv__op_samples(op)) return "approx(mean(image), error = 0.01) goes on until 1 % is reached, time = 5 for five seconds";
    if (strcmp(op->family, "statistics") != 0 || (name && !lists("axis, axes, dim, dims, along, keepdims", name))) return NULL;
    return "a statistic is one number of the whole image; project(image, \"z\", \"mean\") computes along an axis and gives an "
           "image";
}
