/* fovea devices study: the options and the whole of it, for cmd_devices.c. */
#ifndef FV_DEVICES_STUDY_H
#define FV_DEVICES_STUDY_H

#include "cli.h"

#define FV_STUDY_FIELDS                                                                                                          \
    int64_t     workers, tasks, devices, seed;                                                                                   \
    double      seconds;                                                                                                         \
    const char *output

#define FV_STUDY_OPTIONS(type)                                                                                                   \
    FV_OPTION(type, workers, .min = 1, .max = 256, .def = "12", .argument = "N", .doc = "study: processes that want devices"),   \
        FV_OPTION(type, tasks, .min = 1, .max = 10000, .def = "48", .argument = "N", .doc = "study: tasks that they do"),        \
        FV_OPTION(type, devices, .min = 1, .max = 16, .def = "3", .argument = "N", .doc = "study: devices"),                     \
        FV_OPTION(type, seconds, .min = 0.001, .max = 3600, .def = "0.25", .argument = "SECONDS",                                \
                  .doc = "study: mean length of a task"),                                                                        \
        FV_OPTION(type, seed, .min = 0, .max = 9e15, .def = "1", .argument = "N",                                                \
                  .doc = "study: another list of tasks; the same for all policies"),                                             \
        FV_OPTION(type, output, .letter = 'o', .argument = "FOLDER", .def = "devices-study",                                     \
                  .doc = "study: where tables (CSV, JSON) and pictures (SVG, PNG) go")

typedef struct fv_study_request {
    FV_STUDY_FIELDS;
    int64_t     memory; /* of a device; 0: 2G */
    const char *policy; /* NULL: all */
    bool        json;
} fv_study_request;

/* The exit status. */
int fv_devices_study(const fv_study_request *request);

#endif
