/* The model of many workers against answers that are known: equal tasks, chains, a bound of the disk, one who hands out, slow
 * workers, failing nodes. */
#include "story/simulated_work.h"
#include "support/test.h"
#include <math.h>
#include <stdlib.h>

/* A unit with stages of `count` equal tasks, each of which needs the one before. */
static fv_sim_work chain(int stages, int64_t count, fv_sim_task task, double end) {
    fv_sim_work w = { .ntasks = stages * count, .nstages = stages, .nunits = 1 };
    w.tasks = fv__alloc((size_t)(w.ntasks + 1) * sizeof *w.tasks);
    w.stages = fv__calloc((size_t)(stages + 1) * sizeof *w.stages);
    w.units = fv__calloc(sizeof *w.units);
    for (int64_t i = 0; i < w.ntasks; i++) w.tasks[i] = task;
    for (int s = 0; s < stages; s++) {
        w.stages[s] = (fv_sim_stage){ .first = s * count, .count = count, .end = end, .nneeds = s > 0 };
        w.stages[s].needs[0] = s - 1;
    }
    w.units[0] = (fv_sim_unit){ 0, stages, 0 };
    return w;
}

static fv_sim_answer play(const fv_sim_work *work, fv_sim_machine machine) {
    fv_sim_answer answer;
    fv__simulate(work, &machine, &answer);
    double all = 0;
    for (int c = 0; c < FV_SIM_COSTS; c++) all += answer.costs[c];
    if (fabs(all - 1) > 1e-6) answer.seconds = NAN; /* the parts of the time must come to all of it */
    return answer;
}

static void check_seconds(const fv_sim_work *work, fv_sim_machine machine, double expected) {
    fv_sim_answer a = play(work, machine);
    CHECK_MESSAGE(fabs(a.seconds - expected) < 1e-4 * expected + 1e-9, "%g s, not %g", a.seconds, expected);
}

TEST(equal_tasks_go_in_rounds) {
    fv_sim_work w = chain(1, 100, (fv_sim_task){ .compute = 2 }, 0);
    const int   workers[] = { 1, 2, 3, 7, 24, 99, 100, 1000 };
    for (int i = 0; i < FV_COUNT(workers); i++)
        check_seconds(&w, (fv_sim_machine){ .workers = workers[i], .cores = 24 }, 2 * ceil(100.0 / workers[i]));
    fv__sim_work_release(&w);
}

TEST(a_chain_takes_the_sum_on_any_number_of_workers) {
    fv_sim_work w = chain(9, 1, (fv_sim_task){ .read = 1, .compute = 2, .write = 3 }, 0.5);
    for (int workers = 1; workers < 3000; workers *= 7)
        check_seconds(&w, (fv_sim_machine){ .workers = workers, .cores = 4 }, 9 * 6.5);
    fv__sim_work_release(&w);
}

TEST(stages_wait_for_the_last_task_and_the_end_of_the_one_before) {
    fv_sim_work w = chain(3, 10, (fv_sim_task){ .compute = 1 }, 4);
    check_seconds(&w, (fv_sim_machine){ .workers = 4, .cores = 4 }, 3 * (3 + 4));
    fv_sim_answer a = play(&w, (fv_sim_machine){ .workers = 10, .cores = 10 });
    CHECK(fabs(a.seconds - 15) < 1e-6 && fabs(a.ends - 12.0 / 15) < 1e-6);
    CHECK(strstr(fv__sim_bottleneck(&w, &(fv_sim_machine){ .workers = 10 }, &a), "only one worker"));
    fv__sim_work_release(&w);
}

TEST(units_are_independent_and_parts_follow_each_other) {
    fv_sim_work w = chain(4, 1, (fv_sim_task){ .compute = 3 }, 0);
    w.nunits = 4;
    w.units = fv__realloc(w.units, 4 * sizeof *w.units);
    for (int u = 0; u < 4; u++) {
        w.units[u] = (fv_sim_unit){ u, 1, u == 3 };
        w.stages[u].nneeds = 0;
    }
    check_seconds(&w, (fv_sim_machine){ .workers = 3, .cores = 3 }, 6);
    check_seconds(&w, (fv_sim_machine){ .workers = 1, .cores = 1 }, 12);
    fv__sim_work_release(&w);
}

