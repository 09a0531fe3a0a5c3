/* Zarr images as they are laid out in files: pyramids, shards, both versions. */
#include "formats/zarr_shrink.h"
#include "formats/zarr_writer.h"
#include "support/format.h"
#include "support/test.h"
#include <math.h>
#include <pthread.h>
#include <unistd.h>

static char *in_folder(const char *name) { return fv__sprintf("%s/%s", test_folder(), name); }

static bool same_folders(const char *a, const char *b) {
    char *command = fv__sprintf("diff -r %s %s >&2", a, b);
    bool  same = system(command) == 0;
    free(command);
    return same;
}

static test_image read_level(const char *path, int level) {
    char      *inside = fv__sprintf("%s::%d", path, level);
    test_image image = { 0 };
    fv_error   error = { 0 };
    if (test_read_file(inside, &image, &error) != FV_OK) fprintf(stderr, "%s\n", error.message);
    free(inside);
    return image;
}

/* ---------------------------------------------------------------- pyramids */

static double value_at(const test_image *image, int64_t index) {
    switch (image->type.image.dtype) {
    case FV_BOOL:
    case FV_UINT8: return ((uint8_t *)image->data)[index];
    case FV_INT8: return ((int8_t *)image->data)[index];
    case FV_UINT16: return ((uint16_t *)image->data)[index];
    case FV_INT16: return ((int16_t *)image->data)[index];
    case FV_INT32: return ((int32_t *)image->data)[index];
    case FV_FLOAT32: return ((float *)image->data)[index];
    default: return ((double *)image->data)[index];
    }
}

static int64_t place(const fv_image_type *type, const int64_t *at) {
    int64_t index = 0;
    for (int d = 0; d < type->ndim; d++) index = index * type->shape[d] + at[d];
    return index;
}

/* What a voxel of the coarser level must be, from the definition. */
static double expected(const test_image *fine, const int64_t *at, bool mean) {
    const fv_image_type *type = &fine->type.image;
    double               sum = 0;
    int                  count = 0;
    for (int corner = 0; corner < 1 << type->ndim; corner++) {
        int64_t from[FV_MAX_DIMS];
        bool    there = true;
        for (int d = 0; d < type->ndim; d++) {
            bool space = strchr("zyx", type->axis[d][0]), second = corner >> d & 1;
            from[d] = (space ? 2 * at[d] : at[d]) + second;
            if ((second && !space) || from[d] >= type->shape[d]) there = false;
        }
        if (!there) continue;
        if (!count || mean) sum += value_at(fine, place(type, from));
        count++;
    }
    if (!mean) return sum;
    double value = sum / count;
    return fv_dtype_is_float(type->dtype) ? value : floor(value + 0.5);
}

static void check_level(const test_image *fine, const test_image *coarse, bool mean) {
    const fv_image_type *type = &coarse->type.image;
    fv_region            all = fv__region_whole(type);
    fv_rows              rows;
    for (int d = 0; d < type->ndim; d++) {
        bool space = strchr("zyx", type->axis[d][0]);
        CHECK_INT(type->shape[d], space ? (fine->type.image.shape[d] + 1) / 2 : fine->type.image.shape[d]);
    }
    for (fv__rows_begin(&rows, &all); fv__rows_next(&rows);)
        for (int64_t x = 0; x < type->shape[type->ndim - 1]; x++) {
            int64_t at[FV_MAX_DIMS];
            memcpy(at, rows.position, sizeof at);
            at[type->ndim - 1] = x;
            double got = value_at(coarse, place(type, at)), wanted = expected(fine, at, mean);
            double most = type->dtype == FV_FLOAT32   ? fabs(wanted) * 0x1p-24
                          : type->dtype == FV_FLOAT64 ? fabs(wanted) * 0x1p-50
                                                      : 0;
            CHECK_MESSAGE(fabs(got - wanted) <= most, "%s: %.17g, not %.17g", fv_dtype_name(type->dtype), got, wanted);
        }
}

