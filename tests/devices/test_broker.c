/* Who gets which device: each policy's order, memory, limits, and that nobody starves. */
#include "devices/broker.h"
#include "support/test.h"

#define GIB ((int64_t)1 << 30)

static fv_broker *broker_with(fv_policy policy, int devices) {
    fv_broker *b = fv__broker_new(policy, 1);
    for (int i = 0; i < devices; i++) {
        fv_broker_device d = { .memory = 2 * GIB, .speed = 1 };
        snprintf(d.name, sizeof d.name, "card%d", i);
        fv__broker_add(b, &d);
    }
    return b;
}

static int next_device(fv_broker *b) {
    fv_broker_grant g;
    return fv__broker_grant_next(b, &g) ? g.device : -1;
}

static int64_t next_ticket(fv_broker *b) {
    fv_broker_grant g;
    return fv__broker_grant_next(b, &g) ? (int64_t)g.ticket : -1;
}

TEST(round_robin_goes_around) {
    fv_broker *b = broker_with(FV_POLICY_ROUND_ROBIN, 3);
    for (uint64_t t = 1; t <= 4; t++) CHECK_INT(fv__broker_ask(b, t, 7, GIB / 2), FV_ASKED_WAITS);
    for (int i = 0; i < 4; i++) CHECK_INT(next_device(b), i % 3);
    CHECK_INT(next_device(b), -1);
    fv__broker_free(b);
}

TEST(least_processes_takes_the_device_with_the_fewest_tasks) {
    fv_broker *b = broker_with(FV_POLICY_LEAST_PROCESSES, 3);
    for (uint64_t t = 1; t <= 5; t++) fv__broker_ask(b, t, 7, GIB / 2);
    int order[] = { 0, 1, 2, 0, 1 };
    for (int i = 0; i < 5; i++) CHECK_INT(next_device(b), order[i]);
    CHECK(fv__broker_give_back(b, 2)); /* on device 1, which then has one, as device 2 */
    CHECK(fv__broker_give_back(b, 3)); /* on device 2, which then has none */
    fv__broker_ask(b, 6, 7, GIB / 2);
    CHECK_INT(next_device(b), 2);
    fv__broker_free(b);
}

TEST(best_fit_looks_at_speed_and_then_at_memory) {
    fv_broker *b = fv__broker_new(FV_POLICY_BEST_FIT, 1);
    fv__broker_add(b, &(fv_broker_device){ .name = "slow", .memory = 8 * GIB, .speed = 1 });
    fv__broker_add(b, &(fv_broker_device){ .name = "fast", .memory = 4 * GIB, .speed = 4 });
    fv__broker_add(b, &(fv_broker_device){ .name = "small", .memory = 2 * GIB, .speed = 1 });
    fv__broker_ask(b, 1, 7, 3 * GIB);
    CHECK_INT(next_device(b), 1); /* the fastest */
    fv__broker_ask(b, 2, 7, 3 * GIB);
    CHECK_INT(next_device(b), 0); /* the only one with so much left */
    fv__broker_ask(b, 3, 7, GIB);
    CHECK_INT(next_device(b), 1); /* half of 4 is still more than 1 */
    fv__broker_ask(b, 4, 7, GIB);
    CHECK_INT(next_device(b), 2); /* equal speeds: the other one keeps its large room */
    fv__broker_free(b);
}

TEST(random_uses_all_devices_and_is_repeatable) {
    int seen[3] = { 0 }, first[60];
    for (int round = 0; round < 2; round++) {
        fv_broker *b = broker_with(FV_POLICY_RANDOM, 3);
        for (int i = 0; i < 60; i++) {
            fv__broker_ask(b, (uint64_t)i, 7, GIB);
            int d = next_device(b);
            CHECK(d >= 0 && (round == 0 || d == first[i]));
            first[i] = d;
            seen[d]++;
            CHECK(fv__broker_give_back(b, (uint64_t)i));
        }
        fv__broker_free(b);
    }
    for (int d = 0; d < 3; d++) CHECK(seen[d] > 20);
}

