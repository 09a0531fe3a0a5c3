/* Scans of diffraction patterns in HDF5 files, by the names that programs of the field give to their datasets.
 *
 * CXI (https://www.cxidb.org/cxi.html): metres, joule; a translation of the sample is x, y, z. NXcxi_ptycho
 * (https://manual.nexusformat.org) is the same with the energy of the photons in beam_1, because source_1 is the machine, and
 * rasters of two axes. ptypy's .ptyd: chunks of frames, keV, positions y, x. fold_slice, PtyLab, and pty-chi with Ptychodus:
 * names at the root. Where units are an attribute, they count; what cannot be (an energy of 8000 J) is told and not guessed. */
#include "formats/hdf5_parts.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { MOST_POSITIONS = 1000000, MOST_CHUNKS = 100000, NAMES = 5 };

static const double electronvolt = 1.602176634e-19, planck_times_light = 1.98644586e-25;

/* Names of datasets, tried in order. */
typedef struct {
    const char *frames[NAMES], *mask[NAMES], *dark[NAMES], *probe[NAMES];
    const char *positions[NAMES], *y, *x; /* y and x of each frame, side by side or each by themselves */
    bool        x_first;
    const char *energy[NAMES], *wavelength[NAMES], *distance[NAMES], *height[NAMES], *width[NAMES];
    const char *row[NAMES], *column[NAMES]; /* of the direct beam: the first and the last number */
    double      energy_unit;                /* in joule */
    const char *object;                     /* pixel of the object: a dataset, */
    const char *of_object[2];               /* or attributes of it: height and width */
    bool        cxi, of_beam;               /* names of CXI, and those that NeXus adds */
} layout;

#define DETECTOR "/entry_1/instrument_1/detector_1/"
#define SOURCE "/entry_1/instrument_1/source_1/"
#define BEAM "/entry_1/instrument_1/beam_1/"

static const layout layouts[] = {
    /* NXcxi_ptycho, CXI, ptypy, PtyLab, fold_slice, pty-chi */
    { .frames = { "/entry_1/data_1/data", DETECTOR "data" },
      .mask = { DETECTOR "pixel_mask", DETECTOR "mask" },
      .dark = { DETECTOR "data_dark" },
      .probe = { BEAM "illumination" },
      .positions = { "/entry_1/sample_1/geometry_1/translation", "/entry_1/data_1/translation", DETECTOR "translation" },
      .x_first = true,
      .energy = { BEAM "incident_beam_energy", BEAM "incident_energy" },
      .wavelength = { BEAM "incident_wavelength" },
      .distance = { DETECTOR "distance" },
      .height = { DETECTOR "y_pixel_size" },
      .width = { DETECTOR "x_pixel_size" },
      .row = { DETECTOR "beam_center_y" },
      .column = { DETECTOR "beam_center_x" },
      .energy_unit = 1,
      .cxi = true,
      .of_beam = true },
    { .frames = { "/entry_1/data_1/data", DETECTOR "data", "/entry_1/image_1/data" },
      .mask = { DETECTOR "mask", "/entry_1/image_1/mask" },
      .dark = { DETECTOR "data_dark", DETECTOR "darkframe" },
      .probe = { SOURCE "illumination", SOURCE "probe", DETECTOR "probe" },
      .positions = { "/entry_1/sample_1/geometry_1/translation", "/entry_1/data_1/translation", DETECTOR "translation",
                     "/entry_1/image_1/translation" },
      .x_first = true,
      .energy = { SOURCE "energy" },
      .wavelength = { SOURCE "wavelength", SOURCE "incident_wavelength" },
      .distance = { DETECTOR "distance" },
      .height = { DETECTOR "y_pixel_size" },
      .width = { DETECTOR "x_pixel_size" },
      .row = { DETECTOR "beam_center_y" },
      .column = { DETECTOR "beam_center_x" },
      .energy_unit = 1,
      .cxi = true },
    { .frames = { "/chunks/0/data" },
      .mask = { "/meta/weight2d", "/common/weight2d", "/chunks/0/weights" },
      .positions = { "/chunks/0/positions" },
      .energy = { "/meta/energy", "/info/energy" },
      .distance = { "/meta/distance", "/info/distance" },
      .height = { "/meta/psize", "/info/psize" },
      .width = { "/meta/psize", "/info/psize" },
      .row = { "/meta/center" },
      .column = { "/meta/center" },
      .energy_unit = 1e3 },
    { .frames = { "/ptychogram" },
      .probe = { "/probe" },
      .positions = { "/encoder" },
      .wavelength = { "/wavelength" },
      .distance = { "/zo" },
      .height = { "/dxd" },
      .width = { "/dxd" } },
    { .frames = { "/dp" }, .probe = { "/probe" }, .y = "/ppY", .x = "/ppX", .object = "/dx" },
    { .frames = { "/dp" },
      .mask = { "/bad_pixels" },
      .probe = { "/probe" },
      .y = "/probe_position_y_m",
      .x = "/probe_position_x_m",
      .object = "/object",
      .of_object = { "pixel_height_m", "pixel_width_m" } },
};

