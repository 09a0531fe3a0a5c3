/* TIFF, classic and Big, through libtiff: pages of equal shape and type are the planes of one image.
 *
 * Reading: samples are given as they are stored, with integers of 2 to 7 bits as uint8, 9 to 15 as uint16, 17 to 31 as uint32,
 * one bit as bool and float16 as float32. MinIsWhite is not inverted and the orientation tag moves nothing (`fovea info` names
 * both), as tifffile does; CMYK and Lab stay what they are. A palette becomes RGB, and so does YCbCr, whichever JPEG holds it.
 * Several samples a pixel are the last axis c, also where the file keeps planes apart. Pages of another kind than the first
 * full-size one, thumbnails, masks and sub-directories are passed over; `path_inside` may name a page by its number, from 0, or a
 * coarser level of a pyramid, "level 1", which is the first sub-directory of every page.
 * Only strips and tiles that a region touches are decoded; uncompressed strips in one run are read as plain bytes, which also
 * reads ImageJ's stacks beyond 4 GB. Several threads read at once, each with a libtiff handle of its own.
 *
 * Writing: strips of about 256 KB, or tiles of 512 x 512 where a row has more than 8192 pixels; `chunk = [rows, columns]`
 * chooses otherwise. Axes before y x are pages in C order, c after x is samples (RGB, RGBA, or grey with extras), bool is 0 and
 * 255 in uint8. Integers up to 32 bits are differenced along x (predictor 2) before they are compressed. The pixels come
 * first, all directories after them; a file beyond 4 GB is a BigTIFF. Without compression they are put in place at once. The
 * description says which axes the pages are and the spacing, in ImageJ's words where they suffice. */
#include "base/take.h"
#include "formats/tiff_parts.h"
#include "op/dense.h"
#include "op/kept_pieces.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    uint64_t ifd;
    int64_t  flat; /* offset of its pixels if they are plain bytes, else -1 */
} plane;

/* Invariants: 1. idle holds handles nobody uses, guarded by the mutex; 2. page describes every plane but for its compression and
 * pieces; 3. flat means all planes are plain bytes, and then no handle is needed to read; 4. alike means all planes are cut into
 * pieces as page is, which can be decoded one by one. */
typedef struct {
    fv_reader       base;
    int             fd;
    int64_t         file_size;
    fv_tiff_page    page;
    plane          *planes;
    int64_t         count;
    bool            flat, alike, swapped;
    pthread_mutex_t mutex;
    fv_tiff_handle *idle;
} reader;

/* ---------------------------------------------------------------- opening */

typedef struct {
    int64_t pages, passed_over; /* in the file; of another kind */
    int64_t wanted;             /* page asked for by number, -1: none */
} survey;

static bool cut_alike(const fv_tiff_page *a, const fv_tiff_page *b) {
    return a->tiled == b->tiled && a->planar == b->planar && a->piece_height == b->piece_height &&
           a->piece_width == b->piece_width && a->piece_bytes == b->piece_bytes && a->mode != FV_TIFF_RGBA;
}

static fv_status add_plane(reader *r, fv_tiff_handle *h, const fv_tiff_page *page, fv_error *error) {
    r->alike = (!r->count || r->alike) && cut_alike(page, &r->page);
    if ((r->count & (r->count - 1)) == 0)
        FV_TRY(FV_TAKE_MORE(r->planes, (size_t)FV_MAX(2 * r->count, 1) * sizeof *r->planes, error));
    r->planes[r->count++] = (plane){ TIFFCurrentDirOffset(h->tif), fv__tiff_page_flat(h, page) };
    r->base.read_memory = FV_MAX(r->base.read_memory, fv__tiff_decode_memory(page));
    return FV_OK;
}

