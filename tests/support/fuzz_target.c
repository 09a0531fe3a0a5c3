/* What a fuzz target does with one input; also what a test does again with every input that once did harm. */
#include "support/fuzz_target.h"
#include "devices/device_service.h"
#include "lang/ast.h"
#include "op/format.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST_READ = 1 << 20, MOST_ROWS = 10000, BREAK_SIZE = 4 };
static const char BREAK[] = "\xff"
                            "FV\xff";
static const char BUNDLES[] = " zarr mhd nhdr pvti pvd hdr st ";

static const char *target;
static char        extension[32];
static char       *folder; /* in memory where that is possible */
static bool        bundled;

static void remove_folder(void) {
    fv_error error;
    fv__path_remove(folder, &error);
}

/* What must hold and does not is a crash for the fuzzer to keep. */
static void insist(bool holds, const char *what, const char *more) {
    if (holds) return;
    fprintf(stderr, "fuzz: %s: %s\n", what, more);
    abort();
}

static void put_file(const char *name, const uint8_t *data, size_t size) {
    char    *path = fv__sprintf("%s/%s", folder, name);
    fv_error error;
    char    *slash = strrchr(path, '/');
    *slash = 0;
    fv__path_make_folders(path, &error);
    *slash = '/';
    FILE *file = fopen(path, "wb");
    if (file) {
        fwrite(data, 1, size, file);
        fclose(file);
    }
    free(path);
}

/* Names of parts stay inside the folder. */
static bool harmless(const char *name) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789._-/";
    return *name && *name != '/' && *name != '.' && !strstr(name, "..") && !strstr(name, "//") && strlen(name) < 60 &&
           strspn(name, allowed) == strlen(name) && name[strlen(name) - 1] != '/';
}

static void put_part(const uint8_t *data, size_t size, char *first) {
    const uint8_t *end = memchr(data, '\n', size);
    size_t         length = end ? (size_t)(end - data) : 0;
    char           name[64];
    if (!length || length >= sizeof name) return;
    snprintf(name, sizeof name, "%.*s", (int)length, (const char *)data);
    if (!harmless(name)) return;
    if (!*first) strcpy(first, name);
    put_file(name, end + 1, size - length - 1);
}

/* Puts the files of the input in an empty folder; the path to open. */
static char *lay_out(const uint8_t *data, size_t size) {
    char first[64] = "";
    if (!bundled) {
        snprintf(first, sizeof first, "fuzzed_2x3x4_uint8.%s", extension);
        put_file(first, data, size);
        return fv__sprintf("%s/%s", folder, first);
    }
    remove_folder();
    mkdir(folder, 0700);
    while (size) {
        const uint8_t *next = memmem(data, size, BREAK, BREAK_SIZE);
        size_t         length = next ? (size_t)(next - data) : size;
        put_part(data, length, first);
        if (!next) break;
        size -= length + BREAK_SIZE;
        data = next + BREAK_SIZE;
    }
    return strcmp(target, "zarr") ? fv__sprintf("%s/%s", folder, first) : fv__strdup(folder);
}

static void check_error(fv_status status, const fv_error *error) {
    insist(status == FV_OK || *error->message, target, "an error without a message");
}

/* ---------------------------------------------------------------- images */

static void read_region(fv_reader *reader, const fv_region *region) {
    size_t   size = (size_t)fv__region_voxels(region) * fv_dtype_size(reader->type.dtype);
    void    *memory = malloc(size);
    fv_error error = { 0 };
    fv_block block;
    fv__block_init(&block, reader->type.dtype, region, memory);
    check_error(reader->format->read(reader, &block, &error), &error);
    free(memory);
}

/* The whole image if it is small; else boxes in its first and last corner. */
static void read_image(fv_reader *reader) {
    const fv_image_type *type = &reader->type;
    int64_t              bytes = (int64_t)fv_dtype_size(type->dtype);
    fv_region            first = fv__region_whole(type), last = first;
    insist(type->ndim >= 1 && type->ndim <= FV_MAX_DIMS, target, "a number of axes that cannot be");
    for (int d = 0; d < type->ndim; d++) {
        insist(type->shape[d] >= 1 && reader->chunk[d] >= 1, target, "a shape or chunk below 1");
        insist(fv__mul(bytes, type->shape[d], &bytes), target, "an image that 63 bits cannot count");
        first.size[d] = last.size[d] = FV_MIN(type->shape[d], 5);
        last.start[d] = type->shape[d] - last.size[d];
    }
    if (bytes <= MOST_READ) {
        fv_region all = fv__region_whole(type);
        read_region(reader, &all);
    }
    read_region(reader, &first);
    if (!reader->sequential || bytes <= (64 << 20)) read_region(reader, &last);
}

static void try_image(const fv_format *format, const char *path) {
    fv_reader      *reader = NULL;
    fv_error        error = { 0 };
    fv_bytes        lines = { 0 };
    fv_read_options options = { 0 };
    fv_status       status = format->open(path, &options, &reader, &error);
    check_error(status, &error);
    if (status == FV_OK) {
        read_image(reader);
        format->close(reader);
    }
    error = (fv_error){ 0 };
    if (format->contents) check_error(format->contents(path, &lines, &error), &error);
    fv__bytes_release(&lines);
}

