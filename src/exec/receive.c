/* What tasks in processes that see neither the store nor the files of this one have made. */
#include "exec/exec.h"

/* Whether a key says that a chunk was put into a file, and if so into which. */
static const fv_target *file_of(const fv_instance *instance, const fv_stage *stage, int64_t task, fv_hash key, fv_region *chunk) {
    for (int k = 0; k < stage->ntargets; k++) {
        const fv_target *target = &stage->targets[k];
        if (target->kind != FV_TARGET_SINK || !target->file->layout.parallel) continue;
        const fv_output *output = fv__instance_output(instance, target);
        int64_t          first = stage->serial ? 0 : task, end = stage->serial ? stage->ntasks : task + 1, index;
        for (int64_t t = first; t < end; t++) {
            *chunk = fv__stage_chunk(stage, t, &index);
            if (fv__hash_equal(key, fv__key_put(output, &stage->lattice, index))) return target;
        }
    }
    return NULL;
}

static fv_status write_chunk(const fv_instance *instance, const fv_target *target, const fv_region *chunk, void *buffer,
                             size_t size, fv_error *error) {
    fv_writer *writer = fv__instance_output(instance, target)->writer;
    fv_dtype   dtype = target->node->type.image.dtype;
    fv_block   block;
    if (size != (size_t)fv__region_voxels(chunk) * fv_dtype_size(dtype))
        return fv_fail(error, FV_ERROR_INTERNAL, "a chunk came with %zu bytes, which are not its own", size);
    fv__block_init(&block, dtype, chunk, buffer);
    return writer->format->put(writer, &block, error);
}

fv_status fv__task_receive(fv_instance *instance, const fv_stage *stage, int64_t task, fv_hash key, void *buffer, size_t size,
                           double seconds, bool keep, fv_error *error) {
    fv_store        *store = instance->context->store;
    fv_region        chunk;
    const fv_target *target = size ? file_of(instance, stage, task, key, &chunk) : NULL;
    if (!target) return fv__store_put(store, key, buffer, size, seconds, keep, error);
    fv_status status = fv__store_knows(store, key) ? FV_OK : write_chunk(instance, target, &chunk, buffer, size, error);
    fv__buffer_free(buffer, size);
    return status == FV_OK ? fv__store_put(store, key, NULL, 0, seconds, keep, error) : status;
}
