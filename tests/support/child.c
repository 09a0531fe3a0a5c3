/* Starting and talking to children of a test. */
#include "support/child.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

test_child test_child_start(const char *what, const char *argument, const char *extra, const char *settings) {
    int        to[2], from[2];
    test_child child;
    if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC)) abort();
    child.pid = fork();
    if (child.pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        char *copy = settings ? strdup(settings) : NULL, *rest = NULL;
        for (char *one = copy ? strtok_r(copy, " ", &rest) : NULL; one; one = strtok_r(NULL, " ", &rest)) putenv(one);
        execl("/proc/self/exe", "test", "--child", what, argument, extra, (char *)NULL);
        _exit(9);
    }
    close(to[0]);
    close(from[1]);
    child.in = to[1];
    child.out = from[0];
    return child;
}

char test_child_answer(test_child *child) {
    char first = 0, byte = 0;
    while (read(child->out, &byte, 1) == 1 && byte != '\n')
        if (!first) first = byte;
    return first;
}

void test_child_tell(test_child *child, char what) {
    if (write(child->in, &what, 1) != 1) abort();
}

char test_child_ask(test_child *child, char what) {
    test_child_tell(child, what);
    return test_child_answer(child);
}

int test_child_finish(test_child *child) {
    int status;
    close(child->in);
    close(child->out);
    waitpid(child->pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void test_child_say(char what, int number) {
    char text[16];
    int  n = snprintf(text, sizeof text, "%c%d\n", what, number);
    if (write(1, text, (size_t)n) != n) _exit(8);
}
