/* One input of a fuzz target: a file of any registered reader, a program of the language, or what is said to the service of
 * devices. Ends the process when something does not hold that must; crashes are for the sanitizers to find.
 *
 * A file of some formats consists of several (Zarr, detached headers). Then the input is a bundle of parts, each "NAME NEWLINE
 * contents", with the bytes ff 46 56 ff between; the first is what is opened, unless the folder itself is.
 */
#ifndef FV_TEST_FUZZ_TARGET_H
#define FV_TEST_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

void fuzz_begin(const char *target); /* the extension or name of a format, "language" or "devices" */
void fuzz_one(const uint8_t *data, size_t size);

#endif
