// Planes of one image for one view: asks for what is wanted, the newest first, and keeps what has arrived.
//  1. At most one request is on its way per source; the newest wish waits and all older ones are forgotten.
//  2. A request that has taken PATIENCE when something newer is wanted is aborted.
//  3. What was shown stays until the new plane is there.
import { getVoxels, query } from "./api.js";

const PATIENCE = 150; // ms
const CACHE_BYTES = 96 << 20;

/* What has arrived lately, by the text of its request; the least recently used goes first. */
const cache = new Map();
let cachedBytes = 0;

function remember(key, voxels) {
    cache.set(key, voxels);
    cachedBytes += voxels.bytes;
    for (const [oldest, { bytes }] of cache) {
        if (cachedBytes <= CACHE_BYTES) break;
        cache.delete(oldest);
        cachedBytes -= bytes;
    }
}

async function fetchPlane(fields, options) {
    const key = query(fields);
    const known = cache.get(key);
    if (known) {
        cache.delete(key);
        cache.set(key, known);
        return known;
    }
    const voxels = await getVoxels("plane", fields, options);
    if (!cache.has(key)) remember(key, voxels);
    return voxels;
}

export class Source {
    /* arrived: called when there is something new to draw; failed: with the sentence why there is not. */
    constructor(arrived, failed) {
        Object.assign(this, { arrived, failed, current: null, waiting: null, asked: "", flight: null });
    }

    /* wish: { fields: one object per channel, and whatever else the view wants back with the planes }. */
    want(wish) {
        const key = wish.fields.map(query).join(" ");
        if (key === this.asked) return;
        this.asked = key;
        this.waiting = { ...wish, key };
        if (!this.flight) this.next();
        else if (performance.now() - this.flight.start > PATIENCE) this.flight.controller.abort();
    }

    get busy() {
        return this.flight !== null;
    }

    async next() {
        const wish = this.waiting;
        this.waiting = null;
        if (!wish) return;
        const flight = (this.flight = { start: performance.now(), controller: new AbortController() });
        try {
            const { signal } = flight.controller;
            const planes = await Promise.all(wish.fields.map((fields) => fetchPlane(fields, { signal })));
            if (this.flight === flight) {
                this.current = { ...wish, planes };
                this.arrived();
            }
        } catch (error) {
            if (error.name !== "AbortError" && this.flight === flight) this.failed(error.message);
        }
        if (this.flight !== flight) return;
        this.flight = null;
        this.next();
    }

    /* Fetches the plane that is probably wanted next, if there is nothing else to do. */
    ahead(fields) {
        if (!this.busy) Promise.all(fields.map((one) => fetchPlane(one, { priority: "low" }))).catch(() => {});
    }

    drop() {
        const flight = this.flight;
        Object.assign(this, { current: null, waiting: null, asked: "", flight: null });
        flight?.controller.abort();
    }
}
