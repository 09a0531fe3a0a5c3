/* Processors divided among those who share a pilot. */
#include "cluster/pilot_shares.h"
#include "support/test.h"

enum { MOST = 4 };
static fv_allowance allowances[MOST];
static fv_share_of  shares[MOST];

static void who(int i, int used, int wanted, int least, double served) {
    int allowed = allowances[i].allowed;
    allowances[i] = (fv_allowance){ .allowed = allowed, .used = used, .wanted = wanted, .least = least };
    shares[i] = (fv_share_of){ .allowance = &allowances[i], .served = served };
}

static void forget(void) {
    for (int i = 0; i < MOST; i++) allowances[i] = (fv_allowance){ 0 };
}

TEST(equal_parts_and_what_one_cannot_use_goes_to_the_others) {
    forget();
    who(0, 0, 8, 1, 0);
    fv__shares_divide(shares, 1, 8);
    CHECK_INT(allowances[0].allowed, 8);
    who(1, 0, 8, 1, 0);
    fv__shares_divide(shares, 2, 8);
    CHECK_INT(allowances[0].allowed, 4);
    CHECK_INT(allowances[1].allowed, 4);
    who(1, 0, 1, 1, 0);
    fv__shares_divide(shares, 2, 8);
    CHECK_INT(allowances[0].allowed, 7);
    CHECK_INT(allowances[1].allowed, 1);
}

TEST(what_is_begun_goes_on_and_nobody_gets_what_is_in_use) {
    forget();
    allowances[0].allowed = 8;
    who(0, 8, 8, 1, 100);
    who(1, 0, 8, 1, 0);
    fv__shares_divide(shares, 2, 8);
    CHECK_INT(allowances[0].allowed, 4);
    CHECK_INT(allowances[1].allowed, 0);
    who(0, 6, 8, 1, 100);
    fv__shares_divide(shares, 2, 8);
    CHECK_INT(allowances[1].allowed, 2);
}

TEST(more_of_them_than_processors_take_turns) {
    forget();
    int had[3] = { 0 };
    for (int round = 0; round < 30; round++) {
        for (int i = 0; i < 3; i++) who(i, 0, 1, 1, had[i]);
        fv__shares_divide(shares, 3, 1);
        for (int i = 0; i < 3; i++) had[i] += allowances[i].allowed;
    }
    for (int i = 0; i < 3; i++) CHECK_INT(had[i], 10);
}

TEST(who_needs_several_at_once_gets_them_when_he_has_had_least) {
    forget();
    who(0, 2, 4, 1, 10);
    who(1, 0, 4, 4, 5);
    fv__shares_divide(shares, 2, 4);
    CHECK_INT(allowances[0].allowed, 0); /* gives way, and what it has begun still runs */
    CHECK_INT(allowances[1].allowed, 2);
    who(0, 0, 4, 1, 10);
    fv__shares_divide(shares, 2, 4);
    CHECK_INT(allowances[1].allowed, 4);
}

TEST_MAIN
