/* Running a program for an operator. */
#include "op/program_task.h"
#include "base/child.h"
#include "base/file.h"
#include "base/program.h"
#include "base/rank_words.h"
#include "op/axes.h"
#include "op/params.h"
#include "op/whole_file.h"
#include <fovea/devices.h>
#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- names in braces and what they stand for */

enum { OWN = 6, MOST_NAMES = 64 };
static const char *const own_names[OWN] = { "input", "input2", "input3", "output", "folder", "cpus" };

typedef struct names {
    fv_arena    arena;
    int         count;
    const char *name[MOST_NAMES + 1], *value[MOST_NAMES + 1];
} names;

/* The end of a value in "f = 0.5, kind = \"a, b\"": the comma before the next name, or the end of the text. */
static const char *value_end(const char *at) {
    int  depth = 0;
    bool quoted = false;
    for (; *at && (quoted || depth || *at != ','); at++) {
        if (*at == '"') quoted = !quoted;
        if (quoted && *at == '\\' && at[1]) at++;
        if (!quoted) depth += (*at == '[') - (*at == ']');
    }
    return at;
}

/* As a word of a command: texts without quotes, lists with commas between their numbers. */
static const char *word_of(names *n, const char *text) {
    fv_literal literal = { 0 };
    if (*text == '"' && fv__literal_parse(text, &literal, &n->arena) && literal.kind == FV_LITERAL_TEXT) return literal.text;
    if (*text != '[') return text;
    char *list = fv__arena_strdup(&n->arena, text + 1), *to = list;
    for (const char *at = list; *at && *at != ']'; at++)
        if (*at != ' ') *to++ = *at;
    *to = 0;
    return list;
}

static fv_status parse_values(names *n, const char *text, fv_error *error) {
    for (const char *at = text ? text : ""; *at;) {
        const char *equal = strstr(at, " = ");
        if (!equal || n->count == MOST_NAMES)
            return fv_fail(error, FV_ERROR_USAGE, "values = \"%s\": name = value belongs here", text);
        const char *end = value_end(equal + 3);
        n->name[n->count] = fv__arena_strndup(&n->arena, at, (size_t)(equal - at));
        n->value[n->count++] = word_of(n, fv__arena_strndup(&n->arena, equal + 3, (size_t)(end - equal - 3)));
        at = *end ? end + 1 + strspn(end + 1, " ") : end;
    }
    return FV_OK;
}

static fv_status names_init(names *n, const fv_program_params *p, fv_error *error) {
    *n = (names){ .count = OWN };
    for (int i = 0; i < OWN; i++) {
        n->name[i] = own_names[i];
        n->value[i] = "";
    }
    n->value[5] = fv__arena_printf(&n->arena, "%lld", (long long)p->cpus);
    return parse_values(n, p->values, error);
}

static bool is_used(const char *command, const char *name) {
    char *braced = fv__sprintf("{%s}", name);
    bool  used = strstr(command, braced) != NULL;
    free(braced);
    return used;
}

/* ---------------------------------------------------------------- before it runs */

static const char *input_ending(const fv_program_params *p, const char *ending) {
    return p->format && *p->format ? p->format : ending;
}

static fv_status check_names(const fv_infer *i, const fv_program_params *p, const names *n, fv_error *error) {
    for (int k = 0; k < FV_PROGRAM_NINPUTS; k++) {
        bool given = i->in[k]->kind == FV_KIND_IMAGE, used = is_used(p->command, own_names[k]);
        if (given && !used)
            return fv_fail(error, FV_ERROR_USAGE, "%s is given, but {%s} is not in the command", own_names[k], own_names[k]);
        if (!given && used)
            return fv_fail(error, FV_ERROR_USAGE, "the command has {%s}, but no %s is given", own_names[k], own_names[k]);
    }
    for (int k = OWN; k < n->count; k++)
        if (!is_used(p->command, n->name[k]))
            return fv_fail(error, FV_ERROR_USAGE, "there is no argument %s, and the command has no {%s} for it", n->name[k],
                           n->name[k]);
    return FV_OK;
}