TEST(pyramid_levels_are_means_of_images_and_picks_of_labels) {
    static const struct {
        fv_dtype    dtype;
        int         ndim;
        int64_t     shape[4], chunk[4], shard;
        const char *version;
        bool        mean;
    } cases[] = {
        { FV_UINT8, 2, { 45, 70 }, { 12, 20 }, 0, NULL, true },
        { FV_INT8, 3, { 17, 22, 31 }, { 10, 12, 16 }, 0, "0.4", true },
        { FV_UINT16, 3, { 33, 20, 41 }, { 8, 8, 8 }, 16, NULL, true },
        { FV_INT16, 4, { 2, 9, 21, 30 }, { 1, 6, 12, 30 }, 0, NULL, true },
        { FV_FLOAT32, 3, { 19, 24, 26 }, { 10, 10, 10 }, 0, NULL, true },
        { FV_FLOAT64, 2, { 50, 33 }, { 6, 6 }, 12, NULL, true },
        { FV_INT32, 3, { 25, 30, 11 }, { 14, 16, 8 }, 0, NULL, false },
        { FV_BOOL, 2, { 40, 41 }, { 10, 10 }, 0, "0.4", false },
    };
    for (int i = 0; i < FV_COUNT(cases); i++) {
        test_image       in = test_image_new(cases[i].dtype, cases[i].ndim, cases[i].shape);
        fv_write_options options = { .levels = 4, .chunk_ndim = cases[i].ndim, .version = cases[i].version };
        fv_error         error = { 0 };
        char            *path = in_folder("p.zarr"), *shuffled = in_folder("q.zarr");
        memcpy(options.chunk, cases[i].chunk, sizeof cases[i].chunk);
        if (cases[i].shard) {
            options.shard_ndim = 1;
            options.shard[0] = cases[i].shard;
        }
        test_image_random_any(&in, (uint64_t)i + 40);
        CHECK(fv__path_remove(path, NULL) == FV_OK && fv__path_remove(shuffled, NULL) == FV_OK);
        CHECK_MESSAGE(test_write_file(path, &in, &options, 0, &error) == FV_OK, "%s", error.message);
        test_image fine = read_level(path, 0);
        CHECK(fine.data && test_same_pixels(&in, &fine));
        for (int level = 1; level < 4; level++) {
            test_image coarse = read_level(path, level);
            CHECK(coarse.data);
            memcpy(fine.type.image.axis, in.type.image.axis, sizeof in.type.image.axis);
            memcpy(coarse.type.image.axis, in.type.image.axis, sizeof in.type.image.axis);
            check_level(&fine, &coarse, cases[i].mean);
            test_image_free(&fine);
            fine = coarse;
        }
        for (uint64_t seed = 1; seed < 2 + (i == 2); seed++) { /* in any order, the same bytes */
            CHECK_MESSAGE(test_write_file(shuffled, &in, &options, seed, &error) == FV_OK, "%s", error.message);
            CHECK(same_folders(path, shuffled));
            CHECK(fv__path_remove(shuffled, NULL) == FV_OK);
        }
        test_image_free(&fine);
        test_image_free(&in);
        free(path);
        free(shuffled);
    }
}

TEST(pyramid_of_a_complex_image_has_the_means_of_both_parts) {
    float     in[] = { 1, 10, 3, 20, 5, 30, 2, 40, 4, 50, 6, 60 }, out[4];
    fv_region fine = { 2, { 0, 0 }, { 2, 3 } }, coarse = { 2, { 0, 0 }, { 1, 2 } };
    fv_block  from, to;
    fv__block_init(&from, FV_COMPLEX64, &fine, in);
    fv__block_init(&to, FV_COMPLEX64, &coarse, out);
    fv__zarr_shrink(&from, &to, (bool[]){ true, true }, true);
    CHECK(out[0] == 2.5f && out[1] == 30 && out[2] == 5.5f && out[3] == 45);
}

