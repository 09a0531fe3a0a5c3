/* Writing the record of a run: one log of slots per process. */
#include "base/file.h"
#include "record/record_log.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = 1 << 16 };
#define OFTEN 0.25 /* seconds after which what was told is written, for those who watch */

struct fv_record {
    char           *path;
    int             fd;
    pthread_mutex_t mutex;
    fv_bytes        buffer;
    int64_t         end; /* where the buffer goes */
    uint64_t        facts;
    double          flushed;              /* when */
    fv_error        failure;              /* the first; code FV_OK: none */
    fv_spent        spent[FV_MOST_SPENT]; /* since it was last written */
    int             nspent;
    int             noutputs;
    fv_bytes        nodes, stages; /* fv_node_spent, fv_stage_facts: the same */
    fv_lease_facts  leases;        /* the same */
};

/* What this process takes right now. */
static void append_memory(fv_record *record) {
    char            text[64] = "";
    long long       pages = 0;
    struct timespec now;
    int             fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    if (read(fd, text, sizeof text - 1) > 0) sscanf(text, "%*s %lld", &pages);
    close(fd);
    clock_gettime(CLOCK_REALTIME, &now);
    fv__memory_slot slot = { .magic = FV__RECORD_MAGIC, .kind = FV__MEMORY };
    slot.time = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    slot.resident = pages * sysconf(_SC_PAGESIZE);
    fv__slot_seal(&slot);
    fv__bytes_append(&record->buffer, &slot, FV_SLOT);
}

fv_status fv__record_open(const char *folder, const char *worker, fv_record **result, fv_error *error) {
    *result = NULL;
    FV_TRY(fv__path_make_folders(folder, error));
    char *path = fv__sprintf("%s/task-%s.log", folder, worker);
    int   fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    if (size < 0) {
        fv_status status = fv_fail(error, FV_ERROR_IO, "cannot open %s: %s", path, strerror(errno));
        if (fd >= 0) close(fd);
        free(path);
        return status;
    }
    fv_record *record = fv__calloc(sizeof *record);
    record->path = path;
    record->fd = fd;
    record->end = (size + FV_SLOT - 1) / FV_SLOT * FV_SLOT; /* after what an earlier process of that name has left */
    record->facts = (uint64_t)(record->end / FV_SLOT);
    record->flushed = fv__now();
    pthread_mutex_init(&record->mutex, NULL);
    append_memory(record);
    *result = record;
    return FV_OK;
}

void fv__spent_add(fv_spent *list, int *count, const char *op, double seconds) {
    int i = 0;
    while (i < *count && strncmp(list[i].op, op, sizeof list[i].op - 1)) i++;
    if (i == FV_MOST_SPENT) return;
    if (i == *count) {
        list[(*count)++] = (fv_spent){ .seconds = 0 };
        snprintf(list[i].op, sizeof list[i].op, "%s", op);
    }
    list[i].seconds += seconds;
}

static void append_sums(fv_record *record) {
    const fv_node_spent  *nodes = (const fv_node_spent *)(const void *)record->nodes.data;
    const fv_stage_facts *stages = (const fv_stage_facts *)(const void *)record->stages.data;
    for (size_t i = 0; i < record->nodes.size / sizeof *nodes; i++) {
        fv__node_slot slot = { .magic = FV__RECORD_MAGIC, .kind = FV__NODE, .spent = nodes[i] };
        fv__slot_seal(&slot);
        fv__bytes_append(&record->buffer, &slot, FV_SLOT);
    }
    for (size_t i = 0; i < record->stages.size / sizeof *stages; i++) {
        fv__stage_slot slot = { .magic = FV__RECORD_MAGIC, .kind = FV__STAGE, .facts = stages[i] };
        fv__slot_seal(&slot);
        fv__bytes_append(&record->buffer, &slot, FV_SLOT);
    }
    fv__bytes_clear(&record->nodes);
    fv__bytes_clear(&record->stages);
    if (record->leases.leases) {
        fv__lease_slot slot = { .magic = FV__RECORD_MAGIC, .kind = FV__LEASE, .facts = record->leases };
        fv__slot_seal(&slot);
        fv__bytes_append(&record->buffer, &slot, FV_SLOT);
    }
    record->leases = (fv_lease_facts){ 0 };
}

static void append_spent(fv_record *record) {
    for (int i = 0; i < record->nspent; i++) {
        fv__spent_slot slot = { .magic = FV__RECORD_MAGIC, .kind = FV__SPENT, .spent = record->spent[i] };
        fv__slot_seal(&slot);
        fv__bytes_append(&record->buffer, &slot, FV_SLOT);
    }
    record->nspent = 0;
}

/* Mutex held; released while writing, so that others go on meanwhile. */
static void write_buffer(fv_record *record) {
    append_spent(record);
    append_sums(record);
    append_memory(record);
    fv_bytes out = record->buffer;
    int64_t  offset = record->end;
    record->buffer = (fv_bytes){ 0 };
    record->end += (int64_t)out.size;
    record->flushed = fv__now();
    pthread_mutex_unlock(&record->mutex);
    fv_error  error;
    fv_status status = out.size ? fv__file_write_at(record->fd, out.data, out.size, offset, record->path, &error) : FV_OK;
    fv__bytes_clear(&out);
    pthread_mutex_lock(&record->mutex);
    if (status != FV_OK && record->failure.code == FV_OK) record->failure = error;
    if (record->buffer.capacity == 0)
        record->buffer = out;
    else
        fv__bytes_release(&out);
}