static fv_status check_limits(const fv_program_params *p, fv_error *error) {
    int64_t bytes;
    double  seconds;
    if (p->memory && *p->memory && (!fv_size_parse(p->memory, &bytes) || bytes <= 0))
        return fv_fail(error, FV_ERROR_USAGE, "memory = \"%s\": a size such as \"2G\" belongs here", p->memory);
    if (p->device && *p->device && (!fv_size_parse(p->device, &bytes) || bytes <= 0))
        return fv_fail(error, FV_ERROR_USAGE, "device = \"%s\": memory of a device such as \"1G\" belongs here", p->device);
    if (p->time && *p->time && (!fv_time_parse(p->time, &seconds) || !(seconds > 0)))
        return fv_fail(error, FV_ERROR_USAGE, "time = \"%s\": a time such as \"30s\" or \"10m\" belongs here", p->time);
    return FV_OK;
}

static fv_status check_input(const fv_infer *i, int k, const char *ending, const char *slices, fv_error *error) {
    fv_image_type type = i->in[k]->image;
    int           axis = *slices ? fv__axis_find(&type, slices) : -1;
    if (axis >= 0) fv__axis_drop(&type, axis);
    return fv__whole_file_check(input_ending(i->params, ending), &type, error);
}

fv_status fv__program_check(const fv_infer *i, const char *ending, const char *slices, fv_error *error) {
    const fv_program_params *p = i->params;
    fv_word_template         words = { 0 };
    names                    n;
    if (i->in[0]->kind != FV_KIND_IMAGE)
        return fv_fail(error, FV_ERROR_USAGE, "there is no input: an image for {input}, as in command(\"...\", input = image)");
    FV_TRY(check_limits(p, error));
    if (!p->shell) FV_TRY(fv__words_check_signs(p->command, error));
    fv_status status = names_init(&n, p, error);
    if (status == FV_OK) status = fv__words_parse(p->command, p->shell, n.name, &words, error);
    if (status == FV_OK) status = check_names(i, p, &n, error);
    for (int k = 0; k < FV_PROGRAM_NINPUTS && status == FV_OK; k++)
        if (i->in[k]->kind == FV_KIND_IMAGE) status = check_input(i, k, ending, slices, error);
    fv__words_release(&words);
    fv__arena_release(&n.arena);
    return status;
}

/* Of a text for a shell the first word is looked at as well: it usually is the program. */
fv_status fv__program_identity(const void *params, fv_hasher *hasher, fv_error *error) {
    const fv_program_params *p = params;
    fv_word_template         words;
    names                    n;
    bool                     option = p->version && *p->version == '-';
    fv_status                status = names_init(&n, p, error);
    if (status == FV_OK) status = fv__words_parse(p->command, false, n.name, &words, p->shell ? NULL : error);
    if (status == FV_OK) {
        const char *program = words.words[0];
        if (!p->shell && strchr(program, '{')) { /* a name of its own, as {program} */
            char *filled = fv__words_fill(program, n.name, n.value, false);
            status = fv__program_identify(filled, option ? p->version : "", hasher, error);
            free(filled);
        } else
            status = fv__program_identify(program, option ? p->version : "", hasher, p->shell ? NULL : error);
        for (int k = 1; k < words.nwords; k++) fv__script_identify(words.words[k], hasher);
        fv__words_release(&words);
    }
    fv__arena_release(&n.arena);
    return p->shell ? FV_OK : status;
}

fv_program_needs fv__program_needs(const void *params) {
    const fv_program_params *p = params;
    fv_program_needs         needs = { .cpus = p->cpus * p->ranks };
    if (p->memory && *p->memory) fv_size_parse(p->memory, &needs.memory);
    return needs;
}

/* ---------------------------------------------------------------- one run */

typedef struct task {
    const fv_program_job    *job;
    const fv_program_params *params;
    fv_program_folder        folder;
    names                    names;
    char                    *output;
    char                   **words;
    fv_device_grant          device;
    fv_child                 child;
    fv_child_end             end;
} task;

static fv_status stage_inputs(task *t, fv_error *error) {
    for (int k = 0; k < FV_PROGRAM_NINPUTS; k++) {
        const fv_program_input *in = &t->job->inputs[k];
        if (!in->type) continue;
        t->names.value[k] =
            fv__arena_printf(&t->names.arena, "%s/%s.%s", t->folder.path, own_names[k], input_ending(t->params, t->job->ending));
        FV_TRY(fv__whole_file_write(t->names.value[k], in->type, &in->block, error));
    }
    return FV_OK;
}

