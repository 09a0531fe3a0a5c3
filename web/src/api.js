// Everything that is asked of the server. Planes and volumes arrive as raw voxels, all else as JSON.
const ARRAYS = {
    uint8: Uint8Array,
    bool: Uint8Array,
    int8: Int8Array,
    uint16: Uint16Array,
    int16: Int16Array,
    uint32: Uint32Array,
    int32: Int32Array,
    float32: Float32Array,
    float64: Float64Array,
};
const WIDE = new Set(["int64", "uint64", "float64"]);

/* The fields of a query; lists give a field several times, null and undefined give none. */
export function query(fields) {
    const parts = new URLSearchParams();
    for (const [name, value] of Object.entries(fields))
        for (const one of Array.isArray(value) ? value : [value]) if (one !== null && one !== undefined) parts.append(name, one);
    return parts.toString();
}

async function ask(path, fields, options) {
    let answer;
    try {
        answer = await fetch(`/api/${path}?${query(fields)}`, options);
    } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new Error("The program that shows this page does not answer any more. Start fovea view again.");
    }
    if (answer.ok) return answer;
    const told = await answer.json().catch(() => null);
    throw new Error(told?.error ?? `The server answers ${answer.status} to ${path}.`);
}

export async function getJson(path, fields = {}, signal = undefined) {
    return (await ask(path, fields, { signal })).json();
}

/* Voxels with their shape: { data, shape, bytes }. */
export async function getVoxels(path, fields, options = {}) {
    const answer = await ask(path, fields, options);
    const shape = answer.headers.get("X-Fovea-Shape").split(",").map(Number);
    const type = answer.headers.get("X-Fovea-Dtype");
    const buffer = await answer.arrayBuffer();
    if (!ARRAYS[type]) throw new Error(`This page cannot show voxels of type ${type}.`);
    return { data: new ARRAYS[type](buffer), shape, type, bytes: buffer.byteLength };
}

/* How voxels of this image have to be asked for, so that the page can read them. objects: they are numbers of objects. */
export function readable(image, objects) {
    if (!WIDE.has(image.dtype)) return {};
    return { as: objects ? "int32" : "float32" };
}