/* Looks at one page: the first of full size sets the kind, others of that kind are its planes. */
static fv_status visit_page(reader *r, fv_tiff_handle *h, survey *s, fv_error *error) {
    fv_tiff_page page;
    int64_t      number = s->pages++;
    if (s->wanted >= 0 && number != s->wanted) return FV_OK;
    fv_status status = fv__tiff_page_describe(h, &page, error);
    bool      replaces = r->count && r->page.subsidiary && status == FV_OK && !page.subsidiary;
    if (r->count == 0 || replaces) { /* a thumbnail that comes first makes way for the image itself */
        if (status != FV_OK) return status;
        FV_TRY(fv__tiff_page_check(h, &page, error));
        s->passed_over += r->count;
        r->count = 0;
        r->base.read_memory = 0;
        r->page = page;
        return add_plane(r, h, &page, error);
    }
    if (status != FV_OK || (page.subsidiary && !r->page.subsidiary) || !fv__tiff_page_same_kind(&page, &r->page)) {
        s->passed_over++;
        return FV_OK;
    }
    FV_TRY(fv__tiff_page_check(h, &page, error));
    return add_plane(r, h, &page, error);
}

static fv_status visit_pages(reader *r, fv_tiff_handle *h, survey *s, fv_error *error) {
    do {
        FV_TRY(visit_page(r, h, s, error));
        fv__tiff_forget(h);
    } while (TIFFReadDirectory(h->tif));
    if (h->message[0]) {
        char what[64];
        snprintf(what, sizeof what, "page %lld is damaged", (long long)s->pages);
        return fv__tiff_fail(h, what, error);
    }
    if (r->count == 0)
        return fv_fail(error, FV_ERROR_INPUT, "%s: there is no page %lld; the file has %lld", r->base.path, (long long)s->wanted,
                       (long long)s->pages);
    /* Go back to the first plane: what follows asks for its tags. */
    if (!TIFFSetSubDirectory(h->tif, r->planes[0].ifd)) return fv__tiff_fail(h, "its first page cannot be read again", error);
    h->ifd = r->planes[0].ifd;
    return FV_OK;
}

/* ImageJ writes one directory for a stack beyond 4 GB and puts the other planes behind the first. */
static fv_status add_imagej_planes(reader *r, const char *description, fv_error *error) {
    int64_t images = fv__tiff_imagej_images(description), bytes = fv__tiff_page_bytes(&r->page);
    if (r->count != 1 || images < 2 || r->planes[0].flat < 0 || bytes < 1 || images > (r->file_size - r->planes[0].flat) / bytes)
        return FV_OK;
    FV_TRY(FV_TAKE_MORE(r->planes, (size_t)images * sizeof *r->planes, error));
    for (r->count = 1; r->count < images; r->count++)
        r->planes[r->count] = (plane){ r->planes[0].ifd, r->planes[0].flat + r->count * bytes };
    return FV_OK;
}

/* One plane of a coarser level: the sub-directory of a page. */
static fv_status add_level_plane(reader *r, uint64_t ifd, int64_t level, fv_error *error) {
    fv_tiff_handle *h = r->idle;
    fv_tiff_page    page;
    uint16_t        count = 0;
    uint64_t       *below = NULL;
    fv__tiff_forget(h);
    if (!TIFFSetSubDirectory(h->tif, ifd)) return fv__tiff_fail(h, "a page cannot be read again", error);
    if (!TIFFGetField(h->tif, TIFFTAG_SUBIFD, &count, &below) || count < level)
        return fv_fail(error, FV_ERROR_USAGE, "%s has no level %lld: its pages have %d below the first", r->base.path,
                       (long long)level, count);
    fv__tiff_forget(h);
    if (!TIFFSetSubDirectory(h->tif, below[level - 1])) return fv__tiff_fail(h, "a level cannot be read", error);
    FV_TRY(fv__tiff_page_describe(h, &page, error));
    FV_TRY(fv__tiff_page_check(h, &page, error));
    if (!r->count && (page.channels != r->page.channels || page.dtype != r->page.dtype))
        return fv_fail(error, FV_ERROR_INPUT, "%s: level %lld is of another type than the image", r->base.path, (long long)level);
    if (!r->count) r->page = page;
    if (!fv__tiff_page_same_kind(&page, &r->page))
        return fv_fail(error, FV_ERROR_INPUT, "%s: planes of level %lld differ", r->base.path, (long long)level);
    return add_plane(r, h, &page, error);
}