static bool there(const fv_hdf5_plugin *h5, void *file, const char *name, fv_hdf5_about *about) {
    char  message[FV_HDF5_MESSAGE];
    void *dataset = name ? h5->open_dataset(file, name, about, message) : NULL;
    bool  good = dataset && about->kind;
    h5->close_dataset(dataset);
    return good;
}

static const char *first_of(const fv_hdf5_plugin *h5, void *file, const char *const *names, fv_hdf5_about *about) {
    for (int i = 0; i < NAMES && names[i]; i++)
        if (there(h5, file, names[i], about)) return names[i];
    return NULL;
}

/* ---------------------------------------------------------------- which layout */

static bool mark(void *context, const char *name) {
    static const char *const marks[] = { "entry_1", "chunks", "ptychogram", "dp", "ppX", "probe_position_x_m" };
    for (int i = 0; i < FV_COUNT(marks); i++)
        if (!strcmp(name, marks[i])) *(bool *)context = true;
    return !*(bool *)context;
}

/* Whether names of its own are there. CXI serves for more than scans: it needs a beam, a source or positions. */
static bool fits(const fv_hdf5_plugin *h5, void *file, const layout *l) {
    fv_hdf5_about about;
    bool          lit = first_of(h5, file, l->energy, &about) || first_of(h5, file, l->wavelength, &about);
    if (l->of_beam) return lit;
    bool placed = first_of(h5, file, l->positions, &about) || there(h5, file, l->x, &about);
    return placed || (l->cxi && lit);
}

static const layout *find_layout(const fv_hdf5_plugin *h5, void *file) {
    bool marked = false;
    h5->links(file, "/", mark, &marked);
    for (int i = 0; i < FV_COUNT(layouts) && marked; i++)
        if (fits(h5, file, &layouts[i])) return &layouts[i];
    return NULL;
}

char *fv__hdf5_find_ptycho(const fv_hdf5_plugin *h5, void *file, const char *word) {
    fv_hdf5_about about;
    const char   *name = NULL;
    const layout *l = find_layout(h5, file);
    if (!l) return NULL;
    if (!word || !strcmp(word, "frames")) name = first_of(h5, file, l->frames, &about);
    if (word && !strcmp(word, "mask")) name = first_of(h5, file, l->mask, &about);
    if (word && !strcmp(word, "dark")) name = first_of(h5, file, l->dark, &about);
    if (word && !strcmp(word, "probe")) name = first_of(h5, file, l->probe, &about);
    if (word && !strcmp(word, "positions")) name = l->x ? l->x : first_of(h5, file, l->positions, &about);
    return name ? fv__strdup(name) : NULL;
}

/* ---------------------------------------------------------------- numbers */

/* What a unit that is written beside a number is in joule or metres; 0: nothing that is known. */
static double unit_of(const char *text) {
    static const struct {
        const char *name;
        double      size;
    } units[] = { { "eV", electronvolt },
                  { "keV", 1e3 * electronvolt },
                  { "J", 1 },
                  { "joule", 1 },
                  { "m", 1 },
                  { "meter", 1 },
                  { "metre", 1 },
                  { "cm", 1e-2 },
                  { "mm", 1e-3 },
                  { "um", 1e-6 },
                  { "\xc2\xb5m", 1e-6 },
                  { "micrometer", 1e-6 },
                  { "nm", 1e-9 },
                  { "angstrom", 1e-10 } };
    for (int i = 0; i < FV_COUNT(units); i++)
        if (!strcasecmp(text, units[i].name)) return units[i].size;
    return 0;
}

static double unit_beside(const fv_hdf5_plugin *h5, void *file, const char *name, double usual) {
    char text[32];
    bool given =
        h5->get_text(file, name, "units", 0, text, sizeof text) || h5->get_text(file, name, "Units", 0, text, sizeof text);
    double unit = given ? unit_of(text) : 0;
    return unit > 0 ? unit : usual;
}