static fv_zarr_writer *make_writer(const char *path, const fv_image_type *type, const fv_write_options *options) {
    fv_writer *writer;
    if (test_make_writer(&fv_format_zarr, path, type, options, &writer, NULL) != FV_OK) abort();
    return (fv_zarr_writer *)writer;
}

TEST(pyramid_has_as_many_levels_as_it_needs) {
    static const struct {
        int         ndim;
        int64_t     shape[5];
        const char *axes[5];
        int64_t     asked;
        int         levels;
    } cases[] = {
        { 3, { 256, 256, 256 }, { "z", "y", "x" }, 0, 1 },
        { 3, { 257, 20, 20 }, { "z", "y", "x" }, 0, 2 },
        { 3, { 1000, 2048, 2048 }, { "z", "y", "x" }, 0, 4 },
        { 2, { 1024, 1024 }, { "y", "x" }, 0, 1 },
        { 2, { 5000, 3000 }, { "y", "x" }, 0, 4 },
        { 4, { 900, 1, 2000, 2000 }, { "t", "z", "y", "x" }, 0, 2 },
        { 3, { 3000, 3000, 3 }, { "y", "x", "c" }, 0, 1 },
        { 3, { 3000, 1, 1 }, { "z", "y", "x" }, 1, 1 },
        { 2, { 5, 3 }, { "y", "x" }, 9, 4 },
    };
    for (int i = 0; i < FV_COUNT(cases); i++) {
        fv_image_type    type;
        fv_write_options options = { .levels = cases[i].asked };
        fv_image_type_init(&type, FV_UINT8, cases[i].ndim, cases[i].shape);
        for (int d = 0; d < type.ndim; d++) strcpy(type.axis[d], cases[i].axes[d]);
        fv_zarr_writer *w = make_writer("x.zarr", &type, &options);
        CHECK_MESSAGE(w->design.nlevels == cases[i].levels, "case %d: %d levels", i, w->design.nlevels);
        fv_format_zarr.free_writer(&w->base);
    }
}

/* As after the loss of a machine: files of coarser levels that were not durable hold rubbish, parts are missing or cut. */
TEST(pyramid_is_whole_after_puts_were_lost_and_repeated) {
    test_image       in = test_image_new(FV_UINT16, 2, (int64_t[]){ 64, 64 });
    fv_write_options options = { .levels = 4, .chunk_ndim = 2, .chunk = { 16, 16 } };
    char            *good = in_folder("good.zarr"), *path = in_folder("lost.zarr");
    fv_error         error = { 0 };
    test_image_random_any(&in, 12);
    CHECK(test_write_file(good, &in, &options, 0, &error) == FV_OK);
    fv_zarr_writer *w = make_writer(path, &in.type.image, &options);
    fv_region       all = fv__region_whole(&in.type.image);
    fv_block        whole;
    fv_lattice      lattice;
    fv__block_init(&whole, FV_UINT16, &all, in.data);
    fv__lattice_init(&lattice, 2, all.size, w->base.layout.piece);
    CHECK(fv_format_zarr.begin(&w->base, &error) == FV_OK);
    for (int64_t i = 0; i < 16; i++) {
        fv_region region = fv__lattice_chunk(&lattice, i);
        fv_block  window = fv__block_window(&whole, &region);
        CHECK_MESSAGE(fv_format_zarr.put(&w->base, &window, &error) == FV_OK, "%s", error.message);
        if (i == 2) { /* a part of chunk 1 is cut: nobody can use it any more */
            char *part = fv__sprintf("%s/.partial/1-1", path);
            CHECK(fv__file_exists(part) && truncate(part, 7) == 0);
            free(part);
        }
    }
    char *coarse = fv__sprintf("%s/1/c/1/1", path), *coarser = fv__sprintf("%s/2/c/0/0", path);
    CHECK(fv__file_write_all(coarse, "rubbish", 7, false, NULL) == FV_OK);
    char *folder = fv__sprintf("%s/2/c/0", path);
    CHECK(fv__path_make_folders(folder, NULL) == FV_OK);
    CHECK(fv__file_write_all(coarser, "rubbish", 7, false, NULL) == FV_OK);
    free(folder);
    fv_region region = fv__lattice_chunk(&lattice, 15);
    fv_block  window = fv__block_window(&whole, &region);
    CHECK(fv_format_zarr.put(&w->base, &window, &error) == FV_OK); /* the put that had made them, once more */
    CHECK_MESSAGE(fv_format_zarr.finish(&w->base, &error) == FV_OK, "%s", error.message);
    CHECK(same_folders(good, path));
    fv_format_zarr.free_writer(&w->base);
    test_image_free(&in);
    free(coarse);
    free(coarser);
    free(good);
    free(path);
}

