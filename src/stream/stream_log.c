/* Batches of a stream become durable. */
#include "stream/stream_log.h"
#include "base/file.h"
#include "base/take.h"
#include "store/lease.h"
#include "stream/stream_tables.h"
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAGIC = 0x46764c67, LONGEST = 1 << 30, SHORTEN = 64 << 20, RESERVE = 256 << 10 };
typedef enum record_kind {
    RECORD_SNAPSHOT = 1,
    RECORD_BATCH,
    RECORD_APPLYING,
    RECORD_APPLIED,
    RECORD_SENDING,
    RECORD_SENT
} record_kind;

typedef struct record { /* stands before each record's bytes */
    uint32_t magic, kind;
    uint64_t number, size;
    fv_hash  check;
} record;

struct fv_stream_log {
    char            *folder, *name, *path;
    fv_lease        *lease;
    fv_fence        *fence;
    int              fd;
    int64_t          length;   /* of its records */
    int64_t          reserved; /* bytes of the file: behind the records are zeros */
    uint64_t         number;   /* of the last batch */
    fv_stream_tables tables;   /* rows that wait; and where files of lines end */
    fv_stream_tables ready;    /* rows that are on their way to the tables */
    uint64_t         until;    /* up to this batch; 0: none are */
    fv_lease       **leases;   /* of files of lines, which one stream at a time writes */
    char           **leased;
    int              nleases;
    fv_bytes         scratch;
    fv_ask_sent     *ask; /* NULL: nothing is sent */
    void            *context;
};

/* ---------------------------------------------------------------- state */

void fv__state_release(fv_stream_state *state) {
    fv__seen_release(&state->seen);
    for (int i = 0; i < state->npositions; i++) free(state->positions[i].topic);
    free(state->positions);
    *state = (fv_stream_state){ 0 };
}

static fv_position *position_of(const fv_stream_state *state, const char *topic, int partition) {
    for (int i = 0; i < state->npositions; i++)
        if (state->positions[i].partition == partition && !strcmp(state->positions[i].topic, topic)) return &state->positions[i];
    return NULL;
}

int64_t fv__state_position(const fv_stream_state *state, const char *topic, int partition) {
    const fv_position *p = position_of(state, topic, partition);
    return p ? p->offset : -1;
}

void fv__state_advance(fv_stream_state *state, const char *topic, int partition, int64_t offset) {
    fv_position *p = position_of(state, topic, partition);
    if (!p) {
        state->positions = fv__realloc(state->positions, (size_t)(state->npositions + 1) * sizeof *state->positions);
        p = &state->positions[state->npositions++];
        *p = (fv_position){ fv__strdup(topic), partition, offset };
    }
    p->offset = FV_MAX(p->offset, offset);
}

void fv__state_merge(fv_stream_state *state, const fv_stream_state *other) {
    for (int i = 0; i < other->npositions; i++)
        fv__state_advance(state, other->positions[i].topic, other->positions[i].partition, other->positions[i].offset);
    for (int64_t i = 0; i < other->seen.nscans; i++)
        for (int64_t r = 0; r < other->seen.scans[i].nranges; r++)
            fv__seen_add_range(&state->seen, other->seen.scans[i].name, other->seen.scans[i].range[2 * r],
                               other->seen.scans[i].range[2 * r + 1]);
}

/* ---------------------------------------------------------------- bytes of records */

static void put_number(fv_bytes *out, int64_t value) { fv__bytes_append(out, &value, sizeof value); }

static void put_text(fv_bytes *out, const char *text) {
    int64_t length = text ? (int64_t)strlen(text) + 1 : 0;
    put_number(out, length);
    if (length) fv__bytes_append(out, text, (size_t)length);
}

typedef struct bytes_in { /* what is left of a record whose checksum is right */
    const uint8_t *at, *end;
} bytes_in;

static int64_t get_number(bytes_in *in) {
    int64_t value = 0;
    if (in->end - in->at >= (int64_t)sizeof value) memcpy(&value, in->at, sizeof value);
    in->at += sizeof value;
    return value;
}

static const char *get_text(bytes_in *in) {
    int64_t     length = get_number(in);
    const char *text = length ? (const char *)in->at : NULL;
    in->at += length;
    return text;
}

