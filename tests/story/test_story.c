/* The story of a run: reading goes on where it stopped, no second is lost in bins, and attempts are told apart. */
#include "base/file.h"
#include "story/run_story.h"
#include "support/test.h"
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char *fresh(void) {
    static fv_arena names;
    static int      number;
    return fv__arena_printf(&names, "%s/story-%d-%d", test_folder(), (int)getpid(), number++);
}

static fv_record *open_record(const char *folder, const char *worker) {
    fv_record *record;
    if (fv__record_open(folder, worker, &record, NULL) != FV_OK) abort();
    return record;
}

static void add_task(fv_record *record, int64_t i, double start, double seconds) {
    fv_task_facts f = { .key = fv__hash_bytes(&i, sizeof i), .task = i, .worker = (int)(i % 3), .start = start };
    f.wait = 0;
    f.read = 0.25 * seconds;
    f.compute = 0.5 * seconds;
    f.write = 0.25 * seconds;
    f.memory = 1000;
    f.bytes_read = 10;
    fv__record_task(record, &f);
}

static void begin(fv_record *record, double time) {
    char text[40];
    snprintf(text, sizeof text, "%.6f", time);
    fv__record_fact(record, "begin", text);
}

static fv_story *open_story(const char *folder) {
    fv_story *story;
    if (fv__story_open(folder, &story, NULL) != FV_OK) abort();
    return story;
}

TEST(reading_goes_on_where_it_stopped) {
    char      *folder = fresh(), *path = fv__sprintf("%s/task-a.log", folder);
    fv_record *record = open_record(folder, "a");
    begin(record, 4e9);
    for (int i = 0; i < 100; i++) add_task(record, i, 4e9 + i, 1);
    fv__record_flush(record, NULL);
    fv_story   *story = open_story(folder);
    struct stat s;
    CHECK_INT(story->nlogs, 1);
    CHECK_INT(story->logs[0]->tasks, 100);
    CHECK(!stat(path, &s) && story->logs[0]->at == s.st_size);
    for (int i = 100; i < 130; i++) add_task(record, i, 4e9 + i, 1);
    fv__record_flush(record, NULL);
    CHECK_INT(fv__story_update(story, NULL), FV_OK);
    CHECK_INT(story->logs[0]->tasks, 130);
    CHECK_INT(fv__story_update(story, NULL), FV_OK);
    CHECK_INT(story->logs[0]->tasks, 130);
    CHECK_INT(story->logs[0]->bytes_read, 1300);
    CHECK(!stat(path, &s) && story->logs[0]->at == s.st_size);
    fv__story_close(story);
    fv__record_close(record);
    free(path);
}

/* Half a slot at the end, as while somebody writes, is read when it is whole. */
TEST(a_slot_that_is_being_written_is_not_skipped) {
    char      *folder = fresh(), *path = fv__sprintf("%s/task-a.log", folder);
    fv_record *record = open_record(folder, "a");
    fv_bytes   log = { 0 };
    begin(record, 4e9);
    for (int i = 0; i < 10; i++) add_task(record, i, 4e9 + i, 1);
    fv__record_close(record);
    CHECK_INT(fv__file_read_all(path, 1 << 20, &log, NULL), FV_OK);
    uint8_t *torn = fv__alloc(log.size);
    memcpy(torn, log.data, log.size);
    memset(torn + 6 * 128 + 40, 0, log.size - 6 * 128 - 40); /* the file has its length, the rest of it comes later */
    CHECK_INT(fv__file_write_all(path, torn, log.size, false, NULL), FV_OK);
    fv_story *story = open_story(folder);
    CHECK_INT(story->logs[0]->at, 6 * 128);
    CHECK_INT(fv__file_write_all(path, log.data, log.size, false, NULL), FV_OK);
    CHECK_INT(fv__story_update(story, NULL), FV_OK);
    CHECK_INT(story->logs[0]->tasks, 10);
    fv__story_close(story);
    fv__bytes_release(&log);
    free(torn);
    free(path);
}

