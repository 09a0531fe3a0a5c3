/* Every operator taken apart into tasks: run in two places that share nothing, each given exactly what it says it needs, a value
 * has the same bits as computed whole. */
#include "base/take.h"
#include "support/case_pipeline.h"
#include "support/outcome.h"
#include "support/test.h"

enum { PLACES = 2 };

typedef struct thing { /* what a task has made, as it would travel */
    fv_task_made made;
    uint8_t     *bytes;
} thing;

typedef struct carrier {
    fv_pipeline *pipelines[PLACES];
    fv_tasks    *places[PLACES];
    thing      **things; /* by stage: of task t target k at t * targets + k; the end behind all */
    uint64_t     state;
    fv_error     error;
} carrier;

static bool open_places(carrier *c, const char *expression, const test_setting *s) {
    for (int i = 0; i < PLACES; i++) {
        c->pipelines[i] = test_case_pipeline(expression, false, &c->error);
        fv_pipeline_keep(c->pipelines[i], "result", &c->error);
        fv_pipeline_chunk(c->pipelines[i], s->chunk, s->chunk_ndim, &c->error);
        if (fv_tasks_open(c->pipelines[i], &c->places[i], &c->error) != FV_OK) return false;
    }
    c->things = fv__calloc((size_t)fv_tasks_stages(c->places[0]) * sizeof *c->things + 1);
    for (int s_ = 0; s_ < fv_tasks_stages(c->places[0]); s_++) {
        fv_tasks_stage stage = fv_tasks_stage_facts(c->places[0], s_);
        c->things[s_] = fv__calloc((size_t)(stage.tasks * stage.targets + 1) * sizeof **c->things);
    }
    return true;
}

static void close_places(carrier *c) {
    for (int s = 0; c->things && s < fv_tasks_stages(c->places[0]); s++) {
        fv_tasks_stage stage = fv_tasks_stage_facts(c->places[0], s);
        for (int64_t k = 0; k <= stage.tasks * stage.targets; k++) free(c->things[s][k].bytes);
        free(c->things[s]);
    }
    free(c->things);
    for (int i = 0; i < PLACES; i++) {
        fv_tasks_close(c->places[i]);
        fv_pipeline_free(c->pipelines[i]);
    }
}

static thing *thing_of(carrier *c, int stage, int64_t task, int target) {
    fv_tasks_stage facts = fv_tasks_stage_facts(c->places[0], stage);
    return &c->things[stage][task == FV_TASK_END ? facts.tasks * facts.targets : task * facts.targets + target];
}

/* A copy of the needed voxels alone, in two parts where it is an array, which may come so. */
static fv_status give_voxels(fv_tasks *place, fv_task_need *need, const fv_block *from, void **held, fv_error *error) {
    fv_region all = need->region;
    int64_t   first = need->kind == FV_NEED_ARRAY ? all.size[0] / 2 : 0, size = (int64_t)fv_dtype_size(from->dtype);
    for (int half = 0; half < 2; half++) {
        need->region.start[0] = all.start[0] + (half ? first : 0);
        need->region.size[0] = half ? all.size[0] - first : first;
        if (fv__region_empty(&need->region)) continue;
        int64_t  bytes = fv__region_voxels(&need->region) * size;
        fv_block copy;
        held[half] = fv__alloc((size_t)bytes);
        fv__block_init(&copy, from->dtype, &need->region, held[half]);
        fv__block_copy(&copy, from);
        FV_TRY(fv_tasks_give(place, need, held[half], bytes, error));
    }
    return FV_OK;
}

static fv_status give_all(carrier *c, fv_tasks *place, int stage, int64_t task, void ***held, int64_t *count) {
    fv_task_need *needs;
    fv_status     status = fv_tasks_needs(place, stage, task, &needs, count, &c->error);
    *held = fv__calloc((size_t)*count * 2 * sizeof **held + 1);
    for (int64_t k = 0; k < *count && status == FV_OK; k++) {
        fv_task_need *need = &needs[k];
        if (need->kind == FV_NEED_ARRAY) {
            fv_block whole = test_case_array(need->array);
            status = give_voxels(place, need, &whole, &(*held)[2 * k], &c->error);
            continue;
        }
        thing *from = thing_of(c, need->stage, need->kind == FV_NEED_RESULTS ? FV_TASK_END : need->task, need->target);
        if (from->made.size && need->kind == FV_NEED_CHUNK) {
            fv_block whole;
            fv__block_init(&whole, from->made.dtype, &from->made.chunk, from->bytes);
            status = give_voxels(place, need, &whole, &(*held)[2 * k], &c->error);
        } else
            status = fv_tasks_give(place, need, from->bytes, from->made.size, &c->error);
    }
    free(needs);
    return status;
}

