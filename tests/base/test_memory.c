/* Allocation, arenas, growing bytes and the pool of buffers. */
#include "base/base.h"
#include "base/take.h"
#include "support/test.h"
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(an_arena_gives_zeroed_aligned_pieces_that_do_not_overlap) {
    fv_arena arena = { 0 };
    uint8_t *pieces[400];
    size_t   sizes[400];
    uint64_t seed = 1;
    for (int i = 0; i < 400; i++) {
        sizes[i] = i % 50 == 0 ? 40000 : test_random(&seed) % 300;
        pieces[i] = fv__arena_alloc(&arena, sizes[i]);
        CHECK((uintptr_t)pieces[i] % 16 == 0);
        for (size_t k = 0; k < sizes[i]; k++) CHECK(pieces[i][k] == 0);
        memset(pieces[i], i + 1, sizes[i]);
    }
    for (int i = 0; i < 400; i++)
        for (size_t k = 0; k < sizes[i]; k++) CHECK(pieces[i][k] == (uint8_t)(i + 1));
    CHECK_TEXT(fv__arena_strdup(&arena, "abc"), "abc");
    CHECK_TEXT(fv__arena_strndup(&arena, "abcdef", 2), "ab");
    CHECK_TEXT(fv__arena_printf(&arena, "%d-%s", 7, "x"), "7-x");
    fv__arena_release(&arena);
    CHECK(arena.head == NULL);
    fv__arena_release(&arena);
}

TEST(bytes_grow_and_keep_what_they_hold) {
    fv_bytes bytes = { 0 };
    for (int i = 0; i < 10000; i++) fv__bytes_append(&bytes, &i, sizeof i);
    for (int i = 0; i < 10000; i++) {
        int value;
        memcpy(&value, bytes.data + sizeof(int) * (size_t)i, sizeof value);
        CHECK_INT(value, i);
    }
    fv__bytes_clear(&bytes);
    fv__bytes_printf(&bytes, "%s %d", "text", 5);
    CHECK_INT(bytes.size, 6);
    CHECK_TEXT((char *)bytes.data, "text 5"); /* a NUL follows that is not counted */
    void *room = fv__bytes_append(&bytes, NULL, 100);
    CHECK(room == bytes.data + 6 && bytes.size == 106);
    fv__bytes_release(&bytes);
    CHECK(bytes.data == NULL && bytes.size == 0 && bytes.capacity == 0);
}

TEST(buffers_are_aligned_and_recycled) {
    fv__buffer_trim();
    for (size_t size = 0; size < 200000; size = size * 3 / 2 + 1) {
        uint8_t *buffer = fv__buffer_new(size);
        CHECK((uintptr_t)buffer % 64 == 0);
        memset(buffer, 1, size);
        fv__buffer_free(buffer, size);
    }
    fv__buffer_trim();
    void *first = fv__buffer_new(1000000);
    fv__buffer_free(first, 1000000);
    CHECK(fv__buffer_pooled() >= 1000000 && fv__buffer_pooled() < 1200000);
    void *second = fv__buffer_new(1000000 - 100); /* of a like size */
    CHECK(second == first);
    CHECK_INT(fv__buffer_pooled(), 0);
    fv__buffer_free(second, 1000000 - 100);
    fv__buffer_trim();
    CHECK_INT(fv__buffer_pooled(), 0);
    fv__buffer_free(NULL, 12345);
}

TEST(the_pool_forgets_the_oldest_buffers) {
    enum { MADE = 600, KEPT = 512 };
    void *buffers[MADE];
    fv__buffer_trim();
    for (int i = 0; i < MADE; i++) buffers[i] = fv__buffer_new(70000 + 1000 * (size_t)i);
    for (int i = 0; i < MADE; i++) fv__buffer_free(buffers[i], 70000 + 1000 * (size_t)i);
    int64_t newest = 0;
    for (int i = MADE - KEPT; i < MADE; i++) newest += 70000 + 1000 * i;
    CHECK(fv__buffer_pooled() >= newest && fv__buffer_pooled() < newest + newest / 4);
    fv__buffer_trim();
}