typedef struct {
    fv_zarr_writer *writer;
    test_image     *image;
    int             from;
    fv_status       status;
    fv_error        error;
} putter;

enum { PUTTERS = 3, STEP = 11 }; /* far from one another, so that children of many files are there before any is complete */

static void put_piece(putter *p, int64_t index) {
    fv_region  all = fv__region_whole(&p->image->type.image);
    fv_block   whole;
    fv_lattice lattice;
    fv__block_init(&whole, p->image->type.image.dtype, &all, p->image->data);
    fv__lattice_init(&lattice, all.ndim, all.size, p->writer->base.layout.piece);
    int64_t   count = fv__lattice_count(&lattice);
    fv_region region = fv__lattice_chunk(&lattice, index % count * STEP % count);
    fv_block  window = fv__block_window(&whole, &region);
    if (p->status == FV_OK) p->status = fv_format_zarr.put(&p->writer->base, &window, &p->error);
}

static void *put_some(void *argument) {
    putter    *p = argument;
    fv_lattice lattice;
    fv__lattice_init(&lattice, p->image->type.image.ndim, p->image->type.image.shape, p->writer->base.layout.piece);
    for (int64_t i = p->from; i < fv__lattice_count(&lattice); i += PUTTERS) put_piece(p, i);
    return NULL;
}

/* spare: bytes that may stay in memory. A file that was not durable is found as rubbish by a put that is repeated. */
static void put_by_threads(const char *path, test_image *in, const fv_write_options *options, int64_t spare) {
    putter    putters[PUTTERS];
    pthread_t threads[PUTTERS];
    fv_error  error = { 0 };
    char     *partial = fv__sprintf("%s/.partial", path), *coarse = fv__sprintf("%s/1/c/0/0/0", path);
    if (fv__path_remove(path, NULL) != FV_OK) abort();
    fv_zarr_writer *w = make_writer(path, &in->type.image, options);
    w->base.spare = spare;
    CHECK(fv_format_zarr.begin(&w->base, &error) == FV_OK);
    putters[0] = (putter){ .writer = w, .image = in };
    put_piece(&putters[0], 0);
    bool on_disk = fv__path_is_folder(partial);
    CHECK(spare == 1 << 12 || on_disk == !spare);
    for (int i = 0; i < PUTTERS; i++) {
        putters[i] = (putter){ .writer = w, .image = in, .from = i };
        pthread_create(&threads[i], NULL, put_some, &putters[i]);
    }
    for (int i = 0; i < PUTTERS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < PUTTERS; i++) CHECK_MESSAGE(putters[i].status == FV_OK, "%s", putters[i].error.message);
    CHECK(w->kept == 0 && !w->forming);
    CHECK(fv__file_write_all(coarse, "rubbish", 7, false, NULL) == FV_OK);
    put_piece(&putters[0], 0);
    CHECK(putters[0].status == FV_OK && !fv__file_exists(coarse));
    CHECK_MESSAGE(fv_format_zarr.finish(&w->base, &error) == FV_OK, "%s", error.message);
    fv_format_zarr.free_writer(&w->base);
    free(partial);
    free(coarse);
}

