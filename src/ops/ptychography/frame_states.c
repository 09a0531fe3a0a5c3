/* What is found of each frame while a reconstruction goes on. */
#include "ops/ptychography/frame_states.h"

fv_status fv__states_scan(const fv_wave_scan *at, const fv_type *probe, fv_waves *w, fv_error *error) {
    const fv_image_type *p = &probe->image;
    int64_t              classes = at->shifts.count / 2;
    if (p->ndim != 4 || p->shape[2] != 2 || classes < 1 || p->shape[0] % classes)
        return fv_fail(error, FV_ERROR_USAGE, "probe is not what ptycho_probe gives for this scan");
    return fv__waves_find(at, p->shape[1], p->shape[3], p->shape[0] / classes, w, error);
}

fv_status fv__states_find(const fv_waves *w, const fv_type *states, int64_t *row, fv_error *error) {
    const fv_image_type *s = &states->image;
    int64_t              rows = fv__state_rows(w) + w->height;
    *row = 0;
    if (s->ndim == 3 && s->dtype == FV_FLOAT32 && s->shape[0] == w->blocks && s->shape[2] == w->row) {
        if (s->shape[1] == rows) return FV_OK;
        *row = fv__pie_states_row(w);
        if (s->shape[1] == *row + rows + w->sum_rows) return FV_OK;
    }
    return fv_fail(error, FV_ERROR_USAGE, "states are not what ptycho_refine or ptycho_pie gives for this scan");
}

fv_region fv__states_region(const fv_waves *w, const fv_type *states, int64_t first, int64_t count) {
    int64_t   row;
    fv_region region = fv__region_whole(&states->image);
    fv__states_find(w, states, &row, NULL);
    region.start[0] = first;
    region.size[0] = count;
    region.start[1] = row;
    region.size[1] = fv__state_rows(w);
    return region;
}

void fv__state_corner(const fv_waves *w, const double place[2], double frame[FV_SCAN_NUMBERS]) {
    int64_t parts = fv__wave_parts(w->classes), number = 0;
    double  margin = (double)w->margin;
    for (int a = 0; a < 2; a++) {
        double beyond = place[a] > -margin ? FV_MIN(place[a], margin) : -margin;
        double at = floor(beyond * (double)parts + 0.5), whole = floor(at / (double)parts);
        frame[FV_SCAN_Y + a] += whole;
        number = number * parts + (int64_t)(at - whole * (double)parts);
    }
    frame[FV_SCAN_CLASS] = (double)number;
}

void fv__states_move(fv_waves *w, const fv_block *states, double *scan) {
    if (!states || !w->margin) return;
    int64_t first = states->region.start[0] * w->block;
    int64_t end = FV_MIN(first + states->region.size[0] * w->block, w->frames);
    for (int64_t f = first; f < end; f++) {
        double *frame = scan + FV_SCAN_NUMBERS * f;
        double  place[2];
        for (int a = 0; a < 2; a++) place[a] = (double)fv__state(w, states, f, FV_STATE_Y + a);
        memcpy(frame, w->given + FV_SCAN_NUMBERS * f, FV_SCAN_NUMBERS * sizeof *frame);
        fv__state_corner(w, place, frame);
    }
    w->scan = scan;
}

fv_status fv__states_fit(const fv_waves *w, const fv_type *states, const fv_type *background, fv_error *error) {
    const fv_image_type *b = background ? &background->image : NULL;
    int64_t              row;
    if (states->kind == FV_KIND_IMAGE) FV_TRY(fv__states_find(w, states, &row, error));
    if (!background || background->kind != FV_KIND_IMAGE) return FV_OK;
    if (b->ndim == 2 && b->dtype == FV_FLOAT32 && b->shape[0] == w->height && b->shape[1] == w->width) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE, "background must be float32 and have the %lld x %lld pixels of a frame",
                   (long long)w->height, (long long)w->width);
}

void fv__states_need(const fv_waves *w, const fv_need *n, int input, int64_t first, int64_t count, fv_region *in) {
    if (n->in[input]->kind == FV_KIND_IMAGE) in[input] = fv__states_region(w, n->in[input], first, count);
}

fv_measured fv__measured_frame(const fv_waves *w, const fv_run *r, fv_measured_inputs of, int64_t frame) {
    const fv_block *a = r->in[of.amplitudes], *states = r->in[of.states], *background = r->in[of.background];
    float           light = states ? fv__state(w, states, frame, FV_STATE_LIGHT) : 1;
    return (fv_measured){ .amplitude = (float *)a->data + (frame / w->block - a->region.start[0]) * a->stride[0] +
                                       frame % w->block * w->height * a->stride[1],
                          .row = a->stride[1],
                          .by = light > 0 ? 1 / light : 1,
                          .background = background ? background->data : NULL,
                          .background_row = background ? background->stride[0] : 0 };
}
