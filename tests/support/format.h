/* Writes a whole image with a format and reads it back, without planner or engine.
 *
 *     test_image in = test_image_new(FV_UINT16, 2, (int64_t[]){ 40, 30 }), out = { 0 };
 *     CHECK(test_write_file(path, &in, NULL, 0, &error) == FV_OK);
 *     CHECK(test_read_file(path, &out, &error) == FV_OK);
 *     CHECK(test_same_pixels(&in, &out));
 */
#ifndef FV_TEST_FORMAT_H
#define FV_TEST_FORMAT_H

#include "op/format.h"
#include "support/apply.h"

/* The writer of an image under its own name: layout, then create. */
fv_status test_make_writer(const fv_format *format, const char *path, const fv_image_type *type, const fv_write_options *options,
                           fv_writer **writer, fv_error *error);

/* Finds the format by the extension, then: layout, create; begin, put of every piece, sync, finish; or encode of every piece and
 * assemble. seed 0: in order, from the image itself. Otherwise pieces come in random order, each as a window into a larger
 * block filled with poison, and formats that take any region get boxes of a random lattice. The file must be the same. */
fv_status test_write_file(const char *path, const test_image *image, const fv_write_options *options, uint64_t seed,
                          fv_error *error);

/* The whole image, in one read; free with test_image_free. path may end in a path inside the file after "::". */
fv_status test_read_file(const char *path, test_image *image, fv_error *error);
/* One region, read into a window of a poisoned block; false if the poison around was touched, else data equals the crop. */
fv_status test_read_region(fv_reader *reader, const fv_region *region, test_image *crop, fv_error *error);

/* Reads `rounds` random regions (slabs in order if sequential) and compares with the whole; message says where not. */
bool test_regions_equal_crops(const char *path, int rounds, uint64_t seed, char message[256]);

bool test_same_pixels(const test_image *a, const test_image *b); /* dtype, shape and every byte */
/* Fills complex types too, which test_image_random leaves zero. */
void test_image_random_any(test_image *image, uint64_t seed);
bool test_same_files(const char *a, const char *b);

/* Opens and reads the file at every truncated length below `size` (all, or `samples` of them) and with `flips` random changes
 * of bits. Each must give an image or an error with a message; crashes are for the sanitizer to find. Returns false and says
 * why in message when an error has none. extension names the copies. */
bool test_survives_damage(const char *path, const char *extension, int samples, int flips, uint64_t seed, char message[256]);

#endif