/* One number of the first dataset of the names that is there, or the last of a few. 0: there is none. */
static double number_of(const fv_hdf5_plugin *h5, void *file, const char *const *names, double usual, bool last) {
    fv_hdf5_about about;
    const char   *name = first_of(h5, file, names, &about);
    double       *numbers = name ? fv__hdf5_numbers(h5, file, name, MOST_POSITIONS, &about) : NULL;
    int64_t       n = 1;
    for (int d = 0; d < about.ndim && numbers; d++) n *= about.shape[d];
    double value = numbers ? fabs(numbers[last && n <= 4 ? n - 1 : 0]) * unit_beside(h5, file, name, usual) : 0;
    free(numbers);
    return isfinite(value) ? value : 0;
}

/* ---------------------------------------------------------------- positions */

typedef struct {
    double *values; /* y and x of each */
    int64_t count;
} places;

static void add_places(places *p, int64_t n) {
    p->values = fv__realloc(p->values, (size_t)(2 * (p->count + n)) * sizeof *p->values);
    p->count += n;
}

/* [n][2 or 3] or [2 or 3][n]: which of both, where three frames would leave it open, tells the number of frames. */
static void take_table(const fv_hdf5_plugin *h5, void *file, const char *name, const layout *l, int64_t frames, places *p) {
    fv_hdf5_about about;
    double       *numbers = fv__hdf5_numbers(h5, file, name, 3 * MOST_POSITIONS, &about);
    bool          flat = numbers && about.ndim == 2;
    bool    rows = flat && about.shape[1] >= 2 && about.shape[1] <= 3 && !(about.shape[1] == frames && about.shape[0] != frames);
    bool    columns = flat && !rows && about.shape[0] >= 2 && about.shape[0] <= 3;
    int64_t n = rows ? about.shape[0] : columns ? about.shape[1] : 0, at = 2 * p->count;
    double  unit = n ? unit_beside(h5, file, name, 1) : 1;
    add_places(p, n);
    for (int64_t i = 0; i < n; i++)
        for (int d = 0; d < 2; d++) {
            int64_t k = l->x_first ? 1 - d : d;
            p->values[at + 2 * i + d] = unit * (rows ? numbers[i * about.shape[1] + k] : numbers[k * n + i]);
        }
    free(numbers);
}

/* y and x each by themselves, along any axes. */
static void take_lines(const fv_hdf5_plugin *h5, void *file, const layout *l, places *p) {
    fv_hdf5_about of[2];
    double       *line[2] = { fv__hdf5_numbers(h5, file, l->y, MOST_POSITIONS, &of[0]),
                              fv__hdf5_numbers(h5, file, l->x, MOST_POSITIONS, &of[1]) };
    int64_t       n[2] = { 1, 1 };
    for (int k = 0; k < 2 && line[0] && line[1]; k++)
        for (int d = 0; d < of[k].ndim; d++) n[k] *= of[k].shape[d];
    if (line[0] && line[1] && n[0] == n[1]) {
        add_places(p, n[0]);
        for (int64_t i = 0; i < 2 * n[0]; i++) p->values[i] = line[i % 2][i / 2];
    }
    for (int k = 0; k < 2; k++) free(line[k]);
}

/* Those of all chunks, one after the other. */
static void take_chunks(const fv_hdf5_plugin *h5, void *file, const layout *l, places *p) {
    for (int k = 0; k < MOST_CHUNKS && p->count < MOST_POSITIONS; k++) {
        char    name[64];
        int64_t before = p->count;
        snprintf(name, sizeof name, "/chunks/%d/positions", k);
        take_table(h5, file, name, l, 0, p);
        if (p->count == before) return;
    }
}

static void take_places(const fv_hdf5_plugin *h5, void *file, const layout *l, int64_t frames, places *p) {
    fv_hdf5_about about;
    const char   *name = first_of(h5, file, l->positions, &about);
    if (l->x)
        take_lines(h5, file, l, p);
    else if (name && !strncmp(name, "/chunks/", 8))
        take_chunks(h5, file, l, p);
    else if (name)
        take_table(h5, file, name, l, frames, p);
}

/* ---------------------------------------------------------------- what the file says */

static void take_object(const fv_hdf5_plugin *h5, void *file, const layout *l, fv_diffraction *d) {
    const char *names[NAMES] = { l->object };
    if (l->object && !l->of_object[0]) d->object[0] = d->object[1] = number_of(h5, file, names, 1, false);
    for (int k = 0; k < 2 && l->of_object[0]; k++) {
        double value = 0;
        if (h5->get_numbers(file, l->object, l->of_object[k], &value, 1) == 1 && isfinite(value)) d->object[k] = fabs(value);
    }
}