void fv__log_batch_mark(fv_log_batch *batch, const char *prefix, const char *scan, int64_t index) {
    char *marked = fv__sprintf("%s%s", prefix, scan);
    put_text(&batch->marks, marked);
    put_number(&batch->marks, index);
    batch->nmarks++;
    free(marked);
}

void fv__log_batch_position(fv_log_batch *batch, const char *topic, int partition, int64_t offset) {
    put_text(&batch->positions, topic);
    put_number(&batch->positions, partition);
    put_number(&batch->positions, offset);
    batch->npositions++;
}

void fv__log_batch_table(fv_log_batch *batch, const fv_made_table *table) {
    fv_bytes *out = &batch->tables;
    put_text(out, table->file);
    put_text(out, table->table);
    put_number(out, table->type.ncolumns);
    for (int c = 0; c < table->type.ncolumns; c++) {
        put_text(out, table->type.column[c].name);
        put_number(out, table->type.column[c].kind);
    }
    put_number(out, table->nrows);
    put_number(out, (int64_t)table->rows.size);
    fv__bytes_append(out, table->rows.data, table->rows.size);
    batch->ntables++;
}

void fv__log_batch_clear(fv_log_batch *batch) {
    fv__bytes_clear(&batch->marks);
    fv__bytes_clear(&batch->positions);
    fv__bytes_clear(&batch->tables);
    batch->nmarks = batch->npositions = batch->ntables = 0;
}

void fv__log_batch_release(fv_log_batch *batch) {
    fv__bytes_release(&batch->marks);
    fv__bytes_release(&batch->positions);
    fv__bytes_release(&batch->tables);
}

static void put_snapshot(fv_bytes *out, const fv_stream_state *state, const fv_stream_tables *tables) {
    put_number(out, state->npositions);
    for (int i = 0; i < state->npositions; i++) {
        put_text(out, state->positions[i].topic);
        put_number(out, state->positions[i].partition);
        put_number(out, state->positions[i].offset);
    }
    put_number(out, state->seen.nscans);
    for (int64_t i = 0; i < state->seen.nscans; i++) {
        const fv_seen_scan *scan = &state->seen.scans[i];
        put_text(out, scan->name);
        put_number(out, scan->nranges);
        for (int64_t r = 0; r < 2 * scan->nranges; r++) put_number(out, scan->range[r]);
    }
    put_number(out, tables->nends);
    for (int i = 0; i < tables->nends; i++) {
        put_text(out, tables->ends[i].file);
        put_number(out, tables->ends[i].length);
    }
}

/* ---------------------------------------------------------------- reading */

static void get_positions(bytes_in *in, fv_stream_state *state) {
    for (int64_t n = get_number(in); n > 0; n--) {
        const char *topic = get_text(in);
        int         partition = (int)get_number(in);
        fv__state_advance(state, topic ? topic : "", partition, get_number(in));
    }
}

static void get_ends(bytes_in *in, fv_stream_tables *tables) {
    for (int64_t n = get_number(in); n > 0; n--) {
        const char *file = get_text(in);
        fv__tables_end(tables, file, get_number(in));
    }
}

static void get_snapshot(bytes_in *in, fv_stream_state *state, fv_stream_tables *tables) {
    get_positions(in, state);
    for (int64_t n = get_number(in); n > 0; n--) {
        const char *scan = get_text(in);
        for (int64_t r = get_number(in); r > 0; r--) {
            int64_t first = get_number(in);
            fv__seen_add_range(&state->seen, scan ? scan : "", first, get_number(in));
        }
    }
    get_ends(in, tables);
}

static void get_batch(bytes_in *in, fv_stream_state *state, fv_stream_tables *tables) {
    get_positions(in, state);
    for (int64_t n = get_number(in); n > 0; n--) {
        const char *scan = get_text(in);
        fv__seen_add(&state->seen, scan ? scan : "", get_number(in));
    }
    for (int64_t n = get_number(in); n > 0; n--) {
        const char   *file = get_text(in), *table = get_text(in);
        fv_table_type type; /* large, so that only what is used of it is touched */
        type.ncolumns = (int)get_number(in);
        type.metadata = NULL;
        for (int c = 0; c < type.ncolumns; c++) {
            const char *name = get_text(in);
            memset(&type.column[c], 0, sizeof type.column[c]);
            strncpy(type.column[c].name, name ? name : "", sizeof type.column[c].name - 1);
            type.column[c].kind = (fv_column_kind)get_number(in);
        }
        int64_t nrows = get_number(in), size = get_number(in);
        fv__tables_add(tables, file, table, &type, nrows, in->at, (size_t)size);
        in->at += size;
    }
}