static void append(fv_record *record, const void *slot) {
    fv__bytes_append(&record->buffer, slot, FV_SLOT);
    if (record->buffer.size >= BUFFER) write_buffer(record);
}

static void flush_old(fv_record *record) {
    if (fv__now() - record->flushed > OFTEN) write_buffer(record);
}

void fv__record_task(fv_record *record, const fv_task_facts *f) {
    if (!record) return;
    fv__task_slot slot = {
        FV__RECORD_MAGIC, FV__TASK, f->key,        f->item,          f->stage,  f->task,   f->start,           f->wait, f->read,
        f->compute,       f->write, f->bytes_read, f->bytes_written, f->memory, f->worker, (int32_t)f->status, 0,
    };
    fv__slot_seal(&slot);
    pthread_mutex_lock(&record->mutex);
    record->leases.leases += f->leases;
    record->leases.leased += (double)f->leased;
    record->leases.queued += (double)f->queued;
    append(record, &slot);
    flush_old(record);
    pthread_mutex_unlock(&record->mutex);
}

void fv__record_fact(fv_record *record, const char *name, const char *value) {
    if (!record) return;
    char  *text = fv__sprintf("%s%s", name, value);
    size_t length = strlen(text);
    pthread_mutex_lock(&record->mutex);
    fv__fact_slot slot = { .magic = FV__RECORD_MAGIC, .kind = FV__FACT, .number = record->facts++ };
    slot.name = (uint32_t)strlen(name);
    slot.parts = (uint32_t)((length + FV__FACT_TEXT - 1) / FV__FACT_TEXT);
    for (size_t at = 0; at < length; at += FV__FACT_TEXT, slot.part++) {
        slot.size = (uint32_t)FV_MIN(length - at, (size_t)FV__FACT_TEXT);
        memset(slot.text, 0, FV__FACT_TEXT);
        memcpy(slot.text, text + at, slot.size);
        fv__slot_seal(&slot);
        fv__bytes_append(&record->buffer, &slot, FV_SLOT); /* all together, whatever other threads append */
    }
    if (record->buffer.size >= BUFFER) write_buffer(record);
    flush_old(record);
    pthread_mutex_unlock(&record->mutex);
    free(text);
}

void fv__record_output(fv_record *record, const char *path) {
    if (!record) return;
    pthread_mutex_lock(&record->mutex);
    bool named = record->noutputs++ < FV_MOST_OUTPUTS;
    pthread_mutex_unlock(&record->mutex);
    if (named) fv__record_fact(record, "output", path);
}

void fv__record_spent(fv_record *record, const char *op, double seconds) {
    if (!record) return;
    pthread_mutex_lock(&record->mutex);
    fv__spent_add(record->spent, &record->nspent, op, seconds);
    pthread_mutex_unlock(&record->mutex);
}

void fv__record_node(fv_record *record, int64_t part, int64_t node, double seconds) {
    if (!record) return;
    pthread_mutex_lock(&record->mutex);
    fv_node_spent *all = (fv_node_spent *)(void *)record->nodes.data;
    size_t         i = 0, count = record->nodes.size / sizeof *all;
    while (i < count && (all[i].node != node || all[i].part != part)) i++;
    if (i < count)
        all[i].seconds += seconds;
    else
        fv__bytes_append(&record->nodes, &(fv_node_spent){ part, node, seconds }, sizeof *all);
    pthread_mutex_unlock(&record->mutex);
}

void fv__record_stage(fv_record *record, const fv_stage_facts *facts) {
    if (!record) return;
    pthread_mutex_lock(&record->mutex);
    fv_stage_facts *all = (fv_stage_facts *)(void *)record->stages.data;
    size_t          i = 0, count = record->stages.size / sizeof *all;
    while (i < count && (all[i].stage != facts->stage || all[i].part != facts->part)) i++;
    if (i < count) {
        all[i].items += facts->items;
        all[i].tasks += facts->tasks;
        all[i].found += facts->found;
        all[i].spared += facts->spared;
    } else
        fv__bytes_append(&record->stages, facts, sizeof *facts);
    flush_old(record);
    pthread_mutex_unlock(&record->mutex);
}

void fv__record_residual(fv_record *record, const fv_residual *residual) {
    if (!record) return;
    fv__residual_slot slot = { .magic = FV__RECORD_MAGIC, .kind = FV__RESIDUAL, .residual = *residual };
    fv__slot_seal(&slot);
    pthread_mutex_lock(&record->mutex);
    append(record, &slot);
    pthread_mutex_unlock(&record->mutex);
}

fv_status fv__record_flush(fv_record *record, fv_error *error) {
    if (!record) return FV_OK;
    pthread_mutex_lock(&record->mutex);
    write_buffer(record);
    fv_status status = record->failure.code;
    if (status != FV_OK && error) *error = record->failure;
    record->failure.code = FV_OK;
    pthread_mutex_unlock(&record->mutex);
    return status;
}

void fv__record_close(fv_record *record) {
    if (!record) return;
    fv__record_flush(record, NULL);
    close(record->fd);
    pthread_mutex_destroy(&record->mutex);
    fv__bytes_release(&record->buffer);
    fv__bytes_release(&record->nodes);
    fv__bytes_release(&record->stages);
    free(record->path);
    free(record);
}
