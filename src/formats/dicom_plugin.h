/* The little that Fovea asks of DCMTK, a maintained library for DICOM. src/plugins/dicom_plugin.cpp is compiled against it into a
 * plug-in that is loaded when such a file is met; nothing else knows DICOM.
 *
 * Functions may be called from any thread. Those that can fail put a sentence without the file's name into message.
 */
#ifndef FV_DICOM_PLUGIN_H
#define FV_DICOM_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FV_DICOM_VERSION = 2, FV_DICOM_MESSAGE = 256 };
#define FV_DICOM_SYMBOL "fv_dicom_plugin_get"

typedef struct fv_dicom_about {
    int64_t columns, rows, frames;
    bool    packed;                        /* frames are compressed */
    int     samples;                       /* values of a pixel: 1, or 3 colours side by side */
    int     size;                          /* bytes of a value: 1, 2, 4 or, of real ones, 8 */
    int     bits;                          /* of them the lower ones that count */
    bool    is_signed, is_real, is_binary; /* binary: 0 or 1 in a byte each */
    double  slope, intercept;
    double  spacing[3];   /* x, y, z in millimetres; 0 where unknown */
    bool    placed;       /* position and direction are known */
    double  position[3];  /* of the first pixel, in the patient */
    double  direction[6]; /* of rows and of columns */
    int64_t number;       /* of the slice in its series, where position is unknown */
    char    series[72], modality[20], transfer[72], colours[20];
} fv_dicom_about;

typedef struct fv_dicom_plugin {
    int version;
    /* fork(2) while no thread is inside the library, so that the child may go on using it: damaged files make it crash. */
    pid_t (*fork)(void);
    /* The header; no pixel is read. */
    bool (*about)(const char *path, fv_dicom_about *about, char message[FV_DICOM_MESSAGE]);
    /* One frame, unpacked and with colours as red, green and blue, in exactly size bytes. */
    bool (*frame)(const char *path, int64_t index, void *to, size_t size, char message[FV_DICOM_MESSAGE]);
} fv_dicom_plugin;

/* What the plug-in exports under FV_DICOM_SYMBOL. */
const fv_dicom_plugin *fv_dicom_plugin_get(void);

#ifdef __cplusplus
}
#endif

#endif
