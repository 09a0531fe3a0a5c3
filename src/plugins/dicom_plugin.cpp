/* DCMTK behind the few functions of dicom_plugin.h. */
#include "formats/dicom_plugin.h"
#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>
#include <pthread.h>
#include <unistd.h>
#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dcpixel.h>
#include <dcmtk/dcmdata/dcrledrg.h>
#include <dcmtk/dcmdata/dctk.h>
#include <dcmtk/dcmjpeg/djdecode.h>
#include <dcmtk/dcmjpls/djdecode.h>
#include <dcmtk/oflog/oflog.h>

namespace {

/* Values longer than this stay in the file until they are asked for. */
constexpr Uint32 LARGE_VALUE = 4096;
constexpr int64_t MOST_FRAMES = 10000000;

pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER; /* read: inside the library */

bool fail(char *message, const char *text) {
    std::snprintf(message, FV_DICOM_MESSAGE, "%s", text);
    return false;
}

/* Of the image itself or, in files of many frames, of the groups that all of them share. */
bool number_of(DcmItem *item, const DcmTagKey &key, unsigned long index, double *value) {
    Float64 found;
    OFString text;
    if (item->findAndGetOFString(key, text, index).good() && std::sscanf(text.c_str(), "%lf", &found) == 1)
        return *value = found, true;
    DcmSequenceOfItems *groups = nullptr;
    if (item->findAndGetSequence(DCM_SharedFunctionalGroupsSequence, groups).bad() || groups->card() == 0) return false;
    if (groups->getItem(0)->findAndGetOFString(key, text, index, OFTrue).bad()) return false;
    return std::sscanf(text.c_str(), "%lf", value) == 1;
}

bool numbers_of(DcmItem *item, const DcmTagKey &key, double *values, unsigned long count) {
    for (unsigned long i = 0; i < count; i++)
        if (!number_of(item, key, i, &values[i])) return false;
    return true;
}

int64_t integer_of(DcmItem *item, const DcmTagKey &key, int64_t otherwise) {
    Uint16 small;
    Sint32 value;
    if (item->findAndGetUint16(key, small).good()) return small;
    return item->findAndGetSint32(key, value).good() ? value : otherwise;
}

void text_of(DcmItem *item, const DcmTagKey &key, char *to, size_t size) {
    OFString text;
    item->findAndGetOFString(key, text);
    std::snprintf(to, size, "%s", text.c_str());
}

void find_place(DcmItem *item, fv_dicom_about *about) {
    double spacing[2];
    if (numbers_of(item, DCM_PixelSpacing, spacing, 2) || numbers_of(item, DCM_ImagerPixelSpacing, spacing, 2)) {
        about->spacing[0] = spacing[1]; /* rows come first in the file */
        about->spacing[1] = spacing[0];
    }
    if (!number_of(item, DCM_SpacingBetweenSlices, 0, &about->spacing[2]))
        number_of(item, DCM_SliceThickness, 0, &about->spacing[2]);
    about->placed = numbers_of(item, DCM_ImagePositionPatient, about->position, 3) &&
                    numbers_of(item, DCM_ImageOrientationPatient, about->direction, 6);
    about->number = integer_of(item, DCM_InstanceNumber, 0);
}

bool find_pixels(DcmItem *item, fv_dicom_about *about, char *message) {
    int64_t allocated = integer_of(item, DCM_BitsAllocated, 0), stored = integer_of(item, DCM_BitsStored, allocated);
    about->rows = integer_of(item, DCM_Rows, 0);
    about->columns = integer_of(item, DCM_Columns, 0);
    about->frames = integer_of(item, DCM_NumberOfFrames, 1);
    about->samples = (int)integer_of(item, DCM_SamplesPerPixel, 1);
    about->is_signed = integer_of(item, DCM_PixelRepresentation, 0) == 1;
    text_of(item, DCM_PhotometricInterpretation, about->colours, sizeof about->colours);
    if (!item->tagExists(DCM_PixelData)) return fail(message, "it holds no pixels of whole numbers");
    if (about->rows < 1 || about->columns < 1 || about->frames < 1 || about->frames > MOST_FRAMES)
        return fail(message, "Rows, Columns or NumberOfFrames is missing or wrong");
    if (about->samples != 1 && about->samples != 3) return fail(message, "SamplesPerPixel is neither 1 nor 3");
    if ((allocated != 8 && allocated != 16 && allocated != 32) || stored < 1 || stored > allocated)
        return fail(message, "BitsAllocated is none of 8, 16 and 32, or BitsStored does not fit in");
    if (integer_of(item, DCM_HighBit, stored - 1) != stored - 1) return fail(message, "HighBit is not BitsStored - 1");
    about->size = (int)allocated / 8;
    about->bits = (int)stored;
    return true;
}

bool load(DcmFileFormat &file, const char *path, char *message) {
    OFCondition loaded = file.loadFile(path, EXS_Unknown, EGL_noChange, LARGE_VALUE);
    return loaded.good() || fail(message, loaded.text());
}

/* Pixels that are not compressed must be there; of others every byte may be some thousand pixels, and every frame is an item. */
bool plausible(DcmItem *item, const char *path, const fv_dicom_about *about) {
    DcmElement *element = nullptr;
    double      needed = (double)about->rows * (double)about->columns * about->samples * about->size;
    if (item->findAndGetElement(DCM_PixelData, element).bad()) return false;
    double there = (double)OFStandard::getFileSize(path);
    if (about->packed) return needed <= 4096 * there && (double)about->frames * 8 <= there;
    return needed * (double)about->frames <= (double)element->getLength();
}

bool describe(const char *path, fv_dicom_about *about, char *message) {
    DcmFileFormat file;
    std::memset(about, 0, sizeof *about);
    if (!load(file, path, message)) return false;
    DcmDataset *item = file.getDataset();
    if (!find_pixels(item, about, message)) return false;
    about->slope = 1;
    number_of(item, DCM_RescaleSlope, 0, &about->slope);
    number_of(item, DCM_RescaleIntercept, 0, &about->intercept);
    find_place(item, about);
    text_of(item, DCM_SeriesInstanceUID, about->series, sizeof about->series);
    text_of(item, DCM_Modality, about->modality, sizeof about->modality);
    about->packed = DcmXfer(item->getOriginalXfer()).isEncapsulated();
    if (!plausible(item, path, about)) return fail(message, "it is too short for the shape that its header claims");
    std::snprintf(about->transfer, sizeof about->transfer, "%s", DcmXfer(item->getOriginalXfer()).getXferName());
    return true;
}

/* Colours in planes of their own are put side by side. */
void interleave(char *frame, int64_t pixels, int samples, int size) {
    std::vector<char> planes(frame, frame + pixels * samples * size);
    for (int s = 0; s < samples; s++)
        for (int64_t p = 0; p < pixels; p++)
            std::memcpy(frame + (p * samples + s) * size, planes.data() + (s * pixels + p) * size, (size_t)size);
}

/* The library knows words of two bytes only. */
void turn_halves(char *values, size_t size) {
    for (size_t i = 0; i + 4 <= size; i += 4) {
        char half[2] = { values[i], values[i + 1] };
        std::memcpy(values + i, values + i + 2, 2);
        std::memcpy(values + i + 2, half, 2);
    }
}

bool read_frame(const char *path, int64_t index, void *to, size_t size, char *message) {
    fv_dicom_about about;
    DcmFileFormat  file;
    DcmElement    *element = nullptr;
    Uint32         expected = 0, fragment = 0;
    OFString       colours;
    if (!load(file, path, message)) return false;
    DcmDataset *item = file.getDataset();
    std::memset(&about, 0, sizeof about);
    if (!find_pixels(item, &about, message)) return false;
    int64_t pixels = about.rows * about.columns;
    if ((size_t)(pixels * about.samples * about.size) != size || index >= about.frames) return fail(message, "it was changed");
    if (item->findAndGetElement(DCM_PixelData, element).bad()) return fail(message, "its pixels are missing");
    DcmPixelData *data = OFdynamic_cast(DcmPixelData *, element);
    if (!data || data->getUncompressedFrameSize(item, expected).bad() || expected < size || expected > size + 1)
        return fail(message, "its pixels take another number of bytes than its header says");
    std::vector<char> buffer(expected + 2);
    OFCondition unpacked =
        data->getUncompressedFrame(item, (Uint32)index, fragment, buffer.data(), expected + (expected & 1), colours);
    if (unpacked.bad()) return fail(message, unpacked.text());
    std::memcpy(to, buffer.data(), size);
    if (about.size == 4 && !DcmXfer(item->getOriginalXfer()).isLittleEndian()) turn_halves(static_cast<char *>(to), size);
    if (about.samples == 3 && colours != "RGB") return fail(message, "its colours are no RGB");
    bool packed = DcmXfer(item->getOriginalXfer()).isEncapsulated();
    if (about.samples == 3 && !packed && integer_of(item, DCM_PlanarConfiguration, 0) == 1)
        interleave(static_cast<char *>(to), pixels, about.samples, about.size);
    return true;
}

template <typename Call> bool guarded(char *message, Call call) {
    bool good = false;
    pthread_rwlock_rdlock(&lock);
    try {
        good = call();
    } catch (const std::exception &error) {
        fail(message, error.what());
    } catch (...) {
        fail(message, "DCMTK failed");
    }
    pthread_rwlock_unlock(&lock);
    return good;
}

pid_t fork_alone(void) {
    pthread_rwlock_wrlock(&lock);
    pid_t child = fork();
    if (child) pthread_rwlock_unlock(&lock);
    else pthread_rwlock_init(&lock, nullptr); /* whoever waits for it is not here */
    return child;
}

bool about_guarded(const char *path, fv_dicom_about *about, char *message) {
    return guarded(message, [&] { return describe(path, about, message); });
}

bool frame_guarded(const char *path, int64_t index, void *to, size_t size, char *message) {
    return guarded(message, [&] { return read_frame(path, index, to, size, message); });
}

} // namespace

extern "C" const fv_dicom_plugin *fv_dicom_plugin_get(void) {
    static const fv_dicom_plugin plugin = { FV_DICOM_VERSION, fork_alone, about_guarded, frame_guarded };
    OFLog::configure(OFLogger::OFF_LOG_LEVEL);
    DJDecoderRegistration::registerCodecs();
    DJLSDecoderRegistration::registerCodecs();
    DcmRLEDecoderRegistration::registerCodecs();
    return &plugin;
}