/* A coarser level in the place of the image. */
static fv_status descend(reader *r, int64_t level, fv_error *error) {
    plane    *pages = r->planes;
    int64_t   count = r->count;
    fv_status status = FV_OK;
    r->planes = NULL;
    r->count = 0;
    r->base.read_memory = 0;
    for (int64_t i = 0; i < count && status == FV_OK; i++) status = add_level_plane(r, pages[i].ifd, level, error);
    free(pages);
    if (status == FV_OK) r->idle->ifd = r->planes[r->count - 1].ifd;
    return status;
}

static void fill_type(reader *r, TIFF *tif, const char *description) {
    fv_image_type *type = &r->base.type;
    int64_t        shape[] = { r->page.height, r->page.width, r->page.channels };
    float          resolution[2] = { 0 };
    uint16_t       unit = RESUNIT_INCH;
    fv_image_type_init(type, r->page.dtype, r->page.channels > 1 ? 3 : 2, shape);
    for (int d = 0; d < type->ndim; d++) snprintf(type->axis[d], sizeof type->axis[d], "%c", "yxc"[d]);
    TIFFGetField(tif, TIFFTAG_XRESOLUTION, &resolution[0]);
    TIFFGetField(tif, TIFFTAG_YRESOLUTION, &resolution[1]);
    TIFFGetFieldDefaulted(tif, TIFFTAG_RESOLUTIONUNIT, &unit);
    fv__tiff_axes_read(description, (double[]){ resolution[0], resolution[1] }, unit, r->count, type);
    fv__tiff_channels_read(tif, description, type);
    int first = type->ndim - (r->page.channels > 1 ? 3 : 2);
    for (int d = 0; d < type->ndim; d++) r->base.chunk[d] = r->flat ? type->shape[d] : d < first ? 1 : type->shape[d];
    if (r->flat) return;
    bool bands = r->page.mode == FV_TIFF_RGBA;
    r->base.chunk[first] = FV_MIN(r->page.piece_height, r->page.height);
    r->base.chunk[first + 1] = bands ? r->page.width : FV_MIN(r->page.piece_width, r->page.width);
}

static void tell_facts(reader *r, TIFF *tif, const survey *s, const char *description) {
    static const char *const photometrics[] = {
        "MinIsWhite (not inverted)", "MinIsBlack", "RGB", "palette", "mask", "CMYK", "YCbCr", "?", "CIELab"
    };
    const fv_tiff_page *p = &r->page;
    fv_bytes           *facts = &r->base.facts;
    char                name[32];
    fv__bytes_printf(facts, "variant: %s, %s\ncompression: %s\n", TIFFIsBigTIFF(tif) ? "BigTIFF" : "classic TIFF",
                     TIFFIsBigEndian(tif) ? "big-endian" : "little-endian", fv__tiff_compression_name(p->compression, name));
    if (p->tiled)
        fv__bytes_printf(facts, "layout: tiles of %lld x %lld\n", (long long)p->piece_height, (long long)p->piece_width);
    else
        fv__bytes_printf(facts, "layout: strips of %lld rows%s\n", (long long)p->piece_height, r->flat ? " in one run" : "");
    fv__bytes_printf(facts, "pages: %lld\n", (long long)s->pages);
    if (s->passed_over)
        fv__bytes_printf(facts, "pages passed over (another shape or type, thumbnails): %lld\n", (long long)s->passed_over);
    if (p->photometric < FV_COUNT(photometrics)) fv__bytes_printf(facts, "photometric: %s\n", photometrics[p->photometric]);
    fv__bytes_printf(facts, "stored bits: %d\n", p->bits);
    if (p->orientation != ORIENTATION_TOPLEFT)
        fv__bytes_printf(facts, "orientation: %d (pixels are given as stored)\n", p->orientation);
    if (description)
        fv__bytes_printf(facts, "description: %.*s\n", (int)FV_MIN(strcspn(description, "\r\n"), (size_t)200), description);
}

