/* Descriptors of remote files, with a server of a few lines on loopback. */
#include "base/remote.h"
#include "support/test.h"
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 1000 };

/* Every file has SIZE letters r. */
static void *answer(void *context) {
    int listening = *(int *)context;
    for (int client; (client = accept(listening, NULL, NULL)) >= 0; close(client)) {
        char    request[4096] = "", reply[4096];
        size_t  got = 0;
        ssize_t n;
        while (!strstr(request, "\r\n\r\n") && (n = read(client, request + got, sizeof request - 1 - got)) > 0) got += (size_t)n;
        int length = snprintf(reply, sizeof reply, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", SIZE);
        if (!strncmp(request, "GET", 3)) {
            memset(reply + length, 'r', SIZE);
            length += SIZE;
        }
        if (write(client, reply, (size_t)length) < 0) break;
    }
    return NULL;
}

static char *serve(int *listening) {
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          length = sizeof address;
    pthread_t          thread;
    *listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ready = !bind(*listening, (struct sockaddr *)&address, length) && !listen(*listening, 8);
    getsockname(*listening, (struct sockaddr *)&address, &length);
    if (!ready || pthread_create(&thread, NULL, answer, listening)) return NULL;
    pthread_detach(thread);
    return fv__sprintf("http://127.0.0.1:%d/a.bin", ntohs(address.sin_port));
}

static bool all_are(int fd, char letter) {
    char data[SIZE] = "";
    if (fv__file_read_at(fd, data, SIZE, 0, "a.bin", NULL) != FV_OK) return false;
    for (int i = 0; i < SIZE; i++)
        if (data[i] != letter) return false;
    return true;
}

TEST(a_file_that_gets_the_number_and_inode_of_a_remote_one_is_not_it) {
    static int listening; /* the thread that serves ends with the process */
    char      *path = serve(&listening), local[SIZE];
    int        fd, again;
    fv_error   error = { 0 };
    CHECK(path);
    fv_status status = fv__remote_open(path, &fd, &error);
    if (status != FV_OK && strstr(error.message, "fovea-remote.so")) SKIP("no fovea-remote.so: libcurl is missing");
    CHECK_MESSAGE(status == FV_OK, "%s", error.message);
    CHECK(all_are(fd, 'r'));
    close(fd);
    CHECK_INT(fv__remote_open(path, &fd, &error), FV_OK); /* nothing of it is fetched */
    close(fd);
    nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL); /* longer than a tick of the file system's clock */
    memset(local, 'l', sizeof local);
    CHECK_INT(fv__file_open_nameless(SIZE, &again, &error), FV_OK);
    if (again != fd) CHECK_INT(dup2(again, fd), fd); /* the thread that serves may have taken the number */
    CHECK_INT(fv__file_write_at(fd, local, SIZE, 0, "local", &error), FV_OK);
    CHECK(all_are(fd, 'l'));
    free(path);
}

TEST_MAIN
