/* Options of commands that ask a cluster for something. */
#ifndef FV_CLUSTER_OPTIONS_H
#define FV_CLUSTER_OPTIONS_H

#include "cli.h"
#include <fovea/cluster.h>

#define FV_CLUSTER_FIELDS                                                                                                        \
    const char *profile;                                                                                                         \
    const char *partition;                                                                                                       \
    const char *account;                                                                                                         \
    const char *qos;                                                                                                             \
    const char *constraint;                                                                                                      \
    const char *reservation;                                                                                                     \
    const char *time;                                                                                                            \
    const char *gres;                                                                                                            \
    const char *mail_user;                                                                                                       \
    const char *order;                                                                                                           \
    const char *mpi;                                                                                                             \
    int64_t     cpus_per_task;                                                                                                   \
    fv_size     mem;                                                                                                             \
    int64_t     nodes;                                                                                                           \
    int64_t     array_size;                                                                                                      \
    int64_t     at_once;                                                                                                         \
    double      min_time;                                                                                                        \
    bool        one_job

#define FV_CLUSTER_OPTIONS(type)                                                                                                 \
    FV_OPTION(type, profile, .argument = "NAME", .doc = "profile of the cluster: ~/.config/fovea/profiles/NAME.fov"),            \
        FV_OPTION(type, partition, .argument = "NAME", .doc = "partition to run in"),                                            \
        FV_OPTION(type, account, .argument = "NAME", .doc = "account to charge"),                                                \
        FV_OPTION(type, qos, .argument = "NAME", .doc = "quality of service"),                                                   \
        FV_OPTION(type, constraint, .argument = "TEXT", .doc = "features that nodes must have"),                                 \
        FV_OPTION(type, reservation, .argument = "NAME", .doc = "reservation to use"),                                           \
        FV_OPTION(type, time, .argument = "TIME",                                                                                \
                  .doc = "time limit of a job, such as 30 (minutes) or 2:00:00; a job that "                                     \
                         "reaches it is queued again"),                                                                          \
        FV_OPTION(type, gres, .argument = "TEXT", .doc = "generic resources of a job, such as gpu:1"),                           \
        FV_OPTION(type, mail_user, .argument = "ADDRESS", .doc = "who gets mail when everything is done"),                       \
        FV_OPTION(type, order, .choices = "fifo|longest|memory", .argument = "POLICY",                                           \
                  .doc = "with --one-job: which tasks come first: in their order, the longest, or those that fit into memory"),  \
        FV_OPTION(type, mpi, .argument = "KIND", .doc = "with --one-job: MPI ranks, started by srun --mpi=KIND"),                \
        FV_OPTION(type, cpus_per_task, .min = 1, .max = 4096, .argument = "N", .doc = "cores of one worker; 1 if left out"),     \
        FV_OPTION(type, mem, .doc = "memory of one job, such as 4G; what the plan needs if left out"),                           \
        FV_OPTION(type, nodes, .min = 1, .max = 1e6, .argument = "N", .doc = "with --one-job: its nodes; 1 if left out"),        \
        FV_OPTION(type, array_size, .min = 1, .max = 4e6, .argument = "N",                                                       \
                  .doc = "largest number of workers of a stage; 100 "                                                            \
                         "if left out"),                                                                                         \
        FV_OPTION(type, at_once, .min = 1, .max = 4e6, .argument = "N", .doc = "how many of them may run at the same time"),     \
        FV_OPTION(type, min_time, .min = 1e-6, .max = 1e6, .argument = "SECONDS",                                                \
                  .doc = "shortest time that a job should take; tiny tasks share a job; 60 if left out"),                        \
        FV_OPTION(type, one_job, .doc = "one job whose workers fetch the tasks, instead of job arrays")

#define FV_CLUSTER_FROM(o)                                                                                                       \
    {                                                                                                                            \
        .profile = (o)->profile, .partition = (o)->partition, .account = (o)->account, .qos = (o)->qos,                          \
        .constraint = (o)->constraint, .reservation = (o)->reservation, .time = (o)->time, .gres = (o)->gres,                    \
        .mail_user = (o)->mail_user, .order = (o)->order, .mpi = (o)->mpi, .cpus = (o)->cpus_per_task, .memory = (o)->mem.bytes, \
        .nodes = (o)->nodes, .array = (o)->array_size, .at_once = (o)->at_once, .minimum = (o)->min_time, .pilot = (o)->one_job  \
    }

#endif
