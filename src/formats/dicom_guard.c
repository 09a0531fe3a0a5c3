/* DCMTK in child processes: headers of many files at a time, compressed frames one by one. It has crashed on files with damaged
 * runs and with sequences nested by thousands. Frames that lie in the file as they are take no decoder and no child. */
#include "formats/dicom_parts.h"
#include "formats/expendable.h"
#include <stdio.h>
#include <sys/mman.h>

enum { FILES_AT_ONCE = 256 };

typedef struct { /* shared with the child */
    bool           good;
    fv_dicom_about about;
    char           message[FV_DICOM_MESSAGE];
} answer;

typedef struct {
    const fv_dicom_plugin *dicom;
    char *const           *paths;
    int64_t                count, index; /* index: of the frame */
    volatile int64_t      *done;         /* in shared memory, like what follows */
    answer                *answers;
    void                  *pixels;
    size_t                 size;
} question;

static void *share(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static fv_status no_memory(const char *path, fv_error *error) {
    return fv_fail(error, FV_ERROR_MEMORY, "%s: no memory to read it", path);
}

/* ---------------------------------------------------------------- headers */

static void look(void *context) {
    question *q = context;
    for (; *q->done < q->count; ++*q->done) {
        answer *a = &q->answers[*q->done];
        a->good = q->dicom->about(q->paths[*q->done], &a->about, a->message);
    }
}

static fv_status take_answers(question *q, fv_dicom_about *abouts, fv_error *error) {
    fv_error local = { 0 };
    fv__expendable_run(q->dicom->fork, "it", "DCMTK", look, q, &local);
    if (local.message[0])
        return fv_fail(error, FV_ERROR_INPUT, "%s is damaged: DCMTK crashes or comes to no end with it", q->paths[*q->done]);
    look(q); /* what no child could do */
    for (int64_t i = 0; i < q->count; i++) {
        if (!q->answers[i].good)
            return fv_fail(error, FV_ERROR_INPUT, "%s: no DICOM image, or damaged: %s", q->paths[i], q->answers[i].message);
        abouts[i] = q->answers[i].about;
    }
    return FV_OK;
}

fv_status fv__dicom_about_files(const fv_dicom_plugin *dicom, char *const *paths, int64_t count, fv_dicom_about *abouts,
                                fv_error *error) {
    size_t    size = sizeof(int64_t) * 2 + FILES_AT_ONCE * sizeof(answer);
    char     *memory = share(size);
    fv_status status = memory ? FV_OK : no_memory(paths[0], error);
    for (int64_t i = 0; i < count && status == FV_OK; i += FILES_AT_ONCE) {
        question q = { .dicom = dicom, .paths = paths + i, .count = FV_MIN(count - i, FILES_AT_ONCE) };
        q.done = (int64_t *)memory;
        q.answers = (answer *)(memory + sizeof(int64_t) * 2);
        memset(memory, 0, size);
        status = take_answers(&q, abouts + i, error);
    }
    if (memory) munmap(memory, size);
    return status;
}

/* ---------------------------------------------------------------- frames */

static void unpack(void *context) {
    question *q = context;
    if (*q->done) return;
    q->answers->good = q->dicom->frame(q->paths[0], q->index, q->pixels, q->size, q->answers->message);
    *q->done = 1;
}

static fv_status unpack_shared(question *q, char *memory, void *to, fv_error *error) {
    q->done = (int64_t *)memory;
    q->answers = (answer *)(memory + sizeof(int64_t) * 2);
    q->pixels = memory + sizeof(int64_t) * 2 + sizeof(answer);
    FV_TRY(fv__expendable_run(q->dicom->fork, q->paths[0], "DCMTK", unpack, q, error));
    unpack(q); /* if no child could */
    if (!q->answers->good) return fv_fail(error, FV_ERROR_INPUT, "%s: %s", q->paths[0], q->answers->message);
    memcpy(to, q->pixels, q->size);
    return FV_OK;
}

fv_status fv__dicom_frame(const fv_dicom_plugin *dicom, const fv_dicom_slice *slice, int64_t index, void *to, size_t size,
                          fv_error *error) {
    char message[FV_DICOM_MESSAGE] = "";
    if (!slice->about.packed) {
        if (dicom->frame(slice->path, index, to, size, message)) return FV_OK;
        return fv_fail(error, FV_ERROR_INPUT, "%s: %s", slice->path, message);
    }
    size_t   whole = sizeof(int64_t) * 2 + sizeof(answer) + size;
    char    *memory = share(whole);
    question q = { .dicom = dicom, .paths = &slice->path, .index = index, .size = size };
    if (!memory) return no_memory(slice->path, error);
    fv_status status = unpack_shared(&q, memory, to, error);
    munmap(memory, whole);
    return status;
}