/* Rows of batches are gathered as they were when they were last applied: up to each mark that said so. */
typedef struct replay {
    fv_stream_state *state;
    fv_stream_tables tables; /* of batches since the last ones that were applied */
    bool             applying;
    uint64_t         number, until; /* the last batch; the last one that was being applied */
    fv_stream_tables ready;         /* rows that were being applied when the process died */
    fv_bytes         sending;       /* a batch whose messages may have been sent */
} replay;

static void replay_release(replay *r) {
    fv__tables_release(&r->tables);
    fv__tables_release(&r->ready);
    fv__bytes_release(&r->sending);
}

static void take_sent(replay *r) {
    bytes_in in = { r->sending.data, r->sending.data + r->sending.size };
    if (r->sending.size) get_batch(&in, r->state, &r->tables);
    fv__bytes_clear(&r->sending);
}

static void take_record(replay *r, const record *head, const uint8_t *data) {
    bytes_in in = { data, data + head->size };
    r->number = FV_MAX(r->number, head->number);
    if (head->kind == RECORD_SNAPSHOT) get_snapshot(&in, r->state, &r->tables);
    if (head->kind == RECORD_BATCH) get_batch(&in, r->state, &r->tables);
    if (head->kind == RECORD_SENDING) {
        fv__bytes_clear(&r->sending);
        fv__bytes_append(&r->sending, data, head->size);
    }
    if (head->kind == RECORD_SENT) take_sent(r);
    if (head->kind == RECORD_APPLYING) {
        get_ends(&in, &r->tables);
        r->ready = r->tables;
        r->tables = (fv_stream_tables){ 0 };
        r->applying = true;
        r->until = head->number;
    }
    if (head->kind == RECORD_APPLIED && r->applying) {
        fv__tables_clear(&r->ready);
        for (int i = 0; i < r->ready.nends; i++) fv__tables_end(&r->tables, r->ready.ends[i].file, r->ready.ends[i].length);
        fv__tables_release(&r->ready);
        get_ends(&in, &r->tables);
        r->applying = false;
    }
}

static fv_status read_log(const char *path, replay *r, fv_error *error) {
    int       fd;
    int64_t   at = 0;
    fv_bytes  bytes = { 0 };
    fv_status status = FV_OK;
    record    head;
    FV_TRY(fv__file_open_read(path, &fd, error));
    while (status == FV_OK && pread(fd, &head, sizeof head, at) == (ssize_t)sizeof head && head.magic == MAGIC &&
           head.size < LONGEST) {
        fv__bytes_clear(&bytes);
        status = fv__bytes_need(&bytes, head.size + 1, error);
        if (status != FV_OK || pread(fd, bytes.data, head.size, at + (int64_t)sizeof head) != (ssize_t)head.size) break;
        if (!fv__hash_equal(fv__hash_bytes(bytes.data, head.size), head.check)) break;
        take_record(r, &head, bytes.data);
        at += (int64_t)(sizeof head + head.size);
    }
    fv__bytes_release(&bytes);
    close(fd);
    return status;
}

/* ---------------------------------------------------------------- writing */

bool fv__stream_log_ours(const fv_stream_log *log) { return fv__lease_held(log->lease); }

/* Room for a record and for many after it. One that takes the place of zeros which are on the disk changes neither the length of
 * the file nor where its blocks are, so its sync does not wait for the journal of the file system, in which everybody's new files
 * are. */
static fv_status reserve(fv_stream_log *log, int64_t size, fv_error *error) {
    static const uint8_t zeros[RESERVE];
    int64_t              end = log->length + size;
    if (end <= log->reserved) return FV_OK;
    FV_TRY(fv__file_write_at(log->fd, zeros, sizeof zeros, end, log->path, error));
    log->reserved = end + (int64_t)sizeof zeros;
    return FV_OK;
}

