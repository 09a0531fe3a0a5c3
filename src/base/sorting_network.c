/* Networks of comparators. */
#include "base/sorting_network.h"
#include <string.h>

typedef struct {
    uint16_t *value;
    int       length;
} list;

static void compare(fv_network *n, uint16_t *low, uint16_t *high) {
    if (n->count == FV_NETWORK_COMPARATORS) return; /* build() notices */
    fv_comparator *c = &n->comparator[n->count++];
    *c = (fv_comparator){ *low, *high, (uint16_t)n->values, (uint16_t)(n->values + 1) };
    n->values += 2;
    *low = c->low;
    *high = c->high;
}

/* Batcher's odd-even merge of lists of any length, each given by first element and step, into out. */
static void merge(fv_network *n, const uint16_t *a, int na, const uint16_t *b, int nb, int step, uint16_t *out) {
    if (na == 0 || nb == 0) {
        for (int i = 0; i < na + nb; i++) out[i] = (na ? a : b)[i * step];
        return;
    }
    if (na == 1 && nb == 1) {
        out[0] = a[0];
        out[1] = b[0];
        compare(n, &out[0], &out[1]);
        return;
    }
    uint16_t even[FV_NETWORK_INPUTS], odd[FV_NETWORK_INPUTS];
    even[0] = FV_NETWORK_NONE;
    int evens = (na + 1) / 2 + (nb + 1) / 2, odds = na / 2 + nb / 2, i = 0;
    merge(n, a, (na + 1) / 2, b, (nb + 1) / 2, 2 * step, even);
    merge(n, a + step, na / 2, b + step, nb / 2, 2 * step, odd);
    *out++ = even[0];
    for (; i < odds && i + 1 < evens; i++) {
        out[0] = odd[i];
        out[1] = even[i + 1];
        compare(n, &out[0], &out[1]);
        out += 2;
    }
    if (i < odds) *out++ = odd[i];
    for (i++; i < evens; i++) *out++ = even[i];
}

static list merged(fv_network *n, list a, list b) {
    uint16_t out[FV_NETWORK_INPUTS];
    merge(n, a.value, a.length, b.value, b.length, 1, out);
    a.length += b.length; /* b's values follow a's in memory, or the other way round */
    if (b.value < a.value) a.value = b.value;
    memcpy(a.value, out, (size_t)a.length * sizeof *out);
    return a;
}

/* The element of that rank in the union of two sorted lists is the least, over all ways to take rank + 1 elements from the
 * fronts of both, of the last one taken. */
static uint16_t select_from_two(fv_network *n, list a, list b, int rank) {
    uint16_t least = FV_NETWORK_NONE;
    for (int j = 0; j <= b.length; j++) {
        int i = rank + 1 - j;
        if (i < 0 || i > a.length) continue;
        uint16_t last = i ? a.value[i - 1] : b.value[j - 1];
        if (i && j) {
            uint16_t other = b.value[j - 1];
            compare(n, &other, &last); /* last becomes the larger one */
        }
        if (least == FV_NETWORK_NONE)
            least = last;
        else
            compare(n, &least, &last);
    }
    return least;
}

static void drop_unused(fv_network *n) {
    bool used[2 * FV_NETWORK_COMPARATORS + FV_NETWORK_INPUTS] = { false };
    for (int i = 0; i < n->outputs; i++) used[n->output[i]] = true;
    int kept = n->count;
    for (int i = n->count - 1; i >= 0; i--) {
        fv_comparator c = n->comparator[i];
        if (!used[c.low]) c.low = FV_NETWORK_NONE;
        if (!used[c.high]) c.high = FV_NETWORK_NONE;
        if (c.low == FV_NETWORK_NONE && c.high == FV_NETWORK_NONE) continue;
        used[c.a] = used[c.b] = true;
        n->comparator[--kept] = c;
    }
    n->count -= kept;
    memmove(n->comparator, n->comparator + kept, (size_t)n->count * sizeof *n->comparator);
}

bool fv__network_build(fv_network *n, const int *length, int lists, int rank) {
    uint16_t values[FV_NETWORK_INPUTS];
    list     all[FV_NETWORK_INPUTS];
    int64_t  total = 0;
    for (int i = 0; i < lists; i++) total += length[i];
    if (lists < 1 || lists > FV_NETWORK_INPUTS || total > FV_NETWORK_INPUTS) return false;
    n->inputs = n->values = (int)total;
    n->count = 0;
    for (int i = 0, start = 0; i < lists; start += length[i++]) {
        all[i] = (list){ values + start, length[i] };
        for (int k = 0; k < length[i]; k++) values[start + k] = (uint16_t)(start + k);
    }
    while (lists > (rank < 0 ? 1 : 2)) { /* neighbours, so that lengths stay alike; a selection takes the last two apart */
        for (int i = 0; 2 * i + 1 < lists; i++) all[i] = merged(n, all[2 * i], all[2 * i + 1]);
        if (lists % 2) all[lists / 2] = all[lists - 1];
        lists = (lists + 1) / 2;
    }
    n->outputs = rank < 0 ? (int)total : 1;
    if (rank < 0)
        memcpy(n->output, all[0].value, (size_t)total * sizeof *values);
    else
        n->output[0] = lists == 1 ? all[0].value[rank] : select_from_two(n, all[0], all[1], rank);
    if (n->count == FV_NETWORK_COMPARATORS) return false;
    drop_unused(n);
    return true;
}
