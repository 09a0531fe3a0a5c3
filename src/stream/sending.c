/* Results as messages, each batch of the log in one transaction: who reads committed messages sees those of every frame once.
 *
 * The log has the batch before it is sent, and says so. The transaction holds the number of the batch beside its messages. So if
 * the stream dies in between, whoever takes its log over ends the transaction that may be open, and asks for the number: either
 * the batch is done, or it is done again.
 */
#include "base/file.h"
#include "stream/stream_parts.h"
#include <stdlib.h>
#include <unistd.h>

/* Of one process of one stream, and of no other. */
static char *transaction_of(const fv_stream_run *run, const char *name) {
    return fv__sprintf("fovea-%s-%s", fv__path_name(run->folder), name);
}

static fv_status open_as(const fv_stream_run *run, const char *name, fv_sender **sender, fv_error *error) {
    char     *transaction = transaction_of(run, name);
    fv_status status = fv__sender_open(run->options->to, run->options->kafka_config, transaction, sender, error);
    free(transaction);
    return status;
}

fv_status fv__sending_open(fv_stream_run *run, fv_error *error) { return open_as(run, run->name, &run->to, error); }

fv_status fv__sending_was(void *context, const char *name, int64_t number, bool *sent, fv_error *error) {
    const fv_stream_run *run = context;
    fv_sender           *sender = NULL;
    int64_t              last = -1;
    FV_TRY(open_as(run, name, &sender, error));
    fv_status status = fv__sender_number(sender, &last, error);
    *sent = last >= number;
    fv__sender_close(sender);
    return status;
}

/* ---------------------------------------------------------------- messages */

static fv_status send_file(fv_stream_run *run, const fv_errand *work, const char *path, fv_error *error) {
    fv_bytes  bytes = { 0 };
    fv_header headers[] = { { "fovea-item", work->name, 0 }, { "fovea-file", path, 0 } };
    fv_status status = FV_OK;
    if (!fv__path_is_folder(path)) status = fv__file_read_all(path, (size_t)1 << 30, &bytes, error);
    if (status == FV_OK) status = fv__message_send(run->to, work->name, headers, 2, bytes.data, bytes.size, error);
    fv__bytes_release(&bytes);
    return status;
}

static fv_status send_one(fv_stream_run *run, const fv_errand *work, fv_error *error) {
    for (int i = 0; i < work->made.noutputs; i++) FV_TRY(send_file(run, work, work->made.outputs[i]->path, error));
    for (int i = 0; i < work->made.ntables && work->fate != FV_FATE_PREVIEW; i++) {
        const fv_made_table *table = &work->made.tables[i];
        fv_header            headers[] = { { "fovea-item", work->name, 0 },
                                           { "fovea-file", table->file ? table->file : "", 0 },
                                           { "fovea-table", table->table ? table->table : table->name, 0 } };
        if (table->alert && !table->nrows) continue;
        char     *json = fv__rows_json(&table->type, &table->rows);
        fv_status status = fv__message_send(run->to, work->name, headers, 3, json, strlen(json), error);
        free(json);
        FV_TRY(status);
    }
    return FV_OK;
}

bool fv__sending_any(const fv_errand *work) {
    return work->error.code == FV_OK && work->fate != FV_FATE_LEFT &&
           (work->made.noutputs || (work->made.ntables && work->fate != FV_FATE_PREVIEW));
}

/* ---------------------------------------------------------------- a batch */

enum { TRIES = 5 }; /* that a broker who answers does not take a batch: a message may be too large for it */

static fv_status send_all(fv_stream_run *run, const fv_errand *works, fv_error *error) {
    FV_TRY(fv__sender_begin(run->to, error));
    for (const fv_errand *w = works; w; w = w->next)
        if (fv__sending_any(w)) FV_TRY(send_one(run, w, error));
    return fv__sender_commit(run->to, fv__stream_log_number(run->log), error);
}

/* After a failure nobody knows whether the broker has the batch, until it answers again. Who takes the log over ends what we have
 * begun, and looks at the number then: if that has happened, nothing may be sent any more. */
static fv_status reopen(fv_stream_run *run, bool *sent, fv_error *error) {
    int64_t last = -1;
    fv__sender_close(run->to);
    run->to = NULL;
    FV_TRY(fv__sending_open(run, error));
    FV_TRY(fv__sender_number(run->to, &last, error));
    *sent = last >= fv__stream_log_number(run->log);
    return FV_OK;
}

/* Until the broker answers. */
static fv_status reopen_patiently(fv_stream_run *run, bool *sent, fv_error *error) {
    for (fv_status status; (status = reopen(run, sent, error)) != FV_OK; sleep(1))
        if (run->failed || (run->options->cancel && *run->options->cancel > 1)) return status;
    if (fv__stream_log_ours(run->log)) return FV_OK;
    return fv_fail(error, FV_ERROR_IO, "another process has taken this stream over, and sends its messages");
}

fv_status fv__sending_send(fv_stream_run *run, const fv_errand *works, fv_error *error) {
    FV_TRY(fv__fault_point("stream.sending", error));
    bool sent = false;
    for (int tries = 1; !sent; tries++) {
        fv_status status = send_all(run, works, error);
        if (status == FV_OK) break;
        if (tries == TRIES) return status;
        if (tries == 1) fv__log("fovea: %s; trying again", error->message);
        sleep(tries > 1);
        FV_TRY(reopen_patiently(run, &sent, error));
    }
    FV_TRY(fv__fault_point("stream.sent", error));
    return fv__stream_log_sent(run->log, error);
}