/* Each reads 100 bytes in a second when alone: beyond 5 of them the disk gives no more. */
TEST(the_disk_bounds_reading) {
    fv_sim_work w = chain(1, 200, (fv_sim_task){ .read = 1, .bytes = 100 }, 0);
    const int   workers[] = { 1, 4, 5, 10, 50, 200 };
    for (int i = 0; i < FV_COUNT(workers); i++)
        check_seconds(&w, (fv_sim_machine){ .workers = workers[i], .cores = 1, .disk = 500 },
                      200.0 * 100 / fmin(100.0 * workers[i], 500));
    fv_sim_answer a = play(&w, (fv_sim_machine){ .workers = 50, .cores = 1, .disk = 500 });
    CHECK(fabs(a.costs[FV_SIM_DISK] - 0.9) < 1e-3);
    CHECK(strstr(fv__sim_bottleneck(&w, &(fv_sim_machine){ .workers = 50 }, &a), "disk"));
    check_seconds(&w, (fv_sim_machine){ .workers = 40, .cores = 10, .network = 250 }, 200.0 * 100 / 1000); /* four nodes */
    fv__sim_work_release(&w);
}

TEST(reading_of_some_slows_no_computing_of_others) {
    fv_sim_work w = chain(1, 2, (fv_sim_task){ .compute = 10 }, 0);
    w.tasks[1] = (fv_sim_task){ .read = 1, .bytes = 100 };
    check_seconds(&w, (fv_sim_machine){ .workers = 2, .cores = 2, .disk = 20 }, 10);
    fv__sim_work_release(&w);
}

TEST(one_who_hands_out_bounds_tiny_tasks) {
    fv_sim_work   w = chain(1, 1000, (fv_sim_task){ .compute = 0.01F }, 0);
    fv_sim_answer a = play(&w, (fv_sim_machine){ .workers = 500, .cores = 10, .dispatch = 0.001 });
    CHECK_MESSAGE(fabs(a.seconds - 1.01) < 1e-3, "%g", a.seconds);
    CHECK(strstr(fv__sim_bottleneck(&w, &(fv_sim_machine){ .workers = 500 }, &a), "hands out"));
    check_seconds(&w, (fv_sim_machine){ .workers = 1, .cores = 1, .dispatch = 0.001 }, 1000 * 0.011);
    fv__sim_work_release(&w);
}

TEST(slow_workers_stretch_the_end) {
    fv_sim_work w = chain(1, 64, (fv_sim_task){ .compute = 1 }, 0);
    check_seconds(&w, (fv_sim_machine){ .workers = 64, .cores = 64, .stragglers = 1, .slow = 3 }, 3);
    fv_sim_answer a = play(&w, (fv_sim_machine){ .workers = 64, .cores = 64, .stragglers = 0.1, .slow = 5, .seed = 3 });
    CHECK_INT((int)lround(a.seconds), 5); /* the chance that none of 64 is slow is 0.1 % */
    CHECK(a.costs[FV_SIM_STRAGGLE] > 0.01 && a.costs[FV_SIM_STRAGGLE] < 0.3);
    fv__sim_work_release(&w);
}

TEST(nodes_that_fail_lose_what_they_did_and_others_do_it) {
    fv_sim_work    w = chain(2, 2000, (fv_sim_task){ .compute = 10 }, 1);
    fv_sim_machine machine = { .workers = 100, .cores = 4, .seed = 7 };
    double         well = play(&w, machine).seconds;
    machine.failures = 0.5; /* hours: 25 nodes for 400 s, about 5 of them */
    fv_sim_answer a = play(&w, machine);
    CHECK_MESSAGE(a.failed >= 1 && a.failed <= 20 && a.redone >= a.failed, "%lld nodes, %lld tasks", (long long)a.failed,
                  (long long)a.redone);
    CHECK(a.seconds > well && a.seconds < 3 * well && a.costs[FV_SIM_LOST] > 0);
    CHECK(a.costs[FV_SIM_COMPUTE] * a.seconds * 100 > 0.999 * 4000 * 10); /* every task was done */
    machine.failures = 0.02;                                              /* so short that no node would be left but the last */
    fv_sim_answer worn = play(&w, machine);
    machine.repair = 60;
    fv_sim_answer mended = play(&w, machine);
    CHECK_MESSAGE(worn.failed == 24 && mended.failed > 24, "%lld, %lld", (long long)worn.failed, (long long)mended.failed);
    CHECK_MESSAGE(mended.seconds < 0.5 * worn.seconds && mended.seconds > well, "%g, %g", mended.seconds, worn.seconds);
    CHECK(mended.costs[FV_SIM_COMPUTE] * mended.seconds * 100 > 0.999 * 4000 * 10);
    fv__sim_work_release(&w);
}