TEST(pyramid_is_the_same_whether_it_grows_in_memory_on_the_disk_or_both) {
    test_image       in = test_image_new(FV_UINT16, 3, (int64_t[]){ 21, 30, 19 });
    fv_write_options options = { .levels = 4, .chunk_ndim = 1 };
    char            *good = in_folder("alone.zarr"), *path = in_folder("growing.zarr");
    fv_error         error = { 0 };
    test_image_random_any(&in, 13);
    static const int64_t layouts[][2] = { { 8, 0 }, { 8, 16 }, { 5, 10 } }; /* chunk and shard, also of odd chunks */
    for (int i = 0; i < FV_COUNT(layouts); i++) {
        options.chunk[0] = layouts[i][0];
        options.shard_ndim = layouts[i][1] > 0;
        options.shard[0] = layouts[i][1];
        CHECK(fv__path_remove(good, NULL) == FV_OK && test_write_file(good, &in, &options, 0, &error) == FV_OK);
        for (int64_t spare = 0; spare <= 1 << 20; spare = spare ? spare << 8 : 1 << 12) {
            put_by_threads(path, &in, &options, spare);
            CHECK(same_folders(good, path));
        }
    }
    test_image_free(&in);
    free(good);
    free(path);
}

typedef struct {
    putter p;
    bool   over; /* atomic */
} repeater;

static void *put_again_and_again(void *argument) {
    repeater *r = argument;
    while (!__atomic_load_n(&r->over, __ATOMIC_RELAXED)) put_piece(&r->p, 0);
    return NULL;
}