static void take_wavelength(const fv_hdf5_plugin *h5, void *file, const layout *l, fv_diffraction *d) {
    double usual = l->energy_unit == 1 ? 1 : l->energy_unit * electronvolt, energy = number_of(h5, file, l->energy, usual, false);
    d->wavelength = number_of(h5, file, l->wavelength, 1, false);
    if (!(d->wavelength > 0) && energy > 0) d->wavelength = planck_times_light / energy;
    if (energy > 1e-12) { /* 6 MeV; the wavelength would be below a picometre */
        snprintf(d->doubt, sizeof d->doubt,
                 "its photon energy would be %g J; %s. Say pixel, or set the attribute units of the dataset", energy,
                 energy / usual >= 10 ? "the number looks like electronvolts, and CXI wants joule" : "that cannot be");
        d->wavelength = 0;
    }
}

static void doubt_lengths(fv_diffraction *d) {
    if (*d->doubt) return;
    if (d->detector[1] > 0.02)
        snprintf(d->doubt, sizeof d->doubt, "its detector would have pixels of %g m: are these of another unit?", d->detector[1]);
    else if (d->distance > 1000)
        snprintf(d->doubt, sizeof d->doubt, "its detector would be %g m away: is that of another unit?", d->distance);
    else if (d->wavelength > 1e-3)
        snprintf(d->doubt, sizeof d->doubt, "its wavelength would be %g m: is that of another unit?", d->wavelength);
}

/* How many frames there are, of which about describes the first dataset. */
static int64_t count_frames(const fv_hdf5_plugin *h5, void *file, const char *name, fv_hdf5_about about) {
    int64_t count = 1, all = 0;
    for (int d = 0; d < about.ndim - 2; d++) count *= about.shape[d];
    if (about.ndim < 3 || strncmp(name, "/chunks/", 8)) return about.ndim < 3 ? 0 : count;
    for (int k = 0; k < MOST_CHUNKS; k++) {
        char chunk[64];
        snprintf(chunk, sizeof chunk, "/chunks/%d/data", k);
        if (!there(h5, file, chunk, &about)) break;
        all += about.shape[0];
    }
    return all;
}

fv_diffraction *fv__hdf5_diffraction(const fv_hdf5_plugin *h5, void *file) {
    static const char *const corner[NAMES] = { DETECTOR "corner_position" };
    const layout            *l = find_layout(h5, file);
    fv_hdf5_about            about = { 0 };
    places                   p = { 0 };
    if (!l) return NULL;
    const char *frames = first_of(h5, file, l->frames, &about);
    int64_t     count = frames ? count_frames(h5, file, frames, about) : 0;
    take_places(h5, file, l, count, &p);
    fv_diffraction *d = fv__calloc(sizeof *d + (size_t)(2 * p.count) * sizeof *d->positions);
    d->npositions = p.count;
    memcpy(d->positions, p.values, (size_t)(2 * p.count) * sizeof *d->positions);
    free(p.values);
    d->frames = count;
    for (int k = 0; k < 2 && count; k++) d->frame[k] = about.shape[about.ndim - 2 + k];
    take_wavelength(h5, file, l, d);
    d->distance = number_of(h5, file, l->distance, 1, false);
    if (!(d->distance > 0) && l->cxi) d->distance = number_of(h5, file, corner, 1, true);
    d->detector[0] = number_of(h5, file, l->height, 1, false);
    d->detector[1] = number_of(h5, file, l->width, 1, true);
    d->center[0] = number_of(h5, file, l->row, 1, false);
    d->center[1] = number_of(h5, file, l->column, 1, true);
    take_object(h5, file, l, d);
    doubt_lengths(d);
    return d;
}

void fv__hdf5_describe_diffraction(const fv_diffraction *d, fv_bytes *facts) {
    if (d->wavelength > 0)
        fv__bytes_printf(facts, "wavelength: %.6g m (%.6g keV)\n", d->wavelength,
                         planck_times_light / d->wavelength / electronvolt / 1000);
    if (d->distance > 0) fv__bytes_printf(facts, "detector distance: %.6g m\n", d->distance);
    if (d->detector[0] > 0) fv__bytes_printf(facts, "detector pixel: %.6g x %.6g m\n", d->detector[0], d->detector[1]);
    if (d->center[0] > 0 && d->center[1] > 0)
        fv__bytes_printf(facts, "direct beam: row %.6g, column %.6g\n", d->center[0], d->center[1]);
    double pixel[2];
    if (fv__diffraction_pixel(d, d->frame, pixel)) fv__bytes_printf(facts, "object pixel: %.6g x %.6g m\n", pixel[0], pixel[1]);
    if (d->npositions) fv__bytes_printf(facts, "positions: %lld\n", (long long)d->npositions);
    if (*d->doubt) fv__bytes_printf(facts, "doubtful: %s\n", d->doubt);
}
