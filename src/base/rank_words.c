/* Launchers of MPI. */
#include "base/rank_words.h"
#include "base/child.h"
#include "base/command_words.h"
#include <stdlib.h>

static void add(char ***list, int *count, char *word) {
    *list = fv__realloc(*list, (size_t)(*count + 2) * sizeof **list);
    (*list)[(*count)++] = word;
    (*list)[*count] = NULL;
}

static bool there(const char *program) {
    char *path = fv__executable_find(program);
    free(path);
    return path != NULL;
}

/* Words of a launcher, up to the number of ranks; false: there is none. */
static bool launcher(char ***list, int *count, int64_t ranks) {
    const char *given = getenv("FOVEA_MPIEXEC"), *node = getenv("SLURMD_NODENAME");
    if (given && *given) {
        for (const char *p = given; *(p += strspn(p, " ")); p += strcspn(p, " "))
            add(list, count, fv__sprintf("%.*s", (int)strcspn(p, " "), p));
    } else if (getenv("SLURM_JOB_ID") && there("srun")) {
        static const char *const options[] = { "srun", "--quiet", "--overlap", "--nodes=1", "--mem=0" };
        for (int i = 0; i < FV_COUNT(options); i++) add(list, count, fv__strdup(options[i]));
        add(list, count, fv__sprintf("--ntasks-per-node=%lld", (long long)ranks));
        if (node) add(list, count, fv__sprintf("--nodelist=%s", node));
    } else if (there("mpiexec"))
        add(list, count, fv__strdup("mpiexec"));
    else
        return false;
    add(list, count, fv__strdup("-n"));
    add(list, count, fv__sprintf("%lld", (long long)ranks));
    return true;
}

char **fv__rank_words(char **words, int64_t ranks, fv_error *error) {
    char **list = NULL;
    int    count = 0;
    if (ranks <= 1) return words;
    if (!launcher(&list, &count, ranks)) {
        fv__words_free(words);
        fv_fail(error, FV_ERROR_MISSING,
                "there is neither srun nor mpiexec to start %lld ranks; FOVEA_MPIEXEC can name another "
                "launcher",
                (long long)ranks);
        return NULL;
    }
    for (int i = 0; words[i]; i++) add(&list, &count, words[i]);
    free(words);
    return list;
}