static void let_go(void **held, int64_t count) {
    for (int64_t k = 0; k < 2 * count; k++) free(held[k]);
    free(held);
}

/* again: it was run before, perhaps elsewhere, and must make the same once more. */
static bool run_somewhere(carrier *c, int stage, int64_t task, bool again) {
    fv_tasks *place = c->places[test_random(&c->state) % PLACES];
    void    **held;
    int64_t   count;
    fv_status status = give_all(c, place, stage, task, &held, &count);
    if (status == FV_OK) status = fv_tasks_run(place, stage, task, &c->error);
    int targets = task == FV_TASK_END ? 1 : fv_tasks_stage_facts(place, stage).targets;
    for (int k = 0; k < targets && status == FV_OK; k++) {
        thing *t = thing_of(c, stage, task, k), old = *t;
        status = fv_tasks_made(place, stage, task, k, &t->made, &c->error);
        size_t size = (size_t)t->made.size;
        if (status == FV_OK && again && (old.made.size != t->made.size || (size && memcmp(old.bytes, t->made.data, size))))
            status = fv_fail(&c->error, FV_ERROR_INTERNAL, "stage %d makes something else the second time", stage);
        if (status != FV_OK || !t->made.size || again) continue;
        t->bytes = fv__alloc((size_t)t->made.size);
        memcpy(t->bytes, t->made.data, (size_t)t->made.size);
    }
    fv_tasks_forget(place);
    let_go(held, count);
    return status == FV_OK;
}

static void gather(carrier *c, const fv_tasks_image *image, test_outcome *out) {
    uint8_t  *all = fv__alloc((size_t)fv_image_type_bytes(&image->type));
    fv_region whole = fv__region_whole(&image->type);
    fv_block  to, from;
    fv__block_init(&to, image->type.dtype, &whole, all);
    for (int64_t task = 0; task < fv_tasks_stage_facts(c->places[0], image->stage).tasks; task++) {
        thing *t = thing_of(c, image->stage, task, image->target);
        fv__block_init(&from, image->type.dtype, &t->made.chunk, t->bytes);
        fv_block window = fv__block_window(&to, &t->made.chunk);
        fv__block_copy(&window, &from);
    }
    test_outcome_image(&image->type, all, out);
    free(all);
}

static bool carry(carrier *c, test_outcome *out) {
    fv_tasks_image image;
    for (int stage = 0; stage < fv_tasks_stages(c->places[0]); stage++) {
        fv_tasks_stage facts = fv_tasks_stage_facts(c->places[0], stage);
        for (int64_t task = facts.tasks - 1; task >= 0; task--)
            if (!run_somewhere(c, stage, task, false)) return false;
        if (facts.ends && !run_somewhere(c, stage, FV_TASK_END, false)) return false;
    }
    for (int stage = 0; stage < fv_tasks_stages(c->places[0]); stage++) { /* as if what some of them made had been lost */
        fv_tasks_stage facts = fv_tasks_stage_facts(c->places[0], stage);
        if (!run_somewhere(c, stage, (int64_t)(test_random(&c->state) % (uint64_t)facts.tasks), true)) return false;
        if (facts.ends && !run_somewhere(c, stage, FV_TASK_END, true)) return false;
    }
    if (fv_tasks_find(c->places[0], "result", &image)) {
        gather(c, &image, out);
        return true;
    }
    void     **held;
    int64_t    count;
    fv_result *result = NULL;
    fv_status  status = give_all(c, c->places[0], FV_TASK_VALUES, 0, &held, &count);
    if (status == FV_OK) status = fv_tasks_values(c->places[0], &result, &c->error);
    const fv_table *table = status == FV_OK ? fv_result_table(result, "result") : NULL;
    if (table) test_outcome_table(table, out);
    fv_result_free(result);
    let_go(held, count);
    return table != NULL;
}

/* A sanitizer takes ten times as long, and looks at memory and not at results. */
#ifdef __SANITIZE_ADDRESS__
enum { ONE_OF = 4 };
#else
enum { ONE_OF = 1 };
#endif