/* ---------------------------------------------------------------- tables */

static void read_rows(fv_table_reader *reader) {
    const fv_cell *cells;
    int64_t        nrows = 1, total = 0;
    fv_error       error = { 0 };
    fv_status      status = FV_OK;
    while (status == FV_OK && nrows && total < MOST_ROWS) {
        status = reader->source.next(&reader->source, &cells, &nrows, &error);
        insist(status != FV_OK || nrows >= 0, target, "a batch of less than no rows");
        total += nrows;
    }
    check_error(status, &error);
}

static void try_table(const fv_table_format *format, const char *path, const char *table) {
    fv_table_reader *reader = NULL;
    fv_error         error = { 0 };
    fv_status        status = format->open(path, table, &reader, &error);
    check_error(status, &error);
    if (status != FV_OK) return;
    read_rows(reader);
    format->close(reader);
}

static void try_tables(const fv_table_format *format, const char *path) {
    fv_bytes names = { 0 };
    fv_error error = { 0 };
    try_table(format, path, NULL);
    if (format->tables) check_error(format->tables(path, &names, &error), &error);
    for (size_t at = 0, tried = 0; at < names.size && tried < 4; tried++) {
        try_table(format, path, (const char *)names.data + at);
        at += strlen((const char *)names.data + at) + 1;
    }
    fv__bytes_release(&names);
}

/* ---------------------------------------------------------------- the language */

static void try_language(const uint8_t *data, size_t size) {
    char          *text = fv__sprintf("%.*s", (int)size, (const char *)data);
    fv_diagnostics found = { 0 };
    fv_bytes       out = { 0 };
    fv_program    *program = fv__program_parse("fuzz.fov", text, &found);
    fv__diagnostics_format(&found, "fuzz.fov", text, &out);
    insist(!found.count || out.size, target, "a diagnostic without a message");
    fv__bytes_release(&out);
    fv__diagnostics_release(&found);
    fv__program_free(program);
    free(text);
}

/* ---------------------------------------------------------------- the service of devices, in a thread */

static void *serve(void *path) {
    static const volatile int never;
    fv_broker_device          device = { .memory = 1 << 20, .speed = 1 };
    fv_error                  error = { 0 };
    snprintf(device.name, sizeof device.name, "one");
    fv_device_service_options options = {
        .socket = path, .record = "/dev/null", .devices = &device, .ndevices = 1, .stop = &never
    };
    insist(fv__device_service_run(&options, &error) == FV_OK, target, error.message);
    return NULL;
}

static void try_devices(const uint8_t *data, size_t size) {
    static pthread_t          thread;
    static struct sockaddr_un address = { .sun_family = AF_UNIX };
    char                      answer[4096];
    int                       fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), tries = 0;
    if (!*address.sun_path) {
        snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", folder);
        pthread_create(&thread, NULL, serve, address.sun_path);
    }
    while (connect(fd, (struct sockaddr *)&address, sizeof address) && ++tries < 1000) usleep(10000);
    insist(tries < 1000, target, "the service does not answer");
    for (size_t sent = 0; sent < size;) {
        ssize_t done = send(fd, data + sent, size - sent, MSG_NOSIGNAL);
        if (done <= 0) break;
        sent += (size_t)done;
    }
    shutdown(fd, SHUT_WR);
    while (recv(fd, answer, sizeof answer, 0) > 0) continue;
    close(fd);
}

/* ---------------------------------------------------------------- */

/* A format that shares its extension with tables is a target by its name. */
static const fv_format *named(const char *name) {
    for (int i = 0; i < fv__format_count(); i++)
        if (!strcmp(fv__format_at(i)->name, name)) return fv__format_at(i);
    return NULL;
}

void fuzz_begin(const char *name) {
    char             pattern[64];
    const fv_format *format = named(name);
    target = name;
    snprintf(extension, sizeof extension, "%s", format ? format->extensions : name);
    extension[strcspn(extension, " ")] = 0;
    snprintf(pattern, sizeof pattern, " %s ", name);
    bundled = strstr(BUNDLES, pattern) != NULL;
    fv__log_set(FV_LOG_QUIET);
    if (folder) return;
    folder = fv__sprintf("%s/fovea-fuzz-%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
    mkdir(folder, 0700);
    atexit(remove_folder);
}

void fuzz_one(const uint8_t *data, size_t size) {
    const fv_format       *format = named(target);
    const fv_table_format *table = NULL;
    fv_error               error;
    if (!strcmp(target, "language"))
        try_language(data, size);
    else if (!strcmp(target, "devices"))
        try_devices(data, size);
    else {
        char *path = lay_out(data, size), *name = fv__sprintf("x.%s", target);
        table = fv__table_format_for(name);
        if (format)
            try_image(format, path);
        else if (table && table->open)
            try_tables(table, path);
        else if (fv__format_for_reading(name, &format, &error) == FV_OK)
            try_image(format, path);
        else
            insist(false, target, "no format has this extension");
        free(path);
        free(name);
    }
}
