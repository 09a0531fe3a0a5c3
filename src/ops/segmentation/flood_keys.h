/* The steps of flood.c for one width of keys: KEY, and NAME() for the functions. Included once per width, so it has no guard. */

#define NO_KEY ((KEY) ~(KEY)0)

typedef struct {
    KEY      high, low;
    uint32_t lower, upper;
} NAME(edge);

static inline bool NAME(less)(const NAME(edge) * a, const NAME(edge) * b) {
    if (a->high != b->high) return a->high < b->high;
    if (a->low != b->low) return a->low < b->low;
    return a->lower != b->lower ? a->lower < b->lower : a->upper < b->upper;
}

static inline NAME(edge) NAME(edge_of)(const KEY *key, uint32_t v, uint32_t u) {
    KEY a = key[v], b = key[u];
    return (NAME(edge)){ a > b ? a : b, a > b ? b : a, v < u ? v : u, v < u ? u : v };
}

/* One round: closed regions learn their least edge. Cells that have no other region beside them leave the list. */
static int64_t NAME(look_round)(fv__flood *f, int64_t count) {
    const KEY *key = f->key;
    NAME(edge) *best = f->best;
    int64_t left = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t v = f->active[i], mine = f->up[f->node[v]];
        bool     border = false;
        NAME(edge) least = { .high = NO_KEY, .low = NO_KEY };
        if (mine >= f->closed) continue;
        for (int k = 0; k < f->noffsets; k++) {
            uint32_t u = (uint32_t)(v + f->offset[k]);
            if (f->node[u] == FV__NO_NODE || f->up[f->node[u]] == mine) continue;
            NAME(edge) e = NAME(edge_of)(key, v, u);
            if (!border || NAME(less)(&e, &least)) least = e;
            border = true;
        }
        if (!border) continue;
        f->active[left++] = v;
        if (best[mine].upper == 0 || NAME(less)(&least, &best[mine])) best[mine] = least;
    }
    return left;
}

/* Closed regions go the way of their least edge; of two that chose each other the first stays. False if none did. */
static bool NAME(join_round)(fv__flood *f) {
    NAME(edge) *best = f->best;
    bool any = false;
    for (uint32_t r = 0; r < f->closed; r++) {
        f->choice[r] = r;
        if (f->up[r] != r || best[r].upper == 0) continue;
        uint32_t a = f->up[f->node[best[r].lower]], b = f->up[f->node[best[r].upper]];
        f->choice[r] = a == r ? b : a;
        best[r].upper = 0;
        any = true;
    }
    for (uint32_t r = 0; r < f->closed && any; r++) {
        uint32_t to = f->choice[r];
        if (to != r && !(to < f->closed && f->choice[to] == r && r < to)) f->up[r] = to;
    }
    for (uint32_t r = 0; r < f->closed && any; r++) flatten(f->up, r);
    return any;
}

static void NAME(join)(fv__flood *f) {
    NAME(edge) *best = f->best;
    for (int64_t r = 0; r < f->closed; r++) best[r].upper = 0; /* none: cell 0 is never the later end */
    int64_t count = list_border(f, true);
    do count = NAME(look_round)(f, count);
    while (NAME(join_round)(f));
}

/* The same among open and marked regions, over edges whose earlier voxel is own (the others are kept by another chunk); all
 * marked ones count as one tree, which never chooses. */
static void NAME(look_trees)(fv__flood *f, int64_t count) {
    const KEY *key = f->key;
    NAME(edge) *best = f->best;
    for (int64_t i = 0; i < count; i++) {
        uint32_t v = f->active[i];
        if (f->node[v] < f->closed) continue; /* without neighbours */
        for (int k = f->noffsets / 2; k < f->noffsets; k++) {
            uint32_t u = (uint32_t)(v + f->offset[k]);
            if (f->node[u] == FV__NO_NODE) continue;
            uint32_t a = f->tree[f->node[v] - f->closed], b = f->tree[f->node[u] - f->closed];
            if (a == b) continue;
            NAME(edge) e = NAME(edge_of)(key, v, u);
            if (a < f->open && (best[a].upper == 0 || NAME(less)(&e, &best[a]))) best[a] = e;
            if (b < f->open && (best[b].upper == 0 || NAME(less)(&e, &best[b]))) best[b] = e;
        }
    }
}

static void NAME(keep)(fv__flood *f, fv_bytes *edges) {
    NAME(edge) *best = f->best;
    int64_t count = list_border(f, false), all = f->open + f->marked;
    bool    any = true;
    for (int64_t r = 0; r < all; r++) f->tree[r] = (uint32_t)(r < f->open ? r : f->open);
    while (any) {
        any = false;
        for (int64_t r = 0; r < f->open; r++) best[r].upper = 0;
        NAME(look_trees)(f, count);
        for (uint32_t r = 0; r < f->open; r++) {
            if (f->tree[r] != r || best[r].upper == 0) continue;
            uint32_t a = f->node[best[r].lower] - (uint32_t)f->closed;
            uint32_t b = f->node[best[r].upper] - (uint32_t)f->closed;
            uint32_t to = f->tree[a] == r ? f->tree[b] : f->tree[a];
            bool     mutual = to < f->open && best[to].upper == best[r].upper && best[to].lower == best[r].lower;
            f->choice[r] = mutual && r < to ? r : to;
            if (mutual && r < to) continue;
            fv__flood_edge e = { best[r].high, best[r].low, place_of(f, best[r].lower, best[r].upper), a, b };
            fv__bytes_append(edges, &e, sizeof e);
            any = true;
        }
        for (uint32_t r = 0; r < f->open; r++)
            if (f->tree[r] == r && best[r].upper) f->tree[r] = f->choice[r];
        for (uint32_t r = 0; r < f->open; r++) flatten(f->tree, r);
    }
}

#undef NO_KEY
#undef KEY
#undef NAME