static fv_status append(fv_stream_log *log, record_kind kind, const fv_bytes *bytes, bool durable, fv_error *error) {
    record head = { MAGIC, kind, log->number, bytes->size,
                    fv__hash_bytes(bytes->data ? bytes->data : (const uint8_t *)"", bytes->size) };
    if (!fv__stream_log_ours(log))
        return fv_fail(error, FV_ERROR_IO, "%s was taken over by another process, which took this one for dead", log->path);
    FV_TRY(reserve(log, (int64_t)(sizeof head + bytes->size), error));
    FV_TRY(fv__file_write_at(log->fd, &head, sizeof head, log->length, log->path, error));
    if (bytes->size)
        FV_TRY(fv__file_write_at(log->fd, bytes->data, bytes->size, log->length + (int64_t)sizeof head, log->path, error));
    if (durable) FV_TRY(fv__file_sync(log->fd, log->path, error));
    log->length += (int64_t)(sizeof head + bytes->size);
    return FV_OK;
}

/* A log that holds nothing but where everything stands, in the place of the longer one. */
static fv_status write_anew(fv_stream_log *log, const fv_stream_state *state, fv_error *error) {
    char *temporary = fv__sprintf("%s.new", log->path);
    int   before = log->fd, fd;
    fv__bytes_clear(&log->scratch);
    put_snapshot(&log->scratch, state, &log->tables);
    fv_status status = fv__file_open_write(temporary, &fd, error);
    if (status == FV_OK) {
        int64_t length = log->length, reserved = log->reserved;
        log->fd = fd;
        log->length = log->reserved = 0;
        status = append(log, RECORD_SNAPSHOT, &log->scratch, true, error);
        if (status == FV_OK) status = fv__rename(temporary, log->path, error);
        if (status == FV_OK) status = fv__path_sync_folder(log->path, error);
        if (status != FV_OK) {
            close(fd);
            log->fd = before;
            log->length = length;
            log->reserved = reserved;
        } else if (before >= 0)
            close(before);
    }
    free(temporary);
    return status;
}

int64_t fv__stream_log_number(const fv_stream_log *log) { return (int64_t)log->number; }

void fv__stream_log_ask(fv_stream_log *log, fv_ask_sent *ask, void *context) {
    log->ask = ask;
    log->context = context;
}

fv_status fv__stream_log_sent(fv_stream_log *log, fv_error *error) {
    return append(log, RECORD_SENT, &(fv_bytes){ 0 }, false, error);
}

fv_status fv__stream_log_commit(fv_stream_log *log, const fv_log_batch *batch, bool sending, fv_error *error) {
    fv_bytes *out = &log->scratch;
    fv__bytes_clear(out);
    put_number(out, batch->npositions);
    fv__bytes_append(out, batch->positions.data, batch->positions.size);
    put_number(out, batch->nmarks);
    fv__bytes_append(out, batch->marks.data, batch->marks.size);
    put_number(out, batch->ntables);
    fv__bytes_append(out, batch->tables.data, batch->tables.size);
    FV_TRY(fv__fault_point("stream.commit", error));
    log->number++;
    fv_status status = append(log, sending ? RECORD_SENDING : RECORD_BATCH, out, true, error);
    if (status != FV_OK) {
        log->number--;
        return status;
    }
    fv_stream_state none = { 0 };
    bytes_in        in = { batch->tables.data, batch->tables.data + batch->tables.size };
    fv_bytes        tables = { 0 };
    put_number(&tables, 0);
    put_number(&tables, 0);
    put_number(&tables, batch->ntables);
    fv__bytes_append(&tables, in.at, (size_t)(in.end - in.at));
    in = (bytes_in){ tables.data, tables.data + tables.size };
    get_batch(&in, &none, &log->tables);
    fv__bytes_release(&tables);
    return FV_OK;
}

bool fv__stream_log_pending(const fv_stream_log *log) { return log->tables.nrows > 0 || log->until; }