TEST(bins_become_wider_and_lose_no_second) {
    char      *folder = fresh();
    fv_record *record = open_record(folder, "a");
    double     end = 0;
    begin(record, 4e9);
    for (int i = 0; i < 3000; i++) {
        double start = 4e9 + i * 0.37, seconds = 0.01 * (1 + i % 50);
        add_task(record, i, start, seconds);
        end = fmax(end, start + seconds);
    }
    fv__record_close(record);
    fv_story     *story = open_story(folder);
    fv_story_log *log = story->logs[0];
    double        binned[FV_SPANS] = { 0 }, planned = 0, busy = 0;
    for (int l = 0; l < log->nlanes; l++)
        for (int s = 0; s < FV_SPANS; s++)
            for (int b = 0; b < FV_STORY_BINS; b++) binned[s] += (double)log->lanes[l].spans[s][b];
    for (int b = 0; b < FV_STORY_BINS; b++) planned += log->planned[b];
    for (int s = FV_SPAN_READ; s < FV_SPANS; s++) {
        CHECK_MESSAGE(fabs(binned[s] - log->spans[s]) < 1e-3 * log->spans[s], "span %d: %g of %g", s, binned[s], log->spans[s]);
        busy += log->spans[s];
    }
    CHECK_INT(log->nlanes, 3);
    CHECK(fabs(planned - 1000 * busy) < 1e-6 * planned);
    CHECK(log->width * FV_STORY_BINS >= end - 4e9 && log->width * FV_STORY_BINS < 4 * (end - 4e9));
    fv_timeline t;
    fv__timeline_make(story, 100, 2, &t);
    double shown = 0, column = t.seconds / 100;
    CHECK_INT(t.together, 2);
    CHECK_INT(t.rows, 2);
    for (int i = 0; i < t.rows * 100; i++) shown += (double)t.spans[FV_SPAN_COMPUTE][i] * column * t.together;
    CHECK_MESSAGE(fabs(shown - log->spans[FV_SPAN_COMPUTE]) < 1e-2 * shown, "%g of %g", shown, log->spans[FV_SPAN_COMPUTE]);
    for (int i = 1; i < log->nslowest; i++)
        CHECK(log->slowest[i - 1].compute >= log->slowest[i].compute && log->slowest[i].compute == 0.25);
    fv__timeline_release(&t);
    fv__story_close(story);
}

static void attempt(const char *folder, const char *name, double from, int tasks, const char *ended) {
    fv_record *record = open_record(folder, name);
    char       text[40];
    begin(record, from);
    for (int i = 0; i < tasks; i++) add_task(record, i, from + i, 1);
    snprintf(text, sizeof text, "%.6f", from + tasks);
    if (ended) fv__record_fact(record, "end", text);
    if (ended) fv__record_fact(record, "ended", ended);
    fv__record_close(record);
}

/* Times of tasks are in the future: the memory, which is told with the time of now, then falls on the first moment. */
TEST(a_story_is_the_last_attempt_and_what_it_went_on_with) {
    const struct {
        const char *ended[4];
        int         tasks[4], told, left_out, all;
    } cases[] = {
        { { "well", NULL }, { 10 }, 1, 0, 10 },
        { { "well", "well", NULL }, { 10, 20 }, 1, 1, 20 },               /* again from the start */
        { { "well", "well", NULL }, { 10, 0 }, 1, 0, 10 },                /* found everything done */
        { { "stopped", "failed", "well", NULL }, { 3, 4, 5 }, 3, 0, 12 }, /* went on twice */
        { { "well", "stopped", "well", NULL }, { 10, 4, 5 }, 2, 1, 9 },
    };
    for (int c = 0; c < FV_COUNT(cases); c++) {
        char *folder = fresh();
        for (int i = 0; cases[c].ended[i]; i++) {
            char name[8] = { (char)('a' + i), 0 };
            attempt(folder, name, 4e9 + 1000 * i, cases[c].tasks[i], cases[c].ended[i]);
        }
        fv_story *story = open_story(folder);
        CHECK_MESSAGE(story->nattempts == cases[c].told, "case %d: %d attempts", c, story->nattempts);
        CHECK_MESSAGE(story->left_out == cases[c].left_out, "case %d: %d left out", c, story->left_out);
        CHECK_INT(fv__story_sums(story).tasks, cases[c].all);
        CHECK_INT(fv__story_state(story), FV_STORY_DONE);
        fv__story_close(story);
    }
}

TEST(logs_that_overlap_are_one_attempt) {
    char *folder = fresh();
    attempt(folder, "a", 4e9, 10, "part");
    attempt(folder, "b", 4e9 + 5, 10, "part");
    attempt(folder, "c", 4e9 + 12, 10, "well");
    fv_story *story = open_story(folder);
    CHECK_INT(story->nattempts, 1);
    CHECK_INT(story->attempts[0].logs, 3);
    CHECK(fabs(story->seconds - 22) < 1e-3);
    CHECK_INT(fv__story_state(story), FV_STORY_DONE);
    fv__story_close(story);
}

TEST(a_folder_without_logs_waits) {
    char *folder = fresh();
    CHECK_INT(fv__path_make_folders(folder, NULL), FV_OK);
    fv_story *story = open_story(folder);
    CHECK_INT(fv__story_state(story), FV_STORY_WAITING);
    fv__story_close(story);
}

TEST_MAIN