static void take_identity(reader *r) {
    fv_hasher hasher;
    fv__hasher_init(&hasher);
    fv__hasher_int(&hasher, r->file_size);
    for (int64_t i = 0; i < r->count; i++) {
        fv__hasher_int(&hasher, (int64_t)r->planes[i].ifd);
        fv__hasher_int(&hasher, r->planes[i].flat);
    }
    fv__hasher_int(&hasher, r->base.type.dtype);
    for (int d = 0; d < r->base.type.ndim; d++) fv__hasher_int(&hasher, r->base.type.shape[d]);
    fv__hasher_int(&hasher, r->page.compression);
    fv__hasher_int(&hasher, r->page.photometric);
    r->base.header = fv__hasher_finish(&hasher);
}

/* What is known of the planes becomes the image. */
static fv_status take_pages(reader *r, const survey *s, const char *description, fv_error *error) {
    TIFF *tif = r->idle->tif;
    r->flat = true;
    for (int64_t i = 0; i < r->count; i++) r->flat = r->flat && r->planes[i].flat >= 0;
    r->swapped = TIFFIsByteSwapped(tif);
    fill_type(r, tif, description);
    r->base.has_stage = fv__tiff_ome_stage(description, &r->base.type, r->base.stage);
    tell_facts(r, tif, s, description);
    take_identity(r);
    r->base.whole_pieces = !r->flat;
    if (r->flat) r->base.read_memory = FV_DENSE_MEMORY;
    if (fv_image_type_bytes(&r->base.type) < 0)
        return fv_fail(error, FV_ERROR_INPUT, "%s: its pages are more than 2^63 bytes", r->base.path);
    return FV_OK;
}

/* Where a level has the spacing of the whole image, which the description tells, its pixels are larger. */
static void widen_spacing(fv_image_type *level, const fv_image_type *whole) {
    for (int d = 0; d < level->ndim && d < whole->ndim; d++)
        if (level->shape[d] > 0 && level->spacing[d] == whole->spacing[d])
            level->spacing[d] *= (double)whole->shape[d] / (double)level->shape[d];
}

static fv_status open_pages(reader *r, int64_t wanted, int64_t level, fv_error *error) {
    fv_file_id id;
    survey     s = { .wanted = wanted };
    FV_TRY(fv__file_open_read(r->base.path, &r->fd, error));
    FV_TRY(fv__file_identify(r->base.path, &id, error));
    r->file_size = id.size;
    FV_TRY(fv__tiff_open(r->fd, r->base.path, id.size, &r->idle, error));
    FV_TRY(visit_pages(r, r->idle, &s, error));
    char *description = NULL;
    if (!TIFFGetField(r->idle->tif, TIFFTAG_IMAGEDESCRIPTION, &description)) description = NULL;
    if (!level) {
        FV_TRY(add_imagej_planes(r, description, error));
        return take_pages(r, &s, description, error);
    }
    char *copy = description ? fv__strdup(description) : NULL; /* libtiff's own ends with the page */
    fill_type(r, r->idle->tif, copy);
    fv_image_type whole = r->base.type;
    fv_status     status = descend(r, level, error);
    if (status == FV_OK) status = take_pages(r, &s, copy, error);
    if (status == FV_OK) widen_spacing(&r->base.type, &whole);
    free(copy);
    return status;
}

