/* DCMTK behind the few functions of dicom_plugin.h. */
#include "formats/dicom_plugin.h"
#include <cstdio>
#include <cstring>
#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dcpixel.h>
#include <dcmtk/dcmdata/dcrledrg.h>
#include <dcmtk/dcmdata/dctk.h>
#include <dcmtk/dcmjpeg/djdecode.h>
#include <dcmtk/dcmjpls/djdecode.h>
#include <dcmtk/oflog/oflog.h>
#include <exception>
#include <pthread.h>
#include <unistd.h>
#include <vector>

namespace {

/* Values longer than this stay in the file until they are asked for. */
constexpr Uint32  LARGE_VALUE = 4096;
constexpr int64_t MOST_FRAMES = 10000000;

pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER; /* read: inside the library */

bool fail(char *message, const char *text) {
    std::snprintf(message, FV_DICOM_MESSAGE, "%s", text);
    return false;
}

/* Of the image itself or, in files of many frames, of the groups that all of them share. */
bool number_of(DcmItem *item, const DcmTagKey &key, unsigned long index, double *value) {
    Float64  found;
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

/* What lies in the file where it differs from what a frame is told to be. */
struct stored_pixels {
    DcmTagKey tag = DCM_PixelData;
    int64_t   bits = 0, samples = 1;                              /* of a value; values of a pixel */
    bool      palette = false, luminance = false, halved = false; /* colours: indices; YBR; two pixels share theirs */
    int64_t frame_bits(const fv_dicom_about *about) const { return about->rows * about->columns * (halved ? 2 : samples) * bits; }
};

bool find_numbers(DcmItem *item, fv_dicom_about *about, stored_pixels *stored, char *message) {
    int64_t allocated = integer_of(item, DCM_BitsAllocated, 0), count = integer_of(item, DCM_BitsStored, allocated);
    if (item->tagExists(DCM_FloatPixelData) || item->tagExists(DCM_DoubleFloatPixelData)) {
        bool wide = !item->tagExists(DCM_FloatPixelData);
        stored->tag = wide ? DCM_DoubleFloatPixelData : DCM_FloatPixelData;
        about->is_real = true;
        allocated = count = wide ? 64 : 32;
    } else if (!item->tagExists(DCM_PixelData))
        return fail(message, "it holds no pixels (none of PixelData, FloatPixelData and DoubleFloatPixelData)");
    else if (allocated != 1 && allocated != 8 && allocated != 16 && allocated != 32)
        return fail(message, "BitsAllocated is none of 1, 8, 16 and 32");
    else if (count < 1 || count > allocated)
        return fail(message, "BitsStored does not fit in BitsAllocated");
    else if (integer_of(item, DCM_HighBit, count - 1) != count - 1)
        return fail(message, "HighBit is not BitsStored - 1");
    about->is_binary = allocated == 1;
    about->is_signed = !about->is_real && !about->is_binary && integer_of(item, DCM_PixelRepresentation, 0) == 1;
    about->size = allocated == 1 ? 1 : (int)allocated / 8;
    about->bits = allocated == 1 ? 8 : (int)count;
    stored->bits = allocated;
    return true;
}

/* Entries of the tables and the least index in them; 0: there are none. */
int64_t palette_of(DcmItem *item, int64_t *first, int *size) {
    Uint16           entries = 0, start = 0;
    Sint16           below = 0;
    DcmElement      *table = nullptr;
    const DcmTagKey &key = DCM_RedPaletteColorLookupTableDescriptor;
    if (item->findAndGetUint16(key, entries, 0).bad()) {
        if (item->findAndGetSint16(key, below, 0).bad()) return 0;
        entries = (Uint16)below;
    }
    if (item->findAndGetUint16(key, start, 1).good())
        *first = start;
    else if (item->findAndGetSint16(key, below, 1).good())
        *first = below;
    if (item->findAndGetElement(DCM_RedPaletteColorLookupTableData, table).bad()) return 0;
    int64_t count = entries ? entries : 65536, bytes = (int64_t)table->getLength();
    *size = bytes >= 2 * count ? 2 : 1;
    return bytes >= count ? count : 0;
}

bool find_colours(DcmItem *item, fv_dicom_about *about, stored_pixels *stored, char *message) {
    char   *colours = about->colours;
    int64_t first;
    text_of(item, DCM_PhotometricInterpretation, colours, sizeof about->colours);
    stored->samples = integer_of(item, DCM_SamplesPerPixel, 1);
    about->samples = (int)stored->samples;
    if (stored->samples != 1 && stored->samples != 3) return fail(message, "SamplesPerPixel is neither 1 nor 3");
    if (stored->samples == 3 && (about->is_binary || about->is_real))
        return fail(message, "SamplesPerPixel is 3, which pixels of one bit and real ones cannot have");
    stored->palette = stored->samples == 1 && !std::strcmp(colours, "PALETTE COLOR");
    stored->halved = stored->samples == 3 && !std::strcmp(colours, "YBR_FULL_422");
    stored->luminance = stored->halved || (stored->samples == 3 && !std::strcmp(colours, "YBR_FULL"));
    if (stored->samples == 3 && !stored->luminance && std::strcmp(colours, "RGB") && std::strcmp(colours, "YBR_RCT") &&
        std::strcmp(colours, "YBR_ICT"))
        return fail(message, "PhotometricInterpretation is none of RGB, YBR_FULL, YBR_FULL_422 and PALETTE COLOR");
    if (stored->luminance && (stored->bits != 8 || (stored->halved && about->columns % 2)))
        return fail(message, "colours as YBR have BitsAllocated 8 and, of YBR_FULL_422, an even number of Columns");
    if (!stored->palette) return true;
    if ((stored->bits != 8 && stored->bits != 16) || !palette_of(item, &first, &about->size))
        return fail(message, "PALETTE COLOR without RedPaletteColorLookupTableData, or one that is too short or segmented");
    about->samples = 3;
    about->bits = 8 * about->size;
    about->is_signed = false;
    return true;
}

bool find_pixels(DcmItem *item, fv_dicom_about *about, stored_pixels *stored, char *message) {
    about->rows = integer_of(item, DCM_Rows, 0);
    about->columns = integer_of(item, DCM_Columns, 0);
    about->frames = integer_of(item, DCM_NumberOfFrames, 1);
    if (about->rows < 1 || about->columns < 1 || about->frames < 1 || about->frames > MOST_FRAMES)
        return fail(message, "Rows, Columns or NumberOfFrames is missing or wrong");
    about->packed = DcmXfer(dynamic_cast<DcmDataset *>(item)->getOriginalXfer()).isEncapsulated();
    return find_numbers(item, about, stored, message) && find_colours(item, about, stored, message);
}

bool load(DcmFileFormat &file, const char *path, char *message) {
    OFCondition loaded = file.loadFile(path, EXS_Unknown, EGL_noChange, LARGE_VALUE);
    return loaded.good() || fail(message, loaded.text());
}

/* Pixels that are not compressed must be there; of others every byte may be some thousand pixels, and every frame is an item. */
bool plausible(DcmItem *item, const char *path, const fv_dicom_about *about, const stored_pixels *stored) {
    DcmElement *element = nullptr;
    double      needed = (double)stored->frame_bits(about) / 8;
    if (item->findAndGetElement(stored->tag, element).bad()) return false;
    double there = (double)OFStandard::getFileSize(path);
    if (about->packed) return needed <= 4096 * there && (double)about->frames * 8 <= there;
    return needed * (double)about->frames <= (double)element->getLength();
}

bool describe(const char *path, fv_dicom_about *about, char *message) {
    DcmFileFormat file;
    stored_pixels stored;
    std::memset(about, 0, sizeof *about);
    if (!load(file, path, message)) return false;
    DcmDataset *item = file.getDataset();
    if (!find_pixels(item, about, &stored, message)) return false;
    about->slope = 1;
    number_of(item, DCM_RescaleSlope, 0, &about->slope);
    number_of(item, DCM_RescaleIntercept, 0, &about->intercept);
    find_place(item, about);
    text_of(item, DCM_SeriesInstanceUID, about->series, sizeof about->series);
    text_of(item, DCM_Modality, about->modality, sizeof about->modality);
    if (!plausible(item, path, about, &stored)) return fail(message, "it is too short for the shape that its header claims");
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

/* Bits of an element that is not compressed, from any of them on, each in a byte. */
bool read_bits(DcmElement *element, int64_t first, int64_t count, char *to) {
    std::vector<unsigned char> bytes((size_t)((first % 8 + count + 7) / 8));
    if (element->getPartialValue(bytes.data(), (Uint32)(first / 8), (Uint32)bytes.size()).bad()) return false;
    for (int64_t i = 0, at = first % 8; i < count; i++, at++) to[i] = (char)(bytes[(size_t)(at / 8)] >> (at % 8) & 1);
    return true;
}

/* Two values of brightness, one of blue and one of red become two pixels of three values. */
void spread(const unsigned char *from, unsigned char *to, int64_t pixels) {
    for (int64_t p = 0; p + 1 < pixels; p += 2, from += 4, to += 6) {
        const unsigned char both[6] = { from[0], from[2], from[3], from[1], from[2], from[3] };
        std::memcpy(to, both, 6);
    }
}

unsigned char clipped(int value) { return (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value); }

/* YBR_FULL (ITU-R BT.601) to red, green and blue, in integers of 2^-20, rounded. */
void to_rgb(unsigned char *frame, int64_t pixels) {
    for (unsigned char *p = frame; p < frame + 3 * pixels; p += 3) {
        int y = (p[0] << 20) + (1 << 19), blue = p[1] - 128, red = p[2] - 128;
        p[0] = clipped((y + 1470104 * red) >> 20);
        p[1] = clipped((y - 360853 * blue - 748826 * red) >> 20);
        p[2] = clipped((y + 1858077 * blue) >> 20);
    }
}

/* Indices become entries of the three tables; those outside take the nearest. */
bool look_up(DcmItem *item, const fv_dicom_about *about, const char *indices, bool wide, bool negative, char *to, char *message) {
    const DcmTagKey keys[3] = { DCM_RedPaletteColorLookupTableData, DCM_GreenPaletteColorLookupTableData,
                                DCM_BluePaletteColorLookupTableData };
    int64_t         first = 0;
    int             size = 0;
    int64_t         entries = palette_of(item, &first, &size);
    for (int c = 0; c < 3; c++) {
        DcmElement       *element = nullptr;
        std::vector<char> table((size_t)(entries * size));
        if (size != about->size || item->findAndGetElement(keys[c], element).bad() ||
            element->getPartialValue(table.data(), 0, (Uint32)table.size()).bad())
            return fail(message, "one of its three colour tables is missing or too short");
        for (int64_t p = 0; p < about->rows * about->columns; p++) {
            uint16_t narrow = (unsigned char)indices[p], word = 0;
            std::memcpy(&word, indices + 2 * p * wide, wide ? 2 : 1);
            int64_t value = wide ? word : narrow;
            if (negative) value = wide ? (int16_t)word : (signed char)narrow;
            int64_t entry = value < first ? 0 : value - first < entries ? value - first : entries - 1;
            std::memcpy(to + (3 * p + c) * size, table.data() + entry * size, (size_t)size);
        }
    }
    return true;
}

/* A frame that DCMTK cuts out or unpacks: values of one or three bytes and more. */
bool read_values(DcmDataset *item, DcmElement *element, const fv_dicom_about *about, const stored_pixels *stored, int64_t index,
                 char *to, size_t size, OFString &colours, char *message) {
    Uint32        expected = 0, fragment = 0;
    DcmPixelData *data = OFdynamic_cast(DcmPixelData *, element);
    if (!data || data->getUncompressedFrameSize(item, expected).bad() || expected < size || expected > size + 1)
        return fail(message, "its pixels take another number of bytes than its header says");
    std::vector<char> buffer(expected + 2);
    OFCondition       unpacked =
        data->getUncompressedFrame(item, (Uint32)index, fragment, buffer.data(), expected + (expected & 1), colours);
    if (unpacked.bad()) return fail(message, unpacked.text());
    std::memcpy(to, buffer.data(), size);
    if (stored->bits == 32 && !DcmXfer(item->getOriginalXfer()).isLittleEndian()) turn_halves(to, size);
    if (stored->samples == 3 && !about->packed && integer_of(item, DCM_PlanarConfiguration, 0) == 1)
        interleave(to, about->rows * about->columns, 3, (int)stored->bits / 8);
    return true;
}

bool read_colours(DcmDataset *item, DcmElement *element, const fv_dicom_about *about, const stored_pixels *stored, int64_t index,
                  char *to, char *message) {
    int64_t           pixels = about->rows * about->columns;
    OFString          colours = about->colours;
    std::vector<char> frame((size_t)(pixels * stored->samples * stored->bits / 8));
    unsigned char    *values = reinterpret_cast<unsigned char *>(frame.data());
    if (stored->halved && !about->packed) {
        std::vector<unsigned char> pairs((size_t)(2 * pixels));
        if (element->getPartialValue(pairs.data(), (Uint32)(2 * pixels * index), (Uint32)pairs.size()).bad())
            return fail(message, "its pixels take another number of bytes than its header says");
        spread(pairs.data(), values, pixels);
    } else if (!read_values(item, element, about, stored, index, frame.data(), frame.size(), colours, message))
        return false;
    if (stored->palette)
        return look_up(item, about, frame.data(), stored->bits == 16, integer_of(item, DCM_PixelRepresentation, 0) == 1, to,
                       message);
    if (colours == "YBR_FULL" || colours == "YBR_FULL_422")
        to_rgb(values, pixels);
    else if (colours != "RGB")
        return fail(message, "its colours are neither RGB nor YBR_FULL");
    std::memcpy(to, frame.data(), frame.size());
    return true;
}

bool read_frame(const char *path, int64_t index, void *to, size_t size, char *message) {
    fv_dicom_about about;
    stored_pixels  stored;
    DcmFileFormat  file;
    DcmElement    *element = nullptr;
    OFString       colours;
    if (!load(file, path, message)) return false;
    DcmDataset *item = file.getDataset();
    std::memset(&about, 0, sizeof about);
    if (!find_pixels(item, &about, &stored, message)) return false;
    int64_t pixels = about.rows * about.columns;
    if ((size_t)(pixels * about.samples * about.size) != size || index >= about.frames) return fail(message, "it was changed");
    if (item->findAndGetElement(stored.tag, element).bad()) return fail(message, "its pixels are missing");
    if (about.samples == 3) return read_colours(item, element, &about, &stored, index, static_cast<char *>(to), message);
    if (!about.is_real && !(about.is_binary && !about.packed))
        return read_values(item, element, &about, &stored, index, static_cast<char *>(to), size, colours, message);
    bool good = about.is_binary ? read_bits(element, index * pixels, pixels, static_cast<char *>(to))
                                : element->getPartialValue(to, (Uint32)(size * (size_t)index), (Uint32)size).good();
    return good || fail(message, "its pixels take another number of bytes than its header says");
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
    if (child)
        pthread_rwlock_unlock(&lock);
    else
        pthread_rwlock_init(&lock, nullptr); /* whoever waits for it is not here */
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
