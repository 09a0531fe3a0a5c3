/* The store under many threads; meant to be run with the thread sanitizer as well. */
#include "store/blobs.h"
#include <pthread.h>
#include <unistd.h>

enum { THREADS = 8, STEPS = 3000, KEYS = 200 };

static fv_store *open_store(const char *name, int64_t memory, double patience, bool shared) {
    fv_store *store = NULL;
    char     *folder = fv__sprintf("%s/%s", test_folder(), name);
    if (fv__store_open(&(fv_store_options){ folder, "w", memory, patience, shared }, &store, NULL) != FV_OK) abort();
    free(folder);
    return store;
}

typedef struct {
    fv_store *store;
    int       number;
    bool      drops;
    int       wrong;
} worker;

static void one_step(worker *w, int i, uint64_t what) {
    fv_blob blob;
    uint8_t part[8];
    size_t  size = blob_size(i);
    if (what < 40) {
        if (blob_put(w->store, i, 0.05, what % 2, NULL) != FV_OK) w->wrong++;
    } else if (what < 70 && fv__store_has(w->store, blob_key(i))) {
        if (fv__store_get(w->store, blob_key(i), &blob, NULL) == FV_OK) {
            if (blob.size != size || !blob_right(i, blob.data, blob.size, 0)) w->wrong++;
            fv__store_unpin(w->store, &blob);
        } else if (!w->drops)
            w->wrong++;
    } else if (what < 90 && size >= sizeof part) {
        fv_status status = fv__store_read(w->store, blob_key(i), size - sizeof part, part, sizeof part, NULL);
        if (status == FV_OK && !blob_right(i, part, sizeof part, size - sizeof part)) w->wrong++;
    } else if (what < 96 && w->drops) {
        fv__store_drop(w->store, blob_key(i), what % 2);
    } else if (what < 97) {
        if (fv__store_flush(w->store, NULL) != FV_OK) w->wrong++;
    } else {
        fv__store_committed(w->store, blob_key(i));
        fv__store_uncommitted(w->store);
        fv__store_resident(w->store);
        if (fv__store_refresh(w->store, NULL) != FV_OK) w->wrong++;
    }
}

static void *work(void *context) {
    worker  *w = context;
    uint64_t seed = (uint64_t)w->number;
    for (int t = 0; t < STEPS; t++) {
        int i = (int)(test_random(&seed) % KEYS);
        one_step(w, i, test_random(&seed) % 100);
    }
    return NULL;
}

static int run(const char *name, int64_t memory, bool shared, bool drops) {
    fv_store *store = open_store(name, memory, 2, shared);
    worker    workers[THREADS];
    pthread_t threads[THREADS];
    int       wrong = 0;
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){ store, i, drops, 0 };
        pthread_create(&threads[i], NULL, work, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        wrong += workers[i].wrong;
    }
    if (fv__store_flush(store, NULL) != FV_OK) wrong += 1000000;
    if (fv__store_uncommitted(store) != 0) wrong += 2000000;
    if (fv__store_resident(store) > memory) wrong += 4000000;
    bool kept[KEYS];
    for (int i = 0; i < KEYS; i++) kept[i] = fv__store_committed(store, blob_key(i));
    fv__store_close(store);
    store = open_store(name, memory, 2, false);
    for (int i = 0; i < KEYS; i++)
        if (kept[i] && !blob_whole(store, i)) wrong += 1000;
    fv__store_close(store);
    return wrong;
}

TEST(threads_get_the_right_bytes_while_memory_suffices) { CHECK_INT(run("ample", 1 << 30, false, false), 0); }
TEST(threads_get_the_right_bytes_while_blobs_are_spilled) { CHECK_INT(run("tight", 200000, false, false), 0); }
TEST(threads_get_the_right_bytes_with_no_memory_at_all) { CHECK_INT(run("none", 0, false, false), 0); }
TEST(threads_may_drop_what_others_use) { CHECK_INT(run("drops", 200000, false, true), 0); }
TEST(threads_may_drop_what_others_use_in_a_shared_store) { CHECK_INT(run("shared", 200000, true, true), 0); }

/* ---------------------------------------------------------------- a slow commit */

static int       entered, others_done;
static fv_status slow_hook(void *context, fv_error *error) {
    (void)context;
    (void)error;
    __atomic_store_n(&entered, 1, __ATOMIC_RELEASE);
    for (int k = 0; k < 60000 && !__atomic_load_n(&others_done, __ATOMIC_ACQUIRE); k++) usleep(1000);
    __atomic_store_n(&entered, 2, __ATOMIC_RELEASE);
    return FV_OK;
}
static void *flusher(void *store) {
    fv__store_flush(store, NULL);
    return NULL;
}

TEST(a_slow_commit_does_not_hold_up_other_threads) {
    fv_store *store = open_store("slow", 1000, 1e9, false);
    pthread_t thread;
    for (int i = 0; i < 20; i++) blob_put(store, i, 1, true, NULL);
    fv__store_on_flush(store, slow_hook, NULL);
    entered = others_done = 0;
    pthread_create(&thread, NULL, flusher, store);
    while (!__atomic_load_n(&entered, __ATOMIC_ACQUIRE)) usleep(100);
    for (int i = 20; i < 200; i++) CHECK_INT(blob_put(store, i, 1, true, NULL), FV_OK); /* also spills */
    for (int i = 0; i < 200; i++) CHECK(blob_whole(store, i));
    CHECK_INT(__atomic_load_n(&entered, __ATOMIC_ACQUIRE), 1);
    __atomic_store_n(&others_done, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    CHECK(fv__store_committed(store, blob_key(0)) && !fv__store_committed(store, blob_key(100)));
    CHECK(fv__store_uncommitted(store) == 180);
    fv__store_close(store);
}

TEST_MAIN
