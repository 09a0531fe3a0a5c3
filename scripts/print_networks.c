/* Prints the comparator networks of common windows as C, for src/kernels/rank_network_key.h: straight lines of MIN and MAX on
 * vectors, and a table to find them by. A build step, so that networks are made in one place only.
 */
#include "base/sorting_network.h"
#include <stdio.h>
#include <string.h>

typedef struct {
    int lists, length[9], rank;
} shape;

static const shape shapes[] = {
    { 3, { 1, 1, 1 }, -1 },                   /* 3 rows, or 3 planes */
    { 3, { 3, 3, 3 }, 4 },                    /* 3 x 3 */
    { 3, { 3, 3, 3 }, -1 },                   /* a column of 3 x 3 x 3 */
    { 3, { 9, 9, 9 }, 13 },                   /* 3 x 3 x 3 */
    { 5, { 1, 1, 1, 1, 1 }, -1 },             /* 5 rows, or 5 planes */
    { 2, { 5, 5 }, -1 },                      /* two columns of 5 x 5 */
    { 3, { 10, 10, 5 }, 12 },                 /* 5 x 5 */
    { 5, { 5, 5, 5, 5, 5 }, -1 },             /* a column of 5 x 5 x 5 */
    { 2, { 25, 25 }, -1 },                    /* two of them */
    { 3, { 50, 50, 25 }, 62 },                /* 5 x 5 x 5 */
    { 7, { 1, 1, 1, 1, 1, 1, 1 }, -1 },       /* 7 rows */
    { 2, { 7, 7 }, -1 },                      /* two columns of 7 x 7 */
    { 4, { 14, 14, 14, 7 }, 24 },             /* 7 x 7 */
    { 9, { 1, 1, 1, 1, 1, 1, 1, 1, 1 }, -1 }, /* 9 rows */
    { 2, { 9, 9 }, -1 },                      /* two columns of 9 x 9 */
    { 2, { 18, 18 }, -1 },                    /* four */
    { 3, { 36, 36, 9 }, 40 },                 /* 9 x 9 */
};
enum { SHAPES = (int)(sizeof shapes / sizeof *shapes) };

static fv_network network;
static bool       loaded[FV_NETWORK_INPUTS];

static void load(const shape *s, int value) {
    if (value >= network.inputs || loaded[value]) return;
    int list = 0, row = value;
    while (row >= s->length[list]) row -= s->length[list++];
    printf("        VECTOR v%d = LOAD(list[%d] + %d * PITCH + x);\n", value, list, row);
    loaded[value] = true;
}

static void print_network(int index) {
    const shape *s = &shapes[index];
    fv__network_build(&network, s->length, s->lists, s->rank);
    memset(loaded, 0, sizeof loaded);
    printf("static void K(network_%d)(const KEY *const *list, KEY *out, int64_t n) {\n", index);
    printf("    for (int64_t x = 0; x < n; x += LANES) {\n");
    for (int i = 0; i < network.count; i++) {
        const fv_comparator *c = &network.comparator[i];
        load(s, c->a);
        load(s, c->b);
        if (c->low != FV_NETWORK_NONE) printf("        VECTOR v%d = MIN(v%d, v%d);\n", c->low, c->a, c->b);
        if (c->high != FV_NETWORK_NONE) printf("        VECTOR v%d = MAX(v%d, v%d);\n", c->high, c->a, c->b);
        for (int o = 0; o < network.outputs; o++)
            if (network.output[o] == c->low || network.output[o] == c->high)
                printf("        STORE(out + %d * PITCH + x, v%d);\n", o, network.output[o]);
    }
    printf("    }\n}\n");
}

int main(void) {
    printf("/* Made by scripts/print_networks.c; do not edit. */\n");
    for (int i = 0; i < SHAPES; i++) print_network(i);
    printf("static const struct { int lists, length[9], rank; void (*run)(const KEY *const *, KEY *, int64_t); } K(networks)[] = "
           "{\n");
    for (int i = 0; i < SHAPES; i++) {
        printf("    { %d, {", shapes[i].lists);
        for (int k = 0; k < shapes[i].lists; k++) printf(" %d,", shapes[i].length[k]);
        printf(" }, %d, K(network_%d) },\n", shapes[i].rank, i);
    }
    printf("};\n");
    return 0;
}
