/* What the shared library lets others see: the functions that are declared with FV_API, and nothing else. */
#ifndef FOVEA_API_H
#define FOVEA_API_H

#define FV_API __attribute__((visibility("default")))

#endif