TEST(the_start_of_nodes_and_the_serial_part_are_added) {
    fv_sim_work w = chain(1, 4, (fv_sim_task){ .compute = 1 }, 0);
    w.serial = 2;
    w.each = 0.5;
    check_seconds(&w, (fv_sim_machine){ .workers = 4, .cores = 4, .start = 10 }, 10 + 1.5 + 2);
    w.scale = 2;
    check_seconds(&w, (fv_sim_machine){ .workers = 1, .cores = 1 }, 4 * 2.5 + 2);
    fv__sim_work_release(&w);
}

TEST(the_same_seed_gives_the_same_answer) {
    fv_sim_work    w = chain(3, 500, (fv_sim_task){ .read = 0.1F, .compute = 1, .write = 0.1F, .bytes = 1000 }, 0.3);
    fv_sim_machine machine = { .workers = 128,
                               .cores = 8,
                               .dispatch = 1e-3,
                               .disk = 1e5,
                               .start = 3,
                               .stragglers = 0.02,
                               .slow = 4,
                               .failures = 1,
                               .seed = 11 };
    CHECK(play(&w, machine).seconds == play(&w, machine).seconds);
    fv__sim_work_release(&w);
}

/* ---------------------------------------------------------------- from a record */

enum { STAGES = 3, LARGEST = 60 };

/* A run on one worker: stages of so many tasks, of which each takes what `seconds` says. The ends of the stages but the last one
 * take 0.1 s for each task, and before the first task and after the last one passes a second. */
typedef struct recorded {
    fv_task_facts  tasks[STAGES * LARGEST];
    fv_graph_stage stages[STAGES];
    fv_graph_part  part;
    fv_run_graph   graph;
    int            needs[STAGES];
    fv_sim_record  record;
} recorded;

static double unequal(int stage, int task) { return 0.2 + 0.1 * ((stage * 31 + task * 17) % 23); }

static void make_record(recorded *r, const int count[STAGES], double (*seconds)(int stage, int task)) {
    *r = (recorded){ .part = { .count = 1, .stages = r->stages, .nstages = STAGES } };
    double now = 1000;
    int    n = 0;
    for (int s = 0; s < STAGES; s++) {
        r->needs[s] = s - 1;
        r->stages[s] = (fv_graph_stage){ .tasks = count[s], .nneeds = s > 0, .needs = &r->needs[s] };
        for (int t = 0; t < count[s]; t++, n++) {
            double took = seconds(s, t);
            r->tasks[n] = (fv_task_facts){ .item = 0, .stage = s, .task = t, .start = now, .compute = took };
            now += took;
        }
        if (s < STAGES - 1) now += 0.1 * count[s];
    }
    r->graph = (fv_run_graph){ .parts = &r->part, .nparts = 1 };
    r->record = (fv_sim_record){ r->tasks, n, &r->graph, now - 1000 + 1, 0.1 * (count[0] + count[1]), 1 };
}

static double equal(int stage, int task) {
    (void)task;
    return 1 + stage;
}

/* Each stage goes in rounds of its equal tasks. */
TEST(a_record_of_equal_tasks_gives_the_time_that_follows_from_them) {
    const int   count[STAGES] = { 40, 7, 12 }, workers[] = { 1, 2, 3, 8, 100 };
    recorded    r;
    fv_sim_work w;
    fv_error    error;
    make_record(&r, count, equal);
    CHECK_MESSAGE(fv__sim_work_make(&r.record, (fv_sim_size){ 0 }, &w, &error) == FV_OK, "%s", error.message);
    for (int i = 0; i < FV_COUNT(workers); i++) {
        double expected = r.record.seconds - (40 + 14 + 36);
        for (int s = 0; s < STAGES; s++) expected += (1 + s) * ceil((double)count[s] / workers[i]);
        check_seconds(&w, (fv_sim_machine){ .workers = workers[i], .cores = 100 }, expected);
    }
    fv__sim_work_release(&w);
}

