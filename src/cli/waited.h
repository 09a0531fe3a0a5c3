/* How long the user has waited for this command already. */
#ifndef FV_WAITED_H
#define FV_WAITED_H

/* Seconds since this process was started; of a rank of MPI, since the command was that has started all of them, which takes half
 * a second or more. To hundredths. */
double fv_waited(void);

#endif