/* Who else writes the file has to end first. */
static fv_status lease_file(fv_stream_log *log, const char *file, fv_error *error) {
    bool taken;
    for (int i = 0; i < log->nleases; i++)
        if (!strcmp(log->leased[i], file)) return FV_OK;
    log->leases = fv__realloc(log->leases, (size_t)(log->nleases + 1) * sizeof(fv_lease *));
    log->leased = fv__realloc(log->leased, (size_t)(log->nleases + 1) * sizeof *log->leased);
    FV_TRY(fv__outputs_make_parent(file, error));
    fv_status status = fv__lease_acquire(file, &log->leases[log->nleases], &taken, error);
    if (status == FV_ERROR_BUSY)
        return fv_fail(error, FV_ERROR_USAGE, "%s is written by another stream; several can share tables in SQLite (.db)", file);
    FV_TRY(status);
    log->leased[log->nleases++] = fv__strdup(file);
    return FV_OK;
}

/* Where files of lines end before anything is added to them. */
static fv_status note_ends(fv_stream_log *log, fv_stream_tables *tables, fv_error *error) {
    for (int i = 0; i < tables->ngrown; i++) {
        const char *file = tables->grown[i].file;
        if (fv__table_format_for(file)->in_place) continue;
        FV_TRY(lease_file(log, file, error));
        fv__tables_end(tables, file, fv__tables_end_of(tables, file));
    }
    return FV_OK;
}

static void put_ends(fv_bytes *out, const fv_stream_tables *tables) {
    put_number(out, tables->nends);
    for (int i = 0; i < tables->nends; i++) {
        put_text(out, tables->ends[i].file);
        put_number(out, tables->ends[i].length);
    }
}

/* The rows that wait become those that are on their way, once a record says so. */
static fv_status begin_apply(fv_stream_log *log, fv_error *error) {
    FV_TRY(note_ends(log, &log->tables, error));
    fv__bytes_clear(&log->scratch);
    put_ends(&log->scratch, &log->tables);
    FV_TRY(append(log, RECORD_APPLYING, &log->scratch, true, error));
    log->ready = log->tables;
    log->tables = (fv_stream_tables){ 0 };
    log->until = log->number;
    return FV_OK;
}

fv_status fv__stream_log_apply(fv_stream_log *log, const fv_stream_state *state, int64_t *rows, fv_error *error) {
    bool again = log->until > 0;
    *rows = 0;
    if (!again && !log->tables.nrows) return FV_OK;
    if (again)
        FV_TRY(fv__tables_cut(&log->ready, error)); /* the last time something was in the way */
    else
        FV_TRY(begin_apply(log, error));
    FV_TRY(fv__fault_point("stream.apply", error));
    FV_TRY(fv__tables_write(&log->ready, log->name, log->until, error));
    FV_TRY(fv__fault_point("stream.applied", error));
    *rows = log->ready.nrows;
    for (int i = 0; i < log->ready.nends; i++) fv__tables_end(&log->tables, log->ready.ends[i].file, log->ready.ends[i].length);
    fv__tables_release(&log->ready);
    log->until = 0;
    fv__bytes_clear(&log->scratch);
    put_ends(&log->scratch, &log->tables);
    FV_TRY(append(log, RECORD_APPLIED, &log->scratch, false, error));
    return log->length > SHORTEN && !log->tables.nrows ? write_anew(log, state, error) : FV_OK;
}

/* ---------------------------------------------------------------- logs of others */

/* Rows that a dead process had promised and not delivered. */
static fv_status deliver(const char *name, replay *r, fv_error *error) {
    if (r->applying) {
        FV_TRY(fv__tables_cut(&r->ready, error));
        FV_TRY(fv__tables_write(&r->ready, name, r->until, error));
        for (int i = 0; i < r->ready.nends; i++) fv__tables_end(&r->tables, r->ready.ends[i].file, r->ready.ends[i].length);
    } else
        FV_TRY(fv__tables_cut(&r->tables, error));
    return r->tables.nrows ? fv__tables_write(&r->tables, name, r->number, error) : FV_OK;
}

static fv_status take_over(fv_stream_log *log, const char *path, const char *name, fv_stream_state *state, fv_error *error) {
    replay    r = { .state = state };
    fv_status status = read_log(path, &r, error);
    bool      sent = false;
    if (status == FV_OK && r.sending.size && log->ask) status = log->ask(log->context, name, (int64_t)r.number, &sent, error);
    if (sent) take_sent(&r);
    if (status == FV_OK) status = deliver(name, &r, error);
    for (int i = 0; i < r.tables.nends && status == FV_OK; i++)
        fv__tables_end(&log->tables, r.tables.ends[i].file, r.tables.ends[i].length);
    replay_release(&r);
    fv__bytes_clear(&log->scratch);
    put_snapshot(&log->scratch, state, &log->tables);
    if (status == FV_OK) status = append(log, RECORD_SNAPSHOT, &log->scratch, true, error);
    if (status == FV_OK) fv__fence_remove(log->folder, name);
    return status == FV_OK ? fv__path_remove(path, error) : status;
}

