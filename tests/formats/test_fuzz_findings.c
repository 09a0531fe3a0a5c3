/* Inputs that once did harm to a reader, as the fuzzer found them (tests/fuzz/findings), through what it does with them. */
#include "base/base.h"
#include "base/file.h"
#include "support/fuzz_target.h"
#include "support/test.h"
#include <dirent.h>

static const char folder[] = "tests/fuzz/findings";

/* TARGET-WHAT: the name says which reader it was. */
static bool again(const char *name) {
    char     target[32];
    fv_bytes bytes = { 0 };
    fv_error error = { 0 };
    char    *path = fv__sprintf("%s/%s", folder, name);
    bool     read = fv__file_read_all(path, 1 << 20, &bytes, &error) == FV_OK;
    snprintf(target, sizeof target, "%.*s", (int)strcspn(name, "-"), name);
    fuzz_begin(target);
    if (read) fuzz_one(bytes.data, bytes.size);
    fv__bytes_release(&bytes);
    free(path);
    return read;
}

TEST(what_the_fuzzer_found_does_no_harm_any_more) {
    DIR *listed = opendir(folder);
    int  tried = 0;
    if (!listed) SKIP("not run in the folder of the sources");
    for (struct dirent *entry; (entry = readdir(listed));)
        if (*entry->d_name != '.') {
            CHECK_MESSAGE(again(entry->d_name), "%s cannot be read", entry->d_name);
            tried++;
        }
    closedir(listed);
    CHECK(tried > 1);
}

TEST_MAIN
