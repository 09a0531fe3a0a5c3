/* Chunks that go from rank to rank by an allreduce: what the iterations of a solve that is written as a pipeline hand on.
 *
 * Each rank makes some chunks of such an image, and the next pass of each needs most of them. No two ranks make the same voxel,
 * so the image is the sum of what they have, whatever the order, and nothing has to be added.
 */
#include "base/file.h"
#include "base/take.h"
#include "exec/allreduce.h"
#include "exec/exec.h"
#include <stdlib.h>

/* Steps of an operator that is written in others. */
static bool is_iterate(const fv_target *target) {
    const fv_node *node = target->node;
    return target->kind == FV_TARGET_STORE && node->called && node->called->unroll && node->called != node->op;
}

int64_t fv__stage_joint(const fv_stage *stage) {
    int64_t bytes = 0;
    if (stage->serial) return 0;
    for (int t = 0; t < stage->ntargets; t++) {
        if (stage->targets[t].kind != FV_TARGET_STORE) continue;
        const fv_image_type *type = &stage->targets[t].node->type.image;
        int64_t              size = (int64_t)fv_dtype_size(type->dtype);
        if (!is_iterate(&stage->targets[t])) return 0;
        for (int d = 0; d < type->ndim; d++) size *= type->shape[d];
        bytes += size;
    }
    return bytes;
}

typedef struct piece {
    fv_hash key;
    fv_blob pin;    /* of what this rank has made */
    void   *buffer; /* for what another has */
} piece;

typedef struct pieces {
    fv_allreduce_part *parts;
    piece             *pieces;
    int                count;
} pieces;

static fv_status add_piece(pieces *p, fv_store *store, fv_hash key, int64_t size, int maker, int rank, fv_error *error) {
    piece             *own = &p->pieces[p->count];
    fv_allreduce_part *part = &p->parts[p->count];
    *own = (piece){ .key = key };
    *part = (fv_allreduce_part){ .size = size, .rank = maker };
    if (maker == rank)
        FV_TRY(fv__store_get(store, key, &own->pin, error));
    else
        FV_TRY(FV_TAKE_BUFFER(own->buffer, (size_t)size, error));
    part->data = own->buffer ? own->buffer : (void *)(uintptr_t)own->pin.data;
    p->count++;
    return FV_OK;
}

static fv_status list_pieces(const fv_instance *instance, const fv_stage *stage, const int32_t *makers, int rank, pieces *p,
                             fv_error *error) {
    for (int64_t task = 0; task < stage->ntasks; task++) {
        int64_t   index, voxels;
        fv_region chunk = fv__stage_chunk(stage, task, &index);
        voxels = fv__region_voxels(&chunk);
        for (int t = 0; t < stage->ntargets && makers[task] >= 0; t++) {
            const fv_node *node = stage->targets[t].node;
            if (stage->targets[t].kind != FV_TARGET_STORE) continue;
            FV_TRY(add_piece(p, instance->context->store, fv__key_chunk(node, &stage->lattice, index),
                             voxels * (int64_t)fv_dtype_size(node->type.image.dtype), makers[task], rank, error));
        }
    }
    return FV_OK;
}

/* What came is worth nothing to a later run: the rank that made it commits it. One that could not be spilled is in memory all the
 * same, and the next task that stores something says why. */
static void keep_pieces(fv_store *store, pieces *p) {
    for (int i = 0; i < p->count; i++) {
        piece *one = &p->pieces[i];
        if (one->pin.entry)
            fv__store_unpin(store, &one->pin);
        else
            fv__store_hold(store, one->key, one->buffer, (size_t)p->parts[i].size, 0, false, NULL);
    }
}

static void give_back(fv_store *store, pieces *p) {
    for (int i = 0; i < p->count; i++) {
        if (p->pieces[i].pin.entry)
            fv__store_unpin(store, &p->pieces[i].pin);
        else
            fv__buffer_free(p->pieces[i].buffer, (size_t)p->parts[i].size);
    }
}

fv_status fv__stage_exchange(const fv_instance *instance, const fv_stage *stage, const int32_t *makers, fv_team *team,
                             bool (*given_up)(void *context), void *context, fv_error *error) {
    size_t    most = (size_t)stage->ntasks * (size_t)stage->ntargets + 1;
    pieces    p = { fv__alloc(most * sizeof *p.parts), fv__alloc(most * sizeof *p.pieces), 0 };
    fv_store *store = instance->context->store;
    fv_error  own = { 0 };
    fv_status status = list_pieces(instance, stage, makers, team->rank, &p, &own);
    if (status == FV_OK) status = fv__fault_point("exchange", &own);
    status = fv__allreduce_parts(team, p.parts, p.count, status == FV_OK ? NULL : &own, given_up, context, error);
    if (status == FV_OK)
        keep_pieces(store, &p);
    else if (status != FV_ERROR_CANCELLED)
        give_back(store, &p); /* else something may still arrive: the process ends soon */
    free(p.parts);
    free(p.pieces);
    return status;
}
