/* The fuzz targets, for libFuzzer. FOVEA_FUZZ says which: the extension of a format, "language" or "devices".
 *
 *     FOVEA_FUZZ=tif build-fuzz/fuzz -max_total_time=60 corpus/
 */
#include "support/fuzz_target.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    const char *target = getenv("FOVEA_FUZZ");
    if (!target) {
        fprintf(stderr, "fuzz: FOVEA_FUZZ names no target: an extension, language or devices\n");
        exit(2);
    }
    fuzz_begin(target);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_one(data, size);
    return 0;
}
