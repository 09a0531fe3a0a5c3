/* The cache of decoded pieces. */
#include "view/view_cache.h"
#include "base/take.h"
#include <pthread.h>
#include <stdlib.h>

enum { BUCKETS = 4096 };

struct fv_view_piece {
    fv_view_piece *next;          /* of its bucket */
    fv_view_piece *newer, *older; /* by last use */
    fv_hash        key;
    size_t         size;
    int            users;
    bool           ready;
    void          *data;
};

struct fv_view_cache {
    pthread_mutex_t mutex;
    pthread_cond_t  loaded;
    int64_t         most, bytes;
    fv_view_piece  *bucket[BUCKETS];
    fv_view_piece  *newest, *oldest;
};

fv_view_cache *fv_view_cache_new(int64_t most_bytes) {
    fv_view_cache *c = fv__calloc(sizeof *c);
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->loaded, NULL);
    c->most = most_bytes;
    return c;
}

static fv_view_piece **find(fv_view_cache *c, fv_hash key) {
    fv_view_piece **place = &c->bucket[key.low % BUCKETS];
    while (*place && !fv__hash_equal((*place)->key, key)) place = &(*place)->next;
    return place;
}

static void unlink_use(fv_view_cache *c, fv_view_piece *p) {
    *(p->newer ? &p->newer->older : &c->newest) = p->older;
    *(p->older ? &p->older->newer : &c->oldest) = p->newer;
}

static void link_newest(fv_view_cache *c, fv_view_piece *p) {
    p->newer = NULL;
    p->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = p;
    c->newest = p;
}

static void forget(fv_view_cache *c, fv_view_piece *p) {
    fv_view_piece **place = find(c, p->key);
    *place = p->next;
    unlink_use(c, p);
    c->bytes -= (int64_t)p->size;
    free(p->data);
    free(p);
}

static void make_room(fv_view_cache *c) {
    for (fv_view_piece *p = c->oldest; p && c->bytes > c->most;) {
        fv_view_piece *newer = p->newer;
        if (!p->users) forget(c, p);
        p = newer;
    }
}

void fv_view_cache_free(fv_view_cache *c) {
    while (c->oldest) forget(c, c->oldest);
    pthread_mutex_destroy(&c->mutex);
    pthread_cond_destroy(&c->loaded);
    free(c);
}

/* The mutex is held, but not while it is loaded. */
static fv_status load_piece(fv_view_cache *c, fv_hash key, size_t size, fv_status (*load)(void *, void *, fv_error *),
                            void *context, fv_view_piece **piece, fv_error *error) {
    fv_view_piece *p = fv__calloc(sizeof *p);
    *p = (fv_view_piece){ .next = c->bucket[key.low % BUCKETS], .key = key, .size = size, .users = 1 };
    c->bucket[key.low % BUCKETS] = p;
    link_newest(c, p);
    c->bytes += (int64_t)size;
    make_room(c);
    pthread_mutex_unlock(&c->mutex);
    fv_status status = FV_TAKE(p->data, FV_MAX(size, 1), error);
    if (status == FV_OK) status = load(context, p->data, error);
    pthread_mutex_lock(&c->mutex);
    p->ready = true;
    pthread_cond_broadcast(&c->loaded);
    if (status != FV_OK)
        forget(c, p);
    else
        *piece = p;
    return status;
}

fv_status fv_view_cache_get(fv_view_cache *c, fv_hash key, size_t size,
                            fv_status (*load)(void *context, void *data, fv_error *error), void *context, fv_view_piece **piece,
                            fv_error *error) {
    fv_status      status = FV_OK;
    fv_view_piece *p;
    pthread_mutex_lock(&c->mutex);
    while ((p = *find(c, key)) && !p->ready) pthread_cond_wait(&c->loaded, &c->mutex);
    if (p) {
        p->users++;
        unlink_use(c, p);
        link_newest(c, p);
        *piece = p;
    } else
        status = load_piece(c, key, size, load, context, piece, error);
    pthread_mutex_unlock(&c->mutex);
    return status;
}

const void *fv_view_cache_data(const fv_view_piece *piece) { return piece->data; }

void fv_view_cache_release(fv_view_cache *c, fv_view_piece *p) {
    pthread_mutex_lock(&c->mutex);
    p->users--;
    make_room(c);
    pthread_mutex_unlock(&c->mutex);
}

bool fv_view_cache_has(fv_view_cache *c, fv_hash key) {
    pthread_mutex_lock(&c->mutex);
    bool has = *find(c, key) != NULL;
    pthread_mutex_unlock(&c->mutex);
    return has;
}