TEST(every_operator_gives_the_same_bits_as_tasks_in_places_that_share_nothing) {
    int          ncases;
    char       **cases = test_lines(TEST_CASES, &ncases);
    uint64_t     state = 5;
    test_outcome whole = { 0 }, parts = { 0 };
    CHECK(ncases > 50);
    for (int k = 0; k < ncases; k += ONE_OF) {
        fv_error     error = { 0 };
        test_setting s = test_setting_random(&state, NULL), plain = { .workers = 1, .poison = -1 };
        carrier      c = { .state = state };
        if (test_case_runs_program(cases[k])) continue; /* only a whole run can be allowed to */
        if (!test_outcome_take(test_case_pipeline(cases[k], true, &error), &plain, &whole, &error))
            test_fail(__FILE__, __LINE__, "%s: %s", cases[k], error.message);
        else if (!open_places(&c, cases[k], &s) || !carry(&c, &parts))
            test_fail(__FILE__, __LINE__, "%s: %s", cases[k], c.error.message);
        else if (!test_outcome_same(&whole, &parts))
            test_fail(__FILE__, __LINE__, "%s differs with chunks of %lldx%lldx%lld", cases[k], (long long)s.chunk[0],
                      (long long)s.chunk[1], (long long)s.chunk[2]);
        close_places(&c);
    }
    test_outcome_release(&whole);
    test_outcome_release(&parts);
    test_lines_free(cases, ncases);
}

/* ---------------------------------------------------------------- what is refused */

static fv_status try_text(const char *text, fv_error *error) {
    fv_pipeline *p = fv_pipeline_new();
    fv_tasks    *tasks = NULL;
    fv_status    status = fv_pipeline_add(p, "text", text, error);
    if (status == FV_OK) status = fv_tasks_open(p, &tasks, error);
    fv_tasks_close(tasks);
    fv_pipeline_free(p);
    return status;
}

TEST(a_pipeline_that_writes_files_is_not_taken_apart) {
    fv_error error = { 0 };
    CHECK_INT(try_text("phantom(\"cells\", [20, 30]) |> write(\"x.npy\")\n", &error), FV_ERROR_USAGE);
    CHECK_TEXT(error.message, "a pipeline that is taken apart into tasks cannot write files");
}

static fv_tasks *open_mean(fv_pipeline *p, fv_error *error) {
    fv_tasks     *tasks = NULL;
    fv_image_type type;
    fv_image_type_init(&type, FV_UINT8, 2, (const int64_t[]){ 20, 30 });
    fv_pipeline_array(p, "image", &type, NULL, error);
    fv_pipeline_add(p, "text", "result = mean(image)\n", error);
    fv_pipeline_keep(p, "result", error);
    fv_tasks_open(p, &tasks, error);
    return tasks;
}

TEST(a_task_without_all_its_voxels_says_so) {
    fv_pipeline  *p = fv_pipeline_new();
    fv_error      error = { 0 };
    fv_tasks     *tasks = open_mean(p, &error);
    fv_task_need *needs;
    int64_t       count;
    uint8_t       voxels[600] = { 0 };
    CHECK(tasks != NULL);
    CHECK_INT(fv_tasks_needs(tasks, 0, 0, &needs, &count, &error), FV_OK);
    CHECK_INT(count, 1);
    CHECK_INT(fv_tasks_run(tasks, 0, 0, &error), FV_ERROR_USAGE);
    CHECK_TEXT(error.message, "array image: not all voxels that the task needs were given");
    CHECK_INT(fv_tasks_give(tasks, &needs[0], voxels, 599, &error), FV_ERROR_USAGE);
    CHECK_TEXT(error.message, "array image: 599 bytes do not fill the voxels that they are for");
    needs[0].array = 7;
    CHECK_INT(fv_tasks_give(tasks, &needs[0], voxels, 600, &error), FV_ERROR_USAGE);
    free(needs);
    fv_tasks_close(tasks);
    fv_pipeline_free(p);
}

TEST(damaged_results_are_refused) {
    fv_pipeline *p = fv_pipeline_new();
    fv_error     error = { 0 };
    fv_tasks    *tasks = open_mean(p, &error);
    int64_t      lies[4] = { 0, 0, 1 << 20, 0 };
    fv_task_need need = { .kind = FV_NEED_RESULTS };
    CHECK(tasks != NULL);
    CHECK_INT(fv_tasks_give(tasks, &need, lies, sizeof lies, &error), FV_ERROR_USAGE);
    CHECK_INT(fv_tasks_give(tasks, &need, lies, 10, &error), FV_ERROR_USAGE);
    CHECK_TEXT(error.message, "results of a stage are cut short");
    need.task = 3;
    CHECK_INT(fv_tasks_give(tasks, &need, lies, sizeof lies, &error), FV_ERROR_USAGE);
    CHECK_TEXT(error.message, "the pipeline has no such task");
    fv_tasks_close(tasks);
    fv_pipeline_free(p);
}

TEST_MAIN
