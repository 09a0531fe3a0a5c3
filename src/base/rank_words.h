/* Programs of several MPI ranks: the words that start them. */
#ifndef FV_RANK_WORDS_H
#define FV_RANK_WORDS_H

#include "base/base.h"

/* The words with those of a launcher before them, for fv__words_free: of FOVEA_MPIEXEC, inside of a Slurm job of srun (on this
 * node, beside what runs there), else of mpiexec. ranks 1: the words alone. The given ones are freed, also if there is no
 * launcher: then *error says so and NULL is given. */
char **fv__rank_words(char **words, int64_t ranks, fv_error *error);

#endif
