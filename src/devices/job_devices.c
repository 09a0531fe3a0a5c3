/* Which devices of a node a Slurm job was given, from what Slurm puts into its environment. Nothing else of Fovea. */
#include <fovea/device_lease.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

/* What Slurm and the makers' programs call the list; the first two count the devices of the node, the others perhaps those that
 * are left visible. */
static const char *const lists[] = { "SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "GPU_DEVICE_ORDINAL", "CUDA_VISIBLE_DEVICES",
                                     "ROCR_VISIBLE_DEVICES" };
static const char *const counts[] = { "SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE", "SLURM_GPUS" };

static uint64_t first(long count) { return count >= MOST ? UINT64_MAX : ((uint64_t)1 << count) - 1; }

/* Numbers and ranges, each perhaps behind its type ("gpu:a100:0-2"). False: not only numbers, which names are. */
static bool read_list(const char *text, long *count, uint64_t *bits) {
    bool numbers = true;
    *count = 0;
    *bits = 0;
    for (const char *at = text; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t      length = strcspn(at, ",");
        const char *colon = memrchr(at, ':', length);
        const char *start = colon ? colon + 1 : at;
        char       *end;
        long        from = strtol(start, &end, 10), to = from;
        bool        number = end > start && from >= 0;
        if (number && *end == '-') to = strtol(end + 1, &end, 10);
        number = number && end == at + length && to >= from && to < MOST;
        numbers = numbers && number;
        *count += number ? to - from + 1 : length > 0;
        for (long k = from; number && k <= to; k++) *bits |= (uint64_t)1 << k;
    }
    return numbers;
}

bool fv_device_job(int visible, uint64_t *devices) {
    const char *given = NULL, *number = NULL;
    uint64_t    bits = 0;
    long        count = 0;
    bool        numbers = false;
    *devices = 0;
    if (!getenv("SLURM_JOB_ID")) return true;
    for (size_t i = 0; i < sizeof lists / sizeof *lists && !given; i++) given = getenv(lists[i]);
    for (size_t i = 0; i < sizeof counts / sizeof *counts && !number; i++) number = getenv(counts[i]);
    if (given) {
        if (!*given || !strcmp(given, "NoDevFiles")) return false;
        numbers = read_list(given, &count, &bits);
    } else if (number)
        count = atol(strrchr(number, ':') ? strrchr(number, ':') + 1 : number);
    else
        return true;
    if (count < 1) return false;
    if (count >= visible) return true; /* what is not ours was hidden from us */
    bool here = numbers && (visible >= MOST || !(bits & ~first(visible)));
    *devices = here ? bits : first(count);
    return true;
}

int fv_device_job_place(uint64_t devices, int index) {
    int place = 0;
    for (int k = 0; k < index && k < MOST; k++) place += (int)(devices >> k & 1);
    return devices ? place : index;
}
