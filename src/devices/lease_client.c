/* The client of the node's scheduler of devices: sockets and lines of text, nothing else of Fovea. */
#include <errno.h>
#include <fovea/device_lease.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define NODE_SOCKET "/run/fovea/devices.sock"
#define RESTART 30.0  /* seconds that a scheduler may be away */
#define LAST_WORD 1.0 /* that it has to say that there is none; one that hangs gives back what it granted when it wakes */
enum { MOST_OWED = 64 };

/* Of this process: the scheduler that was there once is waited for when it is away, and what could not be returned to it then is
 * returned before the next lease. */
static _Atomic uint64_t reached;         /* hash of its socket's name; 0: none */
static _Atomic uint64_t owed[MOST_OWED]; /* tickets; 0: none */
static _Atomic int64_t  away;            /* clock in milliseconds, since when it cannot be reached; 0: it could be */

void fv_device_socket(char path[108]) {
    const char *given = getenv("FOVEA_DEVICES"), *own = getenv("XDG_RUNTIME_DIR");
    if (given && *given)
        snprintf(path, 108, "%s", given);
    else if (access(NODE_SOCKET, F_OK) == 0)
        snprintf(path, 108, "%s", NODE_SOCKET);
    else if (own && *own)
        snprintf(path, 108, "%s/fovea-devices.sock", own);
    else
        snprintf(path, 108, "/tmp/fovea-devices-%u.sock", (unsigned)getuid());
}

static uint64_t hash_of(const char *path) { /* FNV-1a */
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *path; path++) hash = (hash ^ (unsigned char)*path) * 0x100000001b3u;
    return hash;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A connection, or -1 with the reason in message. */
static int connect_to(const char *path, char *message, size_t size) {
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
        reached = hash_of(path);
        away = 0;
        return fd;
    }
    int cause = errno;
    if (!away) away = (int64_t)(1000 * now());
    if (fd >= 0) close(fd);
    if (cause == ENOENT || cause == ECONNREFUSED)
        snprintf(message, size, "nobody gives out devices at %s; start `fovea devices serve`", path);
    else if (cause == EACCES)
        snprintf(message, size, "%s is for its owner and group only", path);
    else
        snprintf(message, size, "cannot connect to %s: %s", path, strerror(cause));
    return -1;
}