/* A put that is repeated alone takes away what the others make of it. */
TEST(coarser_files_that_are_taken_away_during_a_sync_do_not_disturb_it) {
    test_image       in = test_image_new(FV_UINT8, 2, (int64_t[]){ 64, 64 });
    fv_write_options options = { .levels = 3, .chunk_ndim = 1, .chunk = { 16 } };
    char            *good = in_folder("calm.zarr"), *path = in_folder("disturbed.zarr");
    fv_error         error = { 0 };
    fv_region        all = fv__region_whole(&in.type.image);
    fv_block         whole;
    pthread_t        thread;
    test_image_random_any(&in, 14);
    CHECK(test_write_file(good, &in, &options, 0, &error) == FV_OK);
    fv_zarr_writer *w = make_writer(path, &in.type.image, &options);
    repeater        r = { .p = { .writer = w, .image = &in } };
    fv_status       status = fv_format_zarr.begin(&w->base, &error);
    fv__block_init(&whole, FV_UINT8, &all, in.data);
    pthread_create(&thread, NULL, put_again_and_again, &r);
    for (int i = 0; i < 10 && status == FV_OK; i++) {
        status = fv_format_zarr.put(&w->base, &whole, &error);
        if (status == FV_OK) status = fv_format_zarr.sync(&w->base, &error);
    }
    __atomic_store_n(&r.over, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    CHECK_MESSAGE(status == FV_OK && r.p.status == FV_OK, "%s%s", error.message, r.p.error.message);
    CHECK_MESSAGE(fv_format_zarr.finish(&w->base, &error) == FV_OK, "%s", error.message);
    CHECK(same_folders(good, path));
    fv_format_zarr.free_writer(&w->base);
    test_image_free(&in);
    free(good);
    free(path);
}

/* ---------------------------------------------------------------- shards and versions */

TEST(shards_and_both_versions_keep_every_dtype) {
    static const int64_t     shape[] = { 3, 13, 21, 18 };
    static const char *const compressions[] = { "zstd", "blosc", "blosc-zstd", "gzip", "none" };
    char                    *path = in_folder("s.zarr"), *shuffled = in_folder("t.zarr"), message[256];
    for (int dtype = 0; dtype < FV_DTYPES; dtype++)
        for (int old = 0; old < 2; old++) {
            int              ndim = 1 + (dtype + old) % 4;
            test_image       in = test_image_new((fv_dtype)dtype, ndim, shape + 4 - ndim), out;
            fv_error         error = { 0 };
            fv_write_options options = { .compression = compressions[(dtype + ndim) % 5],
                                         .chunk_ndim = 1,
                                         .chunk = { 6 },
                                         .version = old ? "0.4" : NULL,
                                         .level = dtype % 2 ? 0 : dtype + old < 5 };
            if (options.compression[0] == 'n') options.level = 0;
            if (!old) {
                options.shard_ndim = 1;
                options.shard[0] = 12;
            }
            test_image_random_any(&in, (uint64_t)(dtype * 7 + old));
            CHECK(fv__path_remove(path, NULL) == FV_OK && fv__path_remove(shuffled, NULL) == FV_OK);
            CHECK_MESSAGE(test_write_file(path, &in, &options, 0, &error) == FV_OK, "%s", error.message);
            CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
            CHECK_MESSAGE(test_same_pixels(&in, &out), "%s, %d axes", fv_dtype_name((fv_dtype)dtype), ndim);
            for (int d = 0; d < ndim; d++) CHECK_TEXT(out.type.image.axis[d], in.type.image.axis[d]);
            CHECK_MESSAGE(test_regions_equal_crops(path, 20, 5, message), "%s: %s", fv_dtype_name((fv_dtype)dtype), message);
            CHECK_MESSAGE(test_write_file(shuffled, &in, &options, 11, &error) == FV_OK, "%s", error.message);
            CHECK(same_folders(path, shuffled));
            test_image_free(&in);
            test_image_free(&out);
        }
    free(path);
    free(shuffled);
}

TEST(options_that_do_not_go_together_are_refused) {
    static const struct {
        fv_write_options options;
        const char      *says;
    } cases[] = {
        { { .version = "0.3" }, "version = \"0.3\"" },
        { { .version = "0.4", .shard_ndim = 1, .shard = { 256 } }, "0.4 has none" },
        { { .shard_ndim = 1, .shard = { 200 } }, "multiple of the chunk, 128" },
        { { .shard_ndim = 4, .shard = { 2 } }, "shard has 4" },
        { { .shard_ndim = 1, .shard = { 1 << 20 } }, "one shard" },
        { { .levels = 2, .chunk_ndim = 1, .chunk = { 15 } }, "must be even" },
        { { .levels = 40 }, "levels = 40" },
    };
    for (int i = 0; i < FV_COUNT(cases); i++) {
        fv_image_type type;
        fv_writer    *writer;
        fv_error      error = { 0 };
        fv_image_type_init(&type, FV_FLOAT32, 3, (int64_t[]){ 1 << 20, 1 << 20, 1 << 20 });
        CHECK_INT(test_make_writer(&fv_format_zarr, "x.zarr", &type, &cases[i].options, &writer, &error), FV_ERROR_USAGE);
        CHECK_MESSAGE(strstr(error.message, cases[i].says), "case %d: %s", i, error.message);
    }
    fv_image_type type;
    fv_writer    *writer;
    fv_error      error = { 0 };
    fv_image_type_init(&type, FV_FLOAT32, 3, (int64_t[]){ 4, 4, 4 });
    strcpy(type.axis[0], "angle");
    CHECK_INT(test_make_writer(&fv_format_zarr, "x.zarr", &type, &(fv_write_options){ .levels = 2 }, &writer, &error),
              FV_ERROR_USAGE);
    CHECK_MESSAGE(strstr(error.message, "t c z y x"), "%s", error.message);
}

TEST(a_damaged_shard_is_named_and_never_crashes) {
    test_image       in = test_image_new(FV_UINT16, 2, (int64_t[]){ 30, 40 }), out;
    fv_write_options options = { .chunk_ndim = 2, .chunk = { 8, 8 }, .shard_ndim = 2, .shard = { 16, 16 } };
    char            *path = in_folder("hurt.zarr"), *file = fv__sprintf("%s/0/c/1/1", path);
    fv_error         error = { 0 };
    fv_bytes         bytes = { 0 };
    uint64_t         state = 3;
    test_image_random_any(&in, 2);
    CHECK(test_write_file(path, &in, &options, 0, &error) == FV_OK);
    CHECK(fv__file_read_all(file, 100000, &bytes, NULL) == FV_OK);
    for (size_t size = 0; size < bytes.size; size += 1 + size / 30) { /* cut */
        CHECK(fv__file_write_all(file, bytes.data, size, false, NULL) == FV_OK);
        CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_ERROR_INPUT, "cut to %zu was taken", size);
        CHECK_MESSAGE(strstr(error.message, "0/c/1/1"), "%s", error.message);
    }
    for (int i = 0; i < 500; i++) { /* every bit counts: zstd and the index have checksums */
        size_t  at = test_random(&state) % bytes.size;
        uint8_t bit = (uint8_t)(1 << test_random(&state) % 8);
        bytes.data[at] ^= bit;
        CHECK(fv__file_write_all(file, bytes.data, bytes.size, false, NULL) == FV_OK);
        fv_status status = test_read_file(path, &out, &error);
        CHECK_MESSAGE(status == FV_OK || strstr(error.message, "0/c/1/1"), "%s", error.message);
        if (status == FV_OK) {
            CHECK_MESSAGE(test_same_pixels(&in, &out), "byte %zu changed gave other voxels", at);
            test_image_free(&out);
        }
        bytes.data[at] ^= bit;
    }
    fv__bytes_release(&bytes);
    test_image_free(&in);
    free(file);
    free(path);
}