/* The worker that is free first takes the next task, for each stage anew. */
TEST(a_record_of_unequal_tasks_gives_what_two_workers_need_who_take_the_next_one_when_free) {
    const int   count[STAGES] = { 60, 31, 44 };
    recorded    r;
    fv_sim_work w;
    fv_error    error;
    make_record(&r, count, unequal);
    double expected = r.record.seconds;
    for (int s = 0; s < STAGES; s++) {
        double free_at[2] = { 0, 0 };
        for (int t = 0; t < count[s]; t++) {
            free_at[free_at[1] < free_at[0]] += unequal(s, t);
            expected -= unequal(s, t);
        }
        expected += fmax(free_at[0], free_at[1]);
    }
    CHECK_MESSAGE(fv__sim_work_make(&r.record, (fv_sim_size){ 0 }, &w, &error) == FV_OK, "%s", error.message);
    check_seconds(&w, (fv_sim_machine){ .workers = 2, .cores = 2 }, expected);
    check_seconds(&w, (fv_sim_machine){ .workers = 1, .cores = 1 }, r.record.seconds);
    fv__sim_work_release(&w);
}

/* Up to 270,000 tasks played one by one and as a few thousand batches. */
TEST(batches_take_as_long_as_their_tasks_one_by_one) {
    const int         count[STAGES] = { 60, 31, 44 }, workers[] = { 1, 2, 24, 192, 1000 };
    const fv_sim_size sizes[] = { { .times = 2000 }, { .times = 40, .volumes = 50 }, { .volumes = 700 } };
    recorded          r;
    fv_error          error;
    make_record(&r, count, unequal);
    for (int k = 0; k < FV_COUNT(sizes); k++) {
        fv_sim_work whole, batched;
        fv_sim_size few = sizes[k];
        few.most = 9000;
        CHECK_MESSAGE(fv__sim_work_make(&r.record, sizes[k], &whole, &error) == FV_OK, "%s", error.message);
        CHECK_MESSAGE(fv__sim_work_make(&r.record, few, &batched, &error) == FV_OK, "%s", error.message);
        CHECK(whole.together == 1 && whole.unsure == 0 && batched.together > 10 && batched.ntasks < 12000);
        CHECK(whole.all == batched.all && whole.all == (double)whole.ntasks);
        double tasks = 0;
        for (int64_t i = 0; i < batched.ntasks; i++) tasks += (double)batched.tasks[i].tasks;
        CHECK(tasks == whole.all);
        for (int i = 0; i < FV_COUNT(workers); i++)
            for (int slow = 0; slow < 2; slow++) {
                fv_sim_machine machine = { .workers = workers[i], .cores = 24, .stragglers = 0.01 * slow, .slow = 3 };
                double         a = play(&whole, machine).seconds, b = play(&batched, machine).seconds;
                double         chance = slow * (0.01 * a + 2 * 2.4 * STAGES); /* which tasks are slow */
                CHECK_MESSAGE(fabs(a - b) <= batched.unsure + chance + 1e-4 * a, "size %d, %d workers: %g and %g s, unsure %g", k,
                              workers[i], a, b, batched.unsure);
            }
        fv__sim_work_release(&whole);
        fv__sim_work_release(&batched);
    }
}

TEST(more_than_can_be_played_is_refused) {
    const int   count[STAGES] = { 2, 2, 2 };
    recorded    r;
    fv_sim_work w = { 0 };
    fv_error    error;
    make_record(&r, count, unequal);
    CHECK_INT(fv__sim_work_make(&r.record, (fv_sim_size){ .volumes = 2000000 }, &w, &error), FV_ERROR_USAGE);
    CHECK(strstr(error.message, "choose a smaller --times or --volumes"));
}

TEST(a_million_tasks_are_played) {
    fv_sim_work   w = chain(2, 500000, (fv_sim_task){ .read = 0.01F, .compute = 0.1F, .bytes = 1e6F }, 0);
    double        begin = fv__now();
    fv_sim_answer a = play(&w, (fv_sim_machine){ .workers = 10000, .cores = 24, .disk = 1e12, .stragglers = 0.001, .slow = 3 });
    CHECK(a.seconds > 11 && a.seconds < 13);
    printf("# a million tasks on 10,000 workers: %.2f s\n", fv__now() - begin);
    fv__sim_work_release(&w);
}

TEST_MAIN