static void *use_buffers(void *context) {
    uint64_t seed = (uint64_t)(uintptr_t)context;
    uint8_t *held[8] = { 0 };
    size_t   sizes[8] = { 0 };
    for (int i = 0; i < 3000; i++) {
        int k = (int)(test_random(&seed) % 8);
        if (held[k] && (held[k][0] != (uint8_t)k || held[k][sizes[k] - 1] != (uint8_t)k))
            return "somebody else wrote into a buffer";
        fv__buffer_free(held[k], sizes[k]);
        sizes[k] = 1 + test_random(&seed) % 300000;
        held[k] = fv__buffer_new(sizes[k]);
        held[k][0] = held[k][sizes[k] - 1] = (uint8_t)k;
    }
    for (int k = 0; k < 8; k++) fv__buffer_free(held[k], sizes[k]);
    return NULL;
}

TEST(threads_never_share_a_buffer) {
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, use_buffers, (void *)(i + 1));
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        CHECK_MESSAGE(!wrong, "%s", (char *)wrong);
    }
    fv__buffer_trim();
}

/* ---------------------------------------------------------------- the end of memory, in a child */

static int in_child(void (*run)(void)) {
    pid_t child = fork();
    int   status;
    if (child == 0) {
        struct rlimit none = { 0, 0 };
        setrlimit(RLIMIT_CORE, &none);
        if (!freopen("/dev/null", "w", stderr)) _exit(9);
        run();
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void absurd_bytes(void) {
    fv_bytes bytes = { 0 };
    fv__bytes_append(&bytes, "12345678", 8);
    fv__bytes_reserve(&bytes, SIZE_MAX - 4);
}

TEST(an_absurd_size_is_refused_or_ends_the_process_and_not_in_a_loop) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they end the process themselves */
    CHECK(fv__try_alloc((size_t)1 << 60) == NULL);
#endif
    CHECK(fv__buffer_new((size_t)-4096) == NULL);
    CHECK_INT(in_child(absurd_bytes), -6); /* SIGABRT */
}

static void pool_in_the_way(void) {
    size_t        size = (size_t)256 << 20;
    struct rlimit limit = { (rlim_t)2 << 30, (rlim_t)2 << 30 };
    if (setrlimit(RLIMIT_AS, &limit)) _exit(2);
    void *held[4];
    for (int i = 0; i < 4; i++) held[i] = fv__buffer_new(size + (size_t)i * (32 << 20));
    for (int i = 0; i < 4; i++) fv__buffer_free(held[i], size + (size_t)i * (32 << 20));
    fv__buffer_new((size_t)1 << 30); /* fits only once the pool is given back */
}

TEST(bytes_that_cannot_grow_stay_as_they_are) {
    fv_bytes bytes = { 0 };
    fv_error error = { 0 };
    fv__bytes_append(&bytes, "12345678", 8);
    CHECK_INT(fv__bytes_need(&bytes, SIZE_MAX - 4, &error), FV_ERROR_MEMORY);
    CHECK(strstr(error.message, "out of memory"));
    fv__memory_fail(1);
    CHECK_INT(fv__bytes_need(&bytes, 1000, NULL), FV_ERROR_MEMORY);
    CHECK_INT(fv__memory_fail(0), 0);
    CHECK(bytes.size == 8 && !memcmp(bytes.data, "12345678", 8));
    CHECK_INT(fv__bytes_need(&bytes, 1000, NULL), FV_OK);
    fv__bytes_release(&bytes);
}

TEST(idle_buffers_are_given_back_before_memory_runs_out) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SKIP("the sanitizer reserves more address space than the test allows");
#endif
    CHECK_INT(in_child(pool_in_the_way), 0);
}

TEST(checked_sizes_tell_of_overflow) {
    int64_t out = 5;
    CHECK(fv__mul(1 << 20, 1 << 20, &out) && out == (int64_t)1 << 40);
    CHECK(!fv__mul((int64_t)1 << 40, (int64_t)1 << 40, &out));
    CHECK(fv__add(INT64_MAX - 1, 1, &out) && out == INT64_MAX);
    CHECK(!fv__add(INT64_MAX, 1, &out));
}

TEST_MAIN