static fv_status make_words(task *t, fv_error *error) {
    fv_word_template words;
    t->output = fv__sprintf("%s/output.%s", t->folder.path, t->job->ending);
    t->names.value[3] = t->output;
    t->names.value[4] = t->folder.path;
    fv_status status = fv__words_parse(t->params->command, t->params->shell, t->names.name, &words, error);
    if (status == FV_OK) t->words = fv__words_make(&words, t->names.name, t->names.value);
    fv__words_release(&words);
    if (status == FV_OK) t->words = fv__rank_words(t->words, t->params->ranks, error);
    return t->words ? status : error->code;
}

/* Waits for a device, as long as the run goes on. */
static fv_status take_device(task *t, fv_error *error) {
    const volatile int *cancel = t->job->run->cancel;
    int64_t             memory = 0;
    fv_status           status = FV_OK;
    if (t->params->device && *t->params->device) fv_size_parse(t->params->device, &memory);
    while (memory && (status = fv_device_grant_take(NULL, memory, 1, &t->device, error)) == FV_ERROR_BUSY)
        if (cancel && *cancel) return fv_fail(error, FV_ERROR_CANCELLED, "stopped");
    return status;
}

static fv_status run_program(task *t, fv_error *error) {
    char  threads[48], itk[72], *temporary = fv__sprintf("TMPDIR=%s", t->folder.path);
    char *settings[4 + FV_COUNT(t->device.settings)] = { temporary, threads, itk };
    for (int i = 0; i < t->device.count; i++) settings[3 + i] = t->device.settings[i];
    bool prints = !is_used(t->params->command, "output");
    snprintf(threads, sizeof threads, "OMP_NUM_THREADS=%lld", (long long)t->params->cpus);
    snprintf(itk, sizeof itk, "ITK_GLOBAL_DEFAULT_NUMBER_OF_THREADS=%lld", (long long)t->params->cpus);
    t->child = (fv_child){ .memory = fv__program_needs(t->params).memory, .settings = settings, .file_size = t->job->most };
    if (t->params->time && *t->params->time) fv_time_parse(t->params->time, &t->child.limit);
    fv__children_adopt(true);
    fv_status status = fv__child_start(&t->child, t->words, NULL, prints ? t->output : NULL, error);
    if (status == FV_OK) fv__child_wait(&t->child, t->job->run->cancel, &t->end);
    fv__children_adopt(false);
    free(temporary);
    return status;
}

/* The last lines of what it said, in one line. */
static void last_words(const fv_child *child, char *text, size_t size) {
    const char *data = (const char *)child->printed.data;
    size_t      end = child->printed.size, used = 0;
    while (end && (data[end - 1] == '\n' || data[end - 1] == ' ')) end--;
    size_t start = end;
    for (int lines = 0; start > 0 && end - start < size - 32; start--)
        if (data[start - 1] == '\n' && ++lines == 3) break;
    for (size_t i = start; i < end && used + 4 < size; i++) {
        if (data[i] == '\n')
            used += (size_t)snprintf(text + used, size - used, " | ");
        else
            text[used++] = (unsigned char)data[i] < 32 ? ' ' : data[i];
    }
    text[used] = 0;
}

/* Why it did not do its work; false: it did. */
static bool judge(task *t, char *why, size_t size) {
    char said[400];
    if (!fv__child_misfortune(&t->child, &t->end, why, size)) {
        if (fv__exit_code_among(t->params->ok, t->end.code)) {
            if (fv__file_exists(t->output)) return false;
            snprintf(why, size, "ended well but did not make its output");
        } else
            snprintf(why, size, "ended with exit code %d%s", t->end.code,
                     t->end.code == 127 ? " (a program or library was not found)" : "");
    }
    last_words(&t->child, said, sizeof said);
    size_t used = strlen(why);
    if (*said) snprintf(why + used, size - used, "; it said: %s", said);
    return true;
}

