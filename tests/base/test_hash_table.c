/* The hash table: what was put in is found, what was taken out is not, whatever collides with whatever. */
#include "base/hash_table.h"
#include "support/test.h"

enum { THINGS = 400, SLOTS = 512 };

static uint32_t things[THINGS];

typedef struct {
    uint32_t thing;
} wanted;

static bool is_wanted(const void *context, uint32_t number) { return things[number] == ((const wanted *)context)->thing; }

static uint32_t held(const fv_hash_table *table, bool tagged, uint32_t hashes, uint32_t thing) {
    wanted w = { thing };
    return *fv__hash_table_at(table, tagged, fv__hash_table_find(table, tagged, thing % hashes, is_wanted, &w));
}

/* hashes: how many different ones there are. */
static void fill_and_empty(uint32_t hashes) {
    uint32_t      plain[SLOTS] = { 0 }, both[2 * SLOTS] = { 0 };
    fv_hash_table small = { plain, SLOTS - 1 }, tagged = { both, SLOTS - 1 };
    uint64_t      seed = hashes;
    bool          there[THINGS] = { 0 };
    for (uint32_t i = 0; i < THINGS; i++) {
        things[i] = i * 2654435761u;
        fv__hash_table_add(&small, false, things[i] % hashes, i);
    }
    for (uint32_t i = 0; i < THINGS; i++) CHECK_INT(held(&small, false, hashes, things[i]), i + 1);
    CHECK_INT(held(&small, false, hashes, 1), 0);
    for (int round = 0; round < 3000; round++) {
        uint32_t i = (uint32_t)(test_random(&seed) % THINGS);
        wanted   w = { things[i] };
        if (there[i])
            fv__hash_table_remove(&tagged, fv__hash_table_find(&tagged, true, things[i] % hashes, is_wanted, &w));
        else
            fv__hash_table_add(&tagged, true, things[i] % hashes, i);
        there[i] = !there[i];
        for (uint32_t k = (uint32_t)round % 7; k < THINGS; k += 7)
            CHECK_INT(held(&tagged, true, hashes, things[k]), there[k] ? k + 1 : 0);
    }
}

TEST(things_with_different_hashes_are_found_until_they_are_taken_out) { fill_and_empty(UINT32_MAX); }
TEST(things_whose_hashes_collide_are_found_until_they_are_taken_out) { fill_and_empty(20); }
TEST(things_with_one_hash_are_found_until_they_are_taken_out) { fill_and_empty(1); }

TEST(half_of_the_slots_stay_free) {
    CHECK_INT(fv__hash_table_slots(0), 16);
    CHECK_INT(fv__hash_table_slots(8), 16);
    CHECK_INT(fv__hash_table_slots(9), 32);
    CHECK_INT(fv__hash_table_slots(1 << 20), 1 << 21);
}

TEST_MAIN