TEST(memory_and_tasks_of_a_device_are_never_exceeded) {
    fv_broker *b = fv__broker_new(FV_POLICY_ROUND_ROBIN, 1);
    fv__broker_add(b, &(fv_broker_device){ .name = "a", .memory = 2 * GIB, .speed = 1, .most = 3 });
    uint64_t state = 5, out[64];
    int      count = 0;
    for (uint64_t t = 1; t < 4000; t++) {
        uint32_t user = (uint32_t)(test_random(&state) % 3);
        if (test_random(&state) & 1) fv__broker_ask(b, t, user, (int64_t)(test_random(&state) % 3) * GIB / 2);
        for (fv_broker_grant g; fv__broker_grant_next(b, &g);) out[count++] = g.ticket;
        const fv_broker_device *d = fv__broker_device_at(b, 0);
        CHECK(d->used <= d->memory && d->tasks <= 3 && d->tasks == count);
        if (count && test_random(&state) & 1) CHECK(fv__broker_give_back(b, out[--count]));
    }
    fv__broker_free(b);
}

TEST(a_user_with_many_requests_does_not_hold_up_another) {
    fv_broker *b = broker_with(FV_POLICY_ROUND_ROBIN, 2);
    for (uint64_t t = 1; t <= 100; t++) fv__broker_ask(b, t, 1, 2 * GIB);
    CHECK(next_ticket(b) == 1 && next_ticket(b) == 2 && next_ticket(b) == -1);
    fv__broker_ask(b, 500, 2, 2 * GIB);
    CHECK(fv__broker_give_back(b, 1));
    CHECK_INT(next_ticket(b), 500); /* before the 98 that came earlier */
    CHECK(fv__broker_give_back(b, 2));
    CHECK_INT(next_ticket(b), 3);
    fv__broker_free(b);
}

TEST(a_user_with_many_requests_gets_no_more_turns_for_having_waited) {
    fv_broker      *b = broker_with(FV_POLICY_ROUND_ROBIN, 2);
    fv_broker_grant theirs, ours;
    for (uint64_t t = 1; t <= 400; t++) fv__broker_ask(b, t, 1, 2 * GIB);
    CHECK(next_ticket(b) == 1 && fv__broker_grant_next(b, &theirs));
    for (uint64_t t = 1000; t < 1100; t++) { /* somebody who asks for one device after the other */
        fv__broker_ask(b, t, 2, 2 * GIB);
        CHECK(fv__broker_give_back(b, theirs.ticket));
        CHECK(fv__broker_grant_next(b, &ours) && ours.ticket == t);
        CHECK(fv__broker_give_back(b, t));
        CHECK(fv__broker_grant_next(b, &theirs) && theirs.user == 1);
    }
    fv__broker_free(b);
}

TEST(small_requests_do_not_starve_a_large_one) {
    fv_broker *b = broker_with(FV_POLICY_ROUND_ROBIN, 1);
    uint64_t   t = 1, running[2] = { 0 };
    for (int i = 0; i < 2; i++) {
        fv__broker_ask(b, running[i] = t++, 1, GIB);
        CHECK(next_ticket(b) > 0);
    }
    fv__broker_ask(b, 1000000, 2, 2 * GIB); /* needs the whole card */
    int passed = 0;
    for (bool served = false; !served; passed++) {
        CHECK(passed < 100);
        fv__broker_ask(b, t, 1, GIB);
        CHECK(fv__broker_give_back(b, running[passed % 2]));
        running[passed % 2] = t++;
        for (fv_broker_grant g; fv__broker_grant_next(b, &g);) served = served || g.ticket == 1000000;
    }
    CHECK(passed > 4);
    fv__broker_free(b);
}

TEST(what_cannot_ever_be_served_and_too_many_requests_are_refused) {
    fv_broker *b = broker_with(FV_POLICY_ROUND_ROBIN, 1);
    CHECK_INT(fv__broker_ask(b, 1, 1, 3 * GIB), FV_ASKED_TOO_LARGE);
    fv__broker_limit(b, 3, 2);
    CHECK_INT(fv__broker_ask(b, 2, 1, GIB), FV_ASKED_WAITS);
    CHECK_INT(fv__broker_ask(b, 3, 1, GIB), FV_ASKED_WAITS);
    CHECK_INT(fv__broker_ask(b, 4, 1, GIB), FV_ASKED_QUEUE_FULL);
    CHECK_INT(fv__broker_ask(b, 5, 2, GIB), FV_ASKED_WAITS);
    CHECK_INT(fv__broker_ask(b, 6, 3, GIB), FV_ASKED_QUEUE_FULL);
    CHECK(!fv__broker_give_back(b, 4) && fv__broker_give_back(b, 3));
    CHECK_INT(fv__broker_ask(b, 7, 3, GIB), FV_ASKED_WAITS);
    fv__broker_free(b);
}

TEST_MAIN