/* Whether it arrives, the answer tells. */
static void send_line(int fd, const char *line) {
    for (size_t left = strlen(line); left;) {
        ssize_t put = send(fd, line, left, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return;
        line += put;
        left -= (size_t)put;
    }
}

/* One line without its end, until a time (below 0: any); what is too long is cut. Nothing follows a line before it is asked for.
 * 1: read, 0: time is over, -1: the other side has gone. */
static int read_line(int fd, char *line, size_t size, double until) {
    for (size_t length = 0;;) {
        struct pollfd wait = { .fd = fd, .events = POLLIN };
        double        left = until - now();
        int           ready = poll(&wait, 1, until < 0 ? -1 : left > 0 ? (int)(1000 * left) + 1 : 0);
        char          more[256];
        if (ready < 0 && errno == EINTR) continue;
        if (ready == 0) return 0;
        ssize_t got = recv(fd, more, sizeof more, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return -1;
        bool   ended = more[got - 1] == '\n';
        size_t n = (size_t)got - ended;
        if (n > size - 1 - length) n = size - 1 - length;
        memcpy(line + length, more, n);
        length += n;
        line[length] = 0;
        if (ended) return 1;
    }
}

/* ---------------------------------------------------------------- what is owed */

/* Whether the scheduler has heard it; it refuses what it does not know. */
static bool return_ticket(int fd, uint64_t ticket) {
    char line[64], answer[256];
    snprintf(line, sizeof line, "return %llu\n", (unsigned long long)ticket);
    send_line(fd, line);
    return read_line(fd, answer, sizeof answer, now() + 5) == 1;
}

static void owe(uint64_t ticket) {
    for (int i = 0; i < MOST_OWED && ticket; i++) {
        uint64_t none = 0;
        if (atomic_compare_exchange_strong(&owed[i], &none, ticket)) return;
    }
}

static void settle(int fd) {
    for (int i = 0; i < MOST_OWED; i++) {
        uint64_t ticket = owed[i] ? atomic_exchange(&owed[i], 0) : 0;
        if (ticket && !return_ticket(fd, ticket)) owe(ticket);
    }
}

/* ---------------------------------------------------------------- leases */

static bool fail(fv_device_lease *lease, const char *why) {
    snprintf(lease->message, sizeof lease->message, "%.250s", why);
    if (lease->connection >= 0) close(lease->connection);
    lease->connection = -1;
    return false;
}

/* Asks and waits for the answer; asks again if the scheduler is being restarted meanwhile. 1, 0 or -1 as read_line. */
static int ask_and_wait(fv_device_lease *lease, int64_t memory, uint64_t devices, double until, char *line, size_t size) {
    double lost = now();
    for (;;) {
        if (lease->connection >= 0) {
            settle(lease->connection);
            if (devices)
                snprintf(line, size, "lease %lld %llx\n", (long long)memory, (unsigned long long)devices);
            else
                snprintf(line, size, "lease %lld\n", (long long)memory);
            send_line(lease->connection, line);
            int read = read_line(lease->connection, line, size, until);
            if (read >= 0) return read;
            close(lease->connection);
            lease->connection = -1;
            lost = now();
        }
        nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
        if (until >= 0 && now() >= until) return 0;
        if (now() - lost > RESTART) return -1;
        lease->connection = connect_to(lease->socket, lease->message, sizeof lease->message);
    }
}

bool fv_device_lease_take(const char *socket_path, int64_t memory, double seconds, fv_device_lease *lease) {
    return fv_device_lease_of(socket_path, memory, seconds, 0, lease);
}

bool fv_device_lease_of(const char *socket_path, int64_t memory, double seconds, uint64_t devices, fv_device_lease *lease) {
    char   line[512];
    double until = seconds < 0 ? -1 : now() + seconds;
    *lease = (fv_device_lease){ .connection = -1 };
    if (socket_path)
        snprintf(lease->socket, sizeof lease->socket, "%s", socket_path);
    else
        fv_device_socket(lease->socket);
    lease->connection = connect_to(lease->socket, lease->message, sizeof lease->message);
    int64_t since = away;
    bool    gone = since && now() - 1e-3 * (double)since > RESTART;
    if (lease->connection < 0 && (gone || reached != hash_of(lease->socket))) return false;
    int read = ask_and_wait(lease, memory, devices, until, line, sizeof line);
    if (read == 0 && lease->connection >= 0) { /* what it has granted just now would stay ours, so its last word is heard */
        shutdown(lease->connection, SHUT_WR);
        read = read_line(lease->connection, line, sizeof line, now() + LAST_WORD) == 1 ? 1 : 0;
    }
    lease->late = read == 0;
    if (lease->late) return fail(lease, "no device became free in time");
    if (read < 0) return fail(lease, "the scheduler of devices has gone");
    unsigned long long ticket;
    long long          granted;
    int                at = 0;
    if (sscanf(line, "granted %llu %d %lld %n", &ticket, &lease->index, &granted, &at) != 3 || !at)
        return fail(lease, !strncmp(line, "refused ", 8) ? line + 8 : line);
    lease->ticket = ticket;
    lease->memory = granted;
    snprintf(lease->name, sizeof lease->name, "%s", line + at);
    return true;
}

void fv_device_lease_return(fv_device_lease *lease) {
    enum { TRIES = 20 }; /* a tenth of a second apart */
    if (lease->connection < 0) return;
    bool told = return_ticket(lease->connection, lease->ticket);
    close(lease->connection);
    lease->connection = -1;
    for (int i = 0; i < TRIES && !told; i++) { /* it is being restarted: the new one knows the lease from its record */
        char why[256];
        int  fd = connect_to(lease->socket, why, sizeof why);
        told = fd >= 0 && return_ticket(fd, lease->ticket);
        if (fd >= 0) close(fd);
        if (!told) nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
    }
    if (!told) owe(lease->ticket);
}

bool fv_device_ask(const char *socket_path, const char *line, char *answer, size_t size) {
    char path[108], text[512];
    if (socket_path)
        snprintf(path, sizeof path, "%s", socket_path);
    else
        fv_device_socket(path);
    int fd = connect_to(path, answer, size);
    if (fd < 0) return false;
    snprintf(text, sizeof text, "%s\n", line);
    send_line(fd, text);
    bool good = read_line(fd, answer, size, now() + 5) == 1;
    close(fd);
    if (!good) snprintf(answer, size, "the scheduler of devices does not answer");
    if (good && !strncmp(answer, "refused ", 8)) {
        memmove(answer, answer + 8, strlen(answer + 8) + 1);
        good = false;
    }
    return good;
}