TEST(contents_name_levels_shards_and_what_cannot_be_read) {
    test_image       in = test_image_new(FV_UINT8, 2, (int64_t[]){ 40, 40 });
    fv_write_options options = { .levels = 2, .chunk_ndim = 1, .chunk = { 8 }, .shard_ndim = 1, .shard = { 16 } };
    char    *path = in_folder("list.zarr"), *other = fv__sprintf("%s/more/odd", path), *json = fv__sprintf("%s/zarr.json", other);
    fv_bytes lines = { 0 };
    fv_error error = { 0 };
    CHECK(test_write_file(path, &in, &options, 0, &error) == FV_OK);
    CHECK(fv__path_make_folders(other, NULL) == FV_OK);
    CHECK(fv__file_write_all(json, "{\"node_type\": \"array\"}", 22, false, NULL) == FV_OK);
    char *group = fv__sprintf("%s/more/zarr.json", path);
    CHECK(fv__file_write_all(group, "{\"node_type\": \"group\"}", 22, false, NULL) == FV_OK);
    CHECK_MESSAGE(fv_format_zarr.contents(path, &lines, &error) == FV_OK, "%s", error.message);
    fv__bytes_append(&lines, "", 1);
    const char *text = (char *)lines.data;
    CHECK_MESSAGE(strstr(text, "0: uint8, 40 x 40, chunks of 8 x 8 in shards of 16 x 16, zstd, level 0 of an image\n"), "%s",
                  text);
    CHECK_MESSAGE(strstr(text, "1: uint8, 20 x 20, chunks of 8 x 8 in shards of 16 x 16, zstd, level 1 of an image\n"), "%s",
                  text);
    CHECK_MESSAGE(strstr(text, "more/odd: cannot be read: "), "%s", text);
    fv__bytes_release(&lines);
    test_image_free(&in);
    free(group);
    free(json);
    free(other);
    free(path);
}

TEST_MAIN