fv_fence *fv__stream_log_fence(const fv_stream_log *log) { return log->fence; }

static fv_status read_living(const fv_stream_log *log, const char *path, const char *name, int partition, fv_stream_state *living,
                             fv_error *error) {
    replay r = { .state = living };
    int    fence;
    FV_TRY(fv__fence_take(log->folder, name, partition, &fence, error));
    fv_status status = read_log(path, &r, error);
    if (fence >= 0) close(fence);
    replay_release(&r);
    return status != FV_OK && !fv__file_exists(path) ? FV_OK : status; /* its owner has just gone */
}

/* A log of another process: a dead one's is taken over, a living one's is only read. */
static fv_status learn_from(fv_stream_log *log, const char *file, int partition, fv_stream_state *dead_state,
                            fv_stream_state *living, fv_error *error) {
    char     *path = fv__path_inside(log->folder, file), *name = fv__sprintf("%.*s", (int)strlen(file) - 4, file);
    fv_lease *lease = NULL;
    fv_hash   dead;
    fv_error  why = { 0 };
    fv_status status = fv__lease_try(path, &lease, &dead, &why);
    if (status == FV_OK)
        status = fv__file_exists(path) ? take_over(log, path, name, dead_state, error) : FV_OK;
    else if (status == FV_ERROR_BUSY)
        status = read_living(log, path, name, partition, living, error);
    else
        *error = why;
    if (lease) fv__lease_release(lease);
    free(path);
    free(name);
    return status;
}

fv_status fv__stream_log_learn(fv_stream_log *log, int partition, fv_stream_state *dead, fv_stream_state *living,
                               fv_error *error) {
    DIR      *folder = opendir(log->folder);
    fv_status status = FV_OK;
    if (!folder) return fv_fail(error, FV_ERROR_IO, "%s cannot be looked into", log->folder);
    for (const struct dirent *entry; status == FV_OK && (entry = readdir(folder));) {
        size_t length = strlen(entry->d_name);
        bool   ours = !strcmp(entry->d_name, fv__path_name(log->path));
        if (length > 4 && entry->d_name[0] != '.' && !strcmp(entry->d_name + length - 4, ".log") && !ours)
            status = learn_from(log, entry->d_name, partition, dead, living, error);
    }
    closedir(folder);
    return status;
}

fv_status fv__stream_log_open(const char *folder, const char *name, fv_stream_log **out, fv_error *error) {
    fv_stream_log *log = fv__calloc(sizeof *log);
    bool           taken;
    log->folder = fv__strdup(folder);
    log->name = fv__strdup(name);
    log->path = fv__sprintf("%s/%s.log", folder, name);
    log->fd = -1;
    fv_status status = fv__path_make_folders(folder, error);
    if (status == FV_OK) status = fv__lease_acquire(log->path, &log->lease, &taken, error);
    if (status == FV_OK) status = fv__fence_open(folder, name, &log->fence, error); /* before there is a log to be read */
    if (status == FV_OK) status = write_anew(log, &(fv_stream_state){ 0 }, error);
    if (status != FV_OK) {
        fv__stream_log_close(log);
        return status;
    }
    *out = log;
    return FV_OK;
}

void fv__stream_log_close(fv_stream_log *log) {
    if (!log) return;
    if (log->fd >= 0) close(log->fd);
    fv__fence_close(log->fence);
    if (log->lease) fv__lease_release(log->lease);
    for (int i = 0; i < log->nleases; i++) {
        fv__lease_release(log->leases[i]);
        free(log->leased[i]);
    }
    free(log->leases);
    free(log->leased);
    fv__tables_release(&log->tables);
    fv__tables_release(&log->ready);
    fv__bytes_release(&log->scratch);
    free(log->folder);
    free(log->name);
    free(log->path);
    free(log);
}
