/* Control groups, version 2. */
#include "base/cgroup.h"
#include "base/file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_NAPS = 500 }; /* of a millisecond, for what was killed to be gone */

static bool read_small(const char *folder, const char *name, char *text, size_t size) {
    char   *path = fv__path_inside(folder, name);
    int     fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0) close(fd);
    free(path);
    text[length > 0 ? length : 0] = 0;
    return length >= 0;
}

static bool write_small(const char *folder, const char *name, const char *text) {
    char   *path = fv__path_inside(folder, name);
    int     fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : write(fd, text, strlen(text));
    if (fd >= 0) close(fd);
    free(path);
    return length == (ssize_t)strlen(text);
}

/* Where groups of version 2 are seen; NULL: nowhere. */
static char *mount_point(void) {
    FILE *file = fopen("/proc/self/mounts", "re");
    char  line[4096], place[2048], kind[64], *found = NULL;
    while (file && !found && fgets(line, sizeof line, file))
        if (sscanf(line, "%*s %2047s %63s", place, kind) == 2 && !strcmp(kind, "cgroup2")) found = fv__strdup(place);
    if (file) fclose(file);
    return found;
}

/* The group of this process; NULL: there is none. */
static char *own_group(void) {
    FILE *file = fopen("/proc/self/cgroup", "re");
    char  line[4096], *mounted = mount_point(), *found = NULL;
    while (file && mounted && !found && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "0::/", 4)) found = fv__sprintf("%s%s", mounted, line[4] ? line + 3 : "");
    }
    if (file) fclose(file);
    free(mounted);
    return found;
}

/* Groups count memory only below one that holds no process itself: if we are alone in ours, we make room. */
static void count_memory(const char *own) {
    char text[256], number[16];
    if (read_small(own, "cgroup.subtree_control", text, sizeof text) && strstr(text, "memory")) return;
    if (write_small(own, "cgroup.subtree_control", "+memory") || errno != EBUSY) return;
    snprintf(number, sizeof number, "%d\n", (int)getpid());
    if (!read_small(own, "cgroup.procs", text, sizeof text) || strcmp(text, number)) return;
    char *leaf = fv__sprintf("%s/fovea-%d", own, (int)getpid());
    if (!mkdir(leaf, 0777) && write_small(leaf, "cgroup.procs", "0")) write_small(own, "cgroup.subtree_control", "+memory");
    free(leaf);
}

/* The group below which those of programs are made; NULL: it is not ours. */
static char *delegated(void) {
    char *own = own_group(), *last = own ? strrchr(own, '/') : NULL, leaf[32];
    snprintf(leaf, sizeof leaf, "/fovea-%d", (int)getpid());
    if (last && !strcmp(last, leaf)) *last = 0; /* we made room before */
    if (own && !access(own, W_OK)) return own;
    free(own);
    return NULL;
}

char *fv__cgroup_new(const char *name, int64_t memory) {
    char *above = delegated(), *group = NULL, text[32];
    if (!above) return NULL;
    if (memory) count_memory(above);
    group = fv__path_inside(above, name);
    free(above);
    if (mkdir(group, 0777)) {
        free(group);
        return NULL;
    }
    snprintf(text, sizeof text, "%lld", (long long)memory);
    if (memory && write_small(group, "memory.max", text)) {
        write_small(group, "memory.swap.max", "0");
        write_small(group, "memory.oom.group", "1");
    }
    return group;
}

int fv__cgroup_file(const char *group) {
    char *path = fv__path_inside(group, "cgroup.procs");
    int   fd = open(path, O_WRONLY | O_CLOEXEC);
    free(path);
    return fd;
}

void fv__cgroup_kill(const char *group) { write_small(group, "cgroup.kill", "1"); }

bool fv__cgroup_ran_out(const char *group) {
    char  text[512];
    char *found = read_small(group, "memory.events", text, sizeof text) ? strstr(text, "oom_kill ") : NULL;
    return found && atoll(found + 9) > 0;
}

void fv__cgroup_free(char *group) {
    if (!group) return;
    for (int i = 0; rmdir(group) && errno == EBUSY && i < MOST_NAPS; i++) {
        fv__cgroup_kill(group);
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    free(group);
}

void fv__cgroups_sweep(bool (*left)(const char *name)) {
    char          *above = delegated();
    DIR           *all = above ? opendir(above) : NULL;
    struct dirent *entry;
    while (all && (entry = readdir(all)))
        if (left(entry->d_name)) {
            char *group = fv__path_inside(above, entry->d_name);
            fv__cgroup_kill(group);
            fv__cgroup_free(group);
        }
    if (all) closedir(all);
    free(above);
}