static void close_reader(fv_reader *base) {
    reader *r = (reader *)base;
    fv__kept_forget(r);
    while (r->idle) {
        fv_tiff_handle *next = r->idle->next;
        fv__tiff_close(r->idle);
        r->idle = next;
    }
    pthread_mutex_destroy(&r->mutex);
    if (r->fd >= 0) close(r->fd);
    free(r->planes);
    fv__reader_free(base);
}

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    const char *inside = options ? options->path_inside : NULL;
    char       *end = NULL;
    bool        coarser = inside && !strncmp(inside, "level ", 6);
    long long   number = inside && *inside ? strtoll(inside + (coarser ? 6 : 0), &end, 10) : -1;
    if (end && (*end || number < 0))
        return fv_fail(error, FV_ERROR_USAGE,
                       "%s: a page of a TIFF file is named by its number from 0, and a level \"level 1\", not \"%s\"", path,
                       inside);
    reader *r = fv__reader_new(sizeof *r, &fv_format_tiff, path);
    pthread_mutex_init(&r->mutex, NULL);
    r->fd = -1;
    fv_status status = open_pages(r, coarser ? -1 : number, coarser ? number : 0, error);
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    *out = &r->base;
    return FV_OK;
}

/* Sub-directories of the first page are levels as long as they can be opened as such, each smaller than the one before. */
static fv_status list_levels(const char *path, const fv_read_options *options, fv_bytes *names, fv_error *error) {
    fv_reader *base;
    if (options && options->path_inside) return FV_OK;
    FV_TRY(open_reader(path, NULL, &base, error));
    int64_t width = ((reader *)base)->page.width;
    close_reader(base);
    for (int level = 1; width > 1; level++) {
        char name[32];
        snprintf(name, sizeof name, "level %d", level);
        if (open_reader(path, &(fv_read_options){ .path_inside = name }, &base, NULL) != FV_OK) break;
        bool smaller = ((reader *)base)->page.width < width;
        width = ((reader *)base)->page.width;
        close_reader(base);
        if (!smaller) break;
        if (level == 1) fv__bytes_append(names, "level 0", sizeof "level 0");
        fv__bytes_append(names, name, strlen(name) + 1);
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- reading */

static fv_status take_handle(reader *r, fv_tiff_handle **handle, fv_error *error) {
    pthread_mutex_lock(&r->mutex);
    *handle = r->idle;
    if (*handle) r->idle = (*handle)->next;
    pthread_mutex_unlock(&r->mutex);
    return *handle ? FV_OK : fv__tiff_open(r->fd, r->base.path, r->file_size, handle, error);
}

static void give_back(reader *r, fv_tiff_handle *handle) {
    pthread_mutex_lock(&r->mutex);
    handle->next = r->idle;
    r->idle = handle;
    pthread_mutex_unlock(&r->mutex);
}

/* Plain bytes; planes kept apart are read as c y x into the strides of y x c. */
static fv_status read_flat(reader *r, int64_t index, const fv_tiff_target *t, fv_error *error) {
    const fv_tiff_page *p = &r->page;
    bool                separate = p->planar == PLANARCONFIG_SEPARATE;
    static const int    together[] = { 0, 1, 2 }, apart[] = { 2, 0, 1 };
    const int          *order = separate ? apart : together;
    const int64_t       extent[] = { p->height, p->width, p->channels };
    fv_dense dense = { .offset = r->planes[index].flat, .dtype = p->dtype, .swapped = r->swapped, .half = p->half, .ndim = 3 };
    fv_block block = { .dtype = p->dtype, .region.ndim = 3, .data = t->data };
    for (int d = 0; d < 3; d++) {
        dense.shape[d] = extent[order[d]];
        block.region.start[d] = t->start[order[d]];
        block.region.size[d] = t->size[order[d]];
        block.stride[d] = t->step[order[d]];
    }
    return fv__dense_read(&dense, r->fd, r->base.path, &block, error);
}

/* Makes a plane the handle's current page. */
static fv_status turn_to(reader *r, fv_tiff_handle *h, int64_t index, fv_tiff_page *page, fv_error *error) {
    fv__tiff_forget(h);
    if (h->ifd != r->planes[index].ifd || r->page.compression == COMPRESSION_OJPEG) { /* which cannot go back in its stream */
        h->ifd = 0;
        if (!TIFFSetSubDirectory(h->tif, r->planes[index].ifd)) return fv__tiff_fail(h, "a page cannot be read again", error);
        h->ifd = r->planes[index].ifd;
    }
    FV_TRY(fv__tiff_page_describe(h, page, error));
    if (!fv__tiff_page_same_kind(page, &r->page) || (r->alike && !cut_alike(page, &r->page)))
        return fv__tiff_fail(h, "the file has changed while it was open", error);
    return FV_OK;
}

/* What a block wants: the same part of each of some planes. */
typedef struct {
    reader          *r;
    const fv_block  *block;
    int              leading; /* axes that are planes */
    int64_t          planes;
    fv_tiff_target   part; /* of a plane, without its data */
    fv_tiff_handle  *handle;
    fv_tiff_page     page;   /* of the plane the handle is at, ... */
    int64_t          turned; /* ... by index; -1: none */
    fv_tiff_decoder *decoder;
    int64_t          first[3], count[3]; /* pieces of a plane that are met */
} job;

static void begin_job(job *j, reader *r, const fv_block *block) {
    *j = (job){ .r = r,
                .block = block,
                .leading = block->region.ndim - (r->page.channels > 1 ? 3 : 2),
                .planes = 1,
                .turned = -1,
                .part = { .size = { 1, 1, 1 }, .step = { 0, 0, 1 } } };
    for (int d = 0; d < j->leading; d++) j->planes *= block->region.size[d];
    for (int d = j->leading; d < block->region.ndim; d++) {
        j->part.start[d - j->leading] = block->region.start[d];
        j->part.size[d - j->leading] = block->region.size[d];
        j->part.step[d - j->leading] = block->stride[d];
    }
}

/* Index and place of the nth wanted plane. */
static int64_t plane_of(const job *j, int64_t n, fv_tiff_target *target) {
    const fv_region *region = &j->block->region;
    int64_t          position[FV_MAX_DIMS], index = 0;
    memcpy(position, region->start, sizeof position);
    for (int d = j->leading - 1; d >= 0; d--) {
        position[d] += n % region->size[d];
        n /= region->size[d];
    }
    for (int d = 0; d < j->leading; d++) index = index * j->r->base.type.shape[d] + position[d];
    *target = j->part;
    target->data = fv__block_at(j->block, position);
    return index;
}

/* Plane by plane: plain bytes, colours, and planes that are cut in different ways. */
static fv_status read_planes(job *j, fv_error *error) {
    for (int64_t n = 0; n < j->planes; n++) {
        fv_tiff_target target;
        int64_t        index = plane_of(j, n, &target);
        if (j->r->flat) {
            FV_TRY(read_flat(j->r, index, &target, error));
            continue;
        }
        FV_TRY(turn_to(j->r, j->handle, index, &j->page, error));
        FV_TRY(fv__tiff_decode(j->handle, &j->page, &target, error));
    }
    return FV_OK;
}

/* ---- piece by piece */

typedef struct {
    int64_t        index; /* of its plane */
    int64_t        at[3];
    fv_tiff_target target;
} wanted;

static wanted piece_of(const job *j, int64_t i) {
    const fv_tiff_page *p = &j->r->page;
    wanted              w;
    int64_t             x = i % j->count[1], y = i / j->count[1] % j->count[0], s = i / j->count[1] / j->count[0] % j->count[2];
    w.index = plane_of(j, i / j->count[1] / j->count[0] / j->count[2], &w.target);
    w.at[0] = j->first[0] + y * p->piece_height;
    w.at[1] = j->first[1] + x * p->piece_width;
    w.at[2] = j->first[2] + s;
    return w;
}

static void describe(void *context, int64_t i, fv_piece *piece) {
    const job          *j = context;
    const fv_tiff_page *p = &j->r->page;
    wanted              w = piece_of(j, i);
    bool                separate = p->planar == PLANARCONFIG_SEPARATE && p->mode == FV_TIFF_SAMPLES;
    int64_t             size = (int64_t)fv_dtype_size(p->dtype), held = size * p->channels, of_it = size * w.target.size[2];
    const int64_t       edge[] = { p->piece_height, p->piece_width }, image[] = { p->height, p->width };
    piece->number = separate ? w.index * p->channels + w.at[2] : w.index;
    for (int d = 0; d < 2; d++) {
        int64_t end = FV_MIN(w.at[d] + edge[d], image[d]), from = FV_MAX(w.at[d], w.target.start[d]);
        int64_t to = FV_MIN(end, w.target.start[d] + w.target.size[d]);
        held *= end - w.at[d];
        of_it *= to - from;
        piece->number = piece->number * ((image[d] + edge[d] - 1) / edge[d]) + w.at[d] / edge[d];
    }
    piece->size = separate ? held / p->channels : held;
    piece->wanted = separate ? of_it / w.target.size[2] : of_it;
}

static fv_status decode(void *context, int64_t i, void *data, fv_error *error) {
    job   *j = context;
    wanted w = piece_of(j, i);
    if (j->turned != w.index) {
        j->turned = -1;
        FV_TRY(turn_to(j->r, j->handle, w.index, &j->page, error));
        fv__tiff_decoder_turn(j->decoder, j->handle, &j->page);
        j->turned = w.index;
    }
    return fv__tiff_decode_piece(j->decoder, j->handle, &j->page, w.at, data, error);
}

static void place(void *context, int64_t i, const void *data) {
    const job *j = context;
    wanted     w = piece_of(j, i);
    fv__tiff_place_piece(&j->r->page, w.at, data, &w.target);
}

static fv_status read_piece(void *context, int64_t i, fv_error *error) {
    job  *j = context;
    void *data = fv__tiff_decoder_pixels(j->decoder);
    FV_TRY(decode(j, i, data, error));
    place(j, i, data);
    return FV_OK;
}

static fv_status read_pieces(job *j, fv_error *error) {
    const fv_tiff_page *page = &j->r->page;
    fv__tiff_pieces(page, &j->part, j->first, j->count);
    FV_TRY(fv__tiff_decoder_new(page, j->r->base.path, &j->decoder, error));
    fv_piece_source source = { .owner = j->r,
                               .count = j->planes * j->count[0] * j->count[1] * j->count[2],
                               .context = j,
                               .bytes = fv__tiff_piece_size(page),
                               .describe = describe,
                               .decode = decode,
                               .place = place,
                               .read = read_piece };
    fv_status       status = fv__pieces_read(&source, error);
    fv__tiff_decoder_free(j->decoder);
    return status;
}

static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    reader *r = (reader *)base;
    job     j;
    if (fv__region_empty(&block->region)) return FV_OK;
    begin_job(&j, r, block);
    if (!r->flat) FV_TRY(take_handle(r, &j.handle, error));
    fv_status status = r->alike && !r->flat ? read_pieces(&j, error) : read_planes(&j, error);
    if (j.handle) give_back(r, j.handle);
    return status;
}

const fv_format fv_format_tiff = {
    .name = "tiff",
    .extensions = "tif tiff btf tf8 lsm",
    .magic = { { 0, 4, "II*" }, { 0, 4, "MM\0*" }, { 0, 4, "II+" }, { 0, 4, "MM\0+" } },
    .brief = "TIFF and BigTIFF: images and stacks, any number type",
    .reads = "by region; strips, tiles, planar, pages, 1 to 64 bit, LZW, deflate, zstd, JPEG and older",
    .writes = "tiled",
    .keeps = "ImageJ's and OME's axes, spacing and channels",
    .compressions = "deflate|zstd|lzw|none",
    .takes = "hyperstack",
    .open = open_reader,
    .read = read_block,
    .close = close_reader,
    .levels = list_levels,
    .layout = fv__tiff_layout,
    .create = fv__tiff_create,
    .encode = fv__tiff_encode,
    .assemble = fv__tiff_assemble,
    .begin = fv__tiff_begin,
    .put = fv__tiff_put,
    .sync = fv__tiff_sync,
    .finish = fv__tiff_sync,
    .free_writer = fv__tiff_free_writer,
};
