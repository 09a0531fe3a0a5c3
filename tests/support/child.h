/* Children of a test: the test program itself, started anew with "--child WHAT ARGUMENT EXTRA", talking by single characters over
 * its standard input and output. */
#ifndef FV_TEST_CHILD_H
#define FV_TEST_CHILD_H

#include <sys/types.h>

typedef struct test_child {
    pid_t pid;
    int   in, out;
} test_child;

/* settings: environment, "NAME=value NAME=value" or NULL. */
test_child test_child_start(const char *what, const char *argument, const char *extra, const char *settings);
char       test_child_answer(test_child *child); /* first character of its next line; 0: it ended */
void       test_child_tell(test_child *child, char what);
char       test_child_ask(test_child *child, char what); /* both */
/* Closes its input and output and waits: its exit status, or minus the signal that ended it. */
int test_child_finish(test_child *child);

/* In the child. */
void test_child_say(char what, int number); /* one line */

#endif
