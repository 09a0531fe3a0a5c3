/* Up to where each partition is done, when its messages are done in any order. */
#include "stream/stream_parts.h"
#include <stdlib.h>

static fv_flight *flight_of(const fv_stream_run *run, int partition) {
    for (int i = 0; i < run->nflights; i++)
        if (run->flights[i].partition == partition) return &run->flights[i];
    return NULL;
}

void fv__flight_begin(fv_stream_run *run, int partition, int64_t offset) {
    fv_flight *f = flight_of(run, partition);
    if (!f) {
        run->flights = fv__realloc(run->flights, (size_t)(run->nflights + 1) * sizeof *run->flights);
        f = &run->flights[run->nflights++];
        *f = (fv_flight){ .partition = partition, .committed = -1 };
    }
    if (f->count == f->capacity) {
        int64_t  larger = FV_MAX(64, 2 * f->capacity);
        int64_t *ring = fv__alloc((size_t)larger * sizeof *ring);
        for (int64_t i = 0; i < f->count; i++) ring[i] = f->offset[(f->first + i) % f->capacity];
        free(f->offset);
        f->offset = ring;
        f->first = 0;
        f->capacity = larger;
    }
    f->offset[(f->first + f->count++) % f->capacity] = offset;
    f->next = offset + 1;
}

static int64_t *place_of(const fv_flight *f, int64_t i) { return &f->offset[(f->first + i) % f->capacity]; }

static int64_t offset_of(int64_t place) { return place < 0 ? -1 - place : place; }

int64_t fv__flight_end(fv_stream_run *run, int partition, int64_t offset) {
    fv_flight *f = flight_of(run, partition);
    int64_t    low = 0, high = f->count; /* they come in order: the first that is not before it */
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (offset_of(*place_of(f, middle)) < offset)
            low = middle + 1;
        else
            high = middle;
    }
    while (low < f->count && *place_of(f, low) < 0) low++; /* frames of one message share its offset */
    if (low < f->count && *place_of(f, low) == offset) *place_of(f, low) = -1 - offset;
    while (f->count && f->offset[f->first] < 0) {
        f->first = (f->first + 1) % f->capacity;
        f->count--;
    }
    return f->count ? f->offset[f->first] : f->next;
}

bool fv__flight_any(const fv_stream_run *run, int partition) {
    const fv_flight *f = flight_of(run, partition);
    return f && f->count;
}

void fv__flights_release(fv_stream_run *run) {
    for (int i = 0; i < run->nflights; i++) free(run->flights[i].offset);
    free(run->flights);
}