static void keep_log(const task *t, const char *why) {
    const fv_run *r = t->job->run;
    fv_bytes      text = { 0 };
    if (!r->log) return;
    char *path = t->job->slice < 0 ? fv__sprintf("%s.txt", r->log) : fv__sprintf("%s-%lld.txt", r->log, (long long)t->job->slice);
    char *folder = fv__sprintf("%.*s", (int)(fv__path_name(path) - path), path);
    if (fv__path_make_folders(folder, NULL) == FV_OK) {
        char *environment = fv__environment_keep(folder), memory[24];
        fv_size_format(t->end.memory, memory);
        fv__bytes_printf(&text, "state: %s\ncommand:", why ? "failed" : "done");
        for (int i = t->params->shell ? 2 : 0; t->words[i]; i++) fv__bytes_printf(&text, " %s", t->words[i]);
        fv__bytes_printf(&text, "\nended: %s\ntook: %.3f s, %.3f s of processors, %s\nenvironment: %s\n\n", why ? why : "well",
                         t->end.seconds, t->end.cpu_seconds, memory, environment ? environment : "");
        fv__bytes_append(&text, t->child.printed.data, t->child.printed.size);
        if (t->child.left_out) fv__bytes_printf(&text, "\n[%lld more bytes were left out]\n", (long long)t->child.left_out);
        fv__file_write_all(path, text.data, text.size, false, NULL);
        free(environment);
    }
    fv__bytes_release(&text);
    free(folder);
    free(path);
}

static fv_status do_task(task *t, fv_error *error) {
    char why[700] = "";
    FV_TRY(names_init(&t->names, t->params, error));
    FV_TRY(fv__program_folder_make(&t->folder, error));
    FV_TRY(stage_inputs(t, error));
    FV_TRY(make_words(t, error));
    FV_TRY(take_device(t, error));
    FV_TRY(run_program(t, error));
    fv_device_grant_return(&t->device);
    if (t->job->run->cancel && *t->job->run->cancel) return fv_fail(error, FV_ERROR_CANCELLED, "stopped");
    bool failed = judge(t, why, sizeof why);
    keep_log(t, failed ? why : NULL);
    if (failed) return fv_fail(error, FV_ERROR_INPUT, "%s %s", fv__path_name(t->words[t->params->shell ? 2 : 0]), why);
    return t->job->take(t->job->context, t->output, error);
}

fv_status fv__program_do(const fv_program_job *job, fv_error *error) {
    task t = { .job = job, .params = job->run->need.params, .child = { .pipe = -1, .pidfd = -1, .file = -1 }, .folder.lock = -1 };
    t.device.lease.connection = -1;
    fv_status status = do_task(&t, error);
    fv_device_grant_return(&t.device);
    fv__child_release(&t.child);
    if (t.words) fv__words_free(t.words);
    fv__program_folder_remove(&t.folder);
    fv__arena_release(&t.names.arena);
    free(t.output);
    return status;
}

/* ---------------------------------------------------------------- operators that give no image */

bool fv__program_is_first(const fv_need *n) {
    for (int d = 0; d < n->region.ndim; d++)
        if (n->region.start[d]) return false;
    return true;
}

void fv__program_need_whole(const fv_need *n, fv_region *in) {
    for (int k = 0; k < n->ninputs; k++) {
        if (n->in[k]->kind != FV_KIND_IMAGE) continue;
        in[k] = fv__region_whole(&n->in[k]->image);
        if (!fv__program_is_first(n)) memset(in[k].size, 0, sizeof in[k].size);
    }
}

fv_status fv__program_run_whole(fv_run *r, int64_t most, fv_status (*take)(void *context, const char *path, fv_error *error),
                                fv_error *error) {
    const fv_program_params *p = r->need.params;
    fv_program_job job = { .run = r, .ending = p->output, .most = most, .slice = -1, .take = take, .context = r->partial };
    if (!fv__program_is_first(&r->need)) return FV_OK;
    for (int k = 0; k < FV_PROGRAM_NINPUTS; k++)
        if (r->in[k]) job.inputs[k] = (fv_program_input){ &r->need.in[k]->image, *r->in[k] };
    return fv__program_do(&job, error);
}

fv_status fv__program_partial(fv_finish *f, fv_bytes *out, fv_error *error) {
    for (int64_t i = 0; i < f->npartials; i++) {
        const void *data;
        if (!f->size(f, i)) continue;
        FV_TRY(f->partial(f, i, &data, error));
        fv__bytes_append(out, data, f->size(f, i));
    }
    return FV_OK;
}
