// What the page shows, in one store, and everything a user can do to it.
//  1. position: the voxel under the cross-hair, whole numbers; centre: the point in the middle of all planes. Both in voxels of
//     the finest level of the image that is shown, as [z, y, x].
//  2. zoom: screen pixels per smallest voxel edge, or null: all of it fits.
//  3. display: per image id, contrast and colours; low and high are null until statistics have arrived.
import { clamp, Store } from "./ui.js";
import { getJson, readable } from "./api.js";
import { channelCount, middle, ratio, sizes, sliders } from "./geometry.js";
import { channelColour, OBJECTS } from "./colour.js";

export const store = new Store({
    session: null,
    image: 0,
    compare: "one",
    other: null,
    layout: "all",
    position: [0, 0, 0],
    centre: [0, 0, 0],
    zoom: null,
    along: {},
    item: 0,
    sheet: false,
    value: null,
    parameters: {},
    display: {},
    smooth: false,
    crosshair: true,
    labels: { on: true, image: null, outline: false, opacity: 0.5, column: "" },
    selected: 0,
    lit: null,
    values: null,
    table: { open: false, id: 0, sort: null, descending: false, where: [], x: null, y: null },
    volume: { mode: "maximum", opacity: 0.3, yaw: 0.6, pitch: 0.5, distance: 1, labels: false },
    side: true,
    help: false,
    message: "",
});
/* Under the pointer; kept apart because it changes with every movement. */
export const pointer = new Store({ at: null, value: null, label: null });

export const imageOf = (id) => store.get("session").images.find((image) => image.id === id);
export const shown = () => imageOf(store.get("image"));
export const pictures = () => store.get("session").images.filter((image) => image.role !== "labels" && !image.error);
/* The labels, where they are as large as the image that is shown. */
export function labelImage() {
    const labels = imageOf(store.get("labels").image),
        image = shown();
    return labels && sameSize(labels, image) ? labels : null;
}
export const tableOf = () => store.get("session").tables?.find((table) => table.id === store.get("table").id) ?? null;
export const say = (message) => store.set({ message });

export function sameSize(one, other) {
    const scale = ratio(one, other),
        size = sizes(other);
    return sizes(one).every((n, k) => Math.abs(n * scale[k] - size[k]) < 1.5 * Math.max(1, scale[k]));
}

/* The fields of a request that say which part of an image is meant, besides the place in space. */
export function chosen(image) {
    const { along, item, value, parameters, display } = store.values;
    const fields = { image: image.id, of: image.serial, ...readable(image, image.role === "labels" || inObjects(image)) };
    for (const { name, size } of sliders(image)) fields[name] = clamp(along[name] ?? 0, 0, size - 1);
    if (image.collection) fields.item = item;
    if (image.values) {
        fields.value = value ?? image.value ?? image.values[0];
        for (const { name } of image.parameters ?? []) if (name in parameters) fields[`p.${name}`] = parameters[name];
    }
    if (image.complex) fields.part = display[image.id]?.part ?? "amplitude";
    return fields;
}

export function displayOf(image) {
    return store.get("display")[image.id];
}

/* Whether each number of an image has a colour of its own. */
export const inObjects = (image) => displayOf(image)?.map === OBJECTS;
export const setMap = (image, map) => setDisplay(image, { map, mapChosen: true });

export function setDisplay(image, patch) {
    const display = store.get("display");
    store.set({ display: { ...display, [image.id]: { ...display[image.id], ...patch } } });
}

export function setChannel(image, channel, patch) {
    const channels = displayOf(image).channels.map((one, k) => (k === channel ? { ...one, ...patch } : one));
    setDisplay(image, { channels });
}

/* An image that has not been looked at gets colours; its contrast comes with the statistics. */
export function prepare(image) {
    if (displayOf(image)) return;
    const count = channelCount(image);
    const channels = Array.from({ length: count }, (_, k) => ({
        on: k < 4,
        colour: channelColour(image, k),
        low: image.channels?.[k]?.range?.[0] ?? null,
        high: image.channels?.[k]?.range?.[1] ?? null,
        statistics: null,
    }));
    setDisplay(image, { map: "grey", mapChosen: false, invert: false, part: "amplitude", channel: 0, channels });
}

/* Asks for minimum, maximum and histogram; sets the contrast where none was chosen yet, or always. */
export async function loadStatistics(image, always = false) {
    if (image.role === "labels" && image.id !== store.get("image")) return;
    await Promise.all(
        displayOf(image).channels.map(async (_, c) => {
            const several = channelCount(image) > 1;
            try {
                const statistics = await getJson("statistics", { ...chosen(image), ...(several ? { c } : {}) });
                const known = displayOf(image).channels[c];
                const fresh = always || known.low === null || known.high === null;
                setChannel(image, c, { statistics, ...(fresh ? contrast(image, statistics) : {}) });
                if (fresh && !several) guessMap(image, statistics);
            } catch (error) {
                say(error.message);
            }
        }),
    );
}

/* What looks like numbers of objects gets their colours, until a map is chosen. */
function guessMap(image, { objects }) {
    const { map, mapChosen } = displayOf(image);
    if (!mapChosen && image.role !== "labels" && (objects || map === OBJECTS)) setDisplay(image, { map: objects ? OBJECTS : "grey" });
}

/* The contrast that is chosen by itself: 0.1 to 99.9 %, all of it where that is nothing, and a full turn for a phase. */
export function contrast(image, { min, max, low, high }) {
    if (image.complex && displayOf(image).part === "phase") return { low: -Math.PI, high: Math.PI };
    if (image.rgb && image.dtype === "uint8") return { low: 0, high: 255 };
    if (high > low) return { low, high };
    if (max > min) return { low: min, high: max };
    return { low: Math.min(0, min ?? 0), high: Math.max(min ?? 1, 1) };
}

export function setPart(image, part) {
    setDisplay(image, { part, map: part === "phase" ? "cyclic" : "grey" });
    loadStatistics(image, true);
}

export function showImage(id) {
    const before = shown(),
        image = imageOf(id);
    prepare(image);
    const scale = before ? ratio(before, image) : [1, 1, 1],
        size = sizes(image);
    const fits = before && before.id !== id && sameSize(before, image);
    const { position, centre } = store.values;
    store.set({
        image: id,
        item: 0,
        message: "",
        value: null,
        parameters: {},
        position: fits ? position.map((p, k) => clamp(Math.floor((p + 0.5) * scale[k]), 0, size[k] - 1)) : middle(image),
        centre: fits ? centre.map((p, k) => p * scale[k]) : size.map((n) => n / 2),
        zoom: fits ? store.get("zoom") : null,
        sheet: Boolean(image.collection),
    });
    if (displayOf(image).channels[0].statistics === null) loadStatistics(image);
}

/* Compares with another image, or by ALL with every one of the same kind of axes. how: one, side, blink, difference. */
export const ALL = -1;
export function compareWith(how, id) {
    const others = pictures().filter((image) => image.id !== store.get("image"));
    if (!others.length || how === "one") return store.set({ compare: "one", message: "" });
    const all = id === ALL && how === "side" && others.length > 1;
    const other = all ? ALL : (others.find((image) => image.id === id) ?? others[0]).id;
    for (const image of others.filter((one) => all || one.id === other)) {
        prepare(image);
        if (displayOf(image).channels[0].statistics === null) loadStatistics(image);
    }
    store.set({ compare: how, other, message: "" });
}

/* What the server says about an item of a collection or a value of a pipeline takes the place of what was known.
   fresh: it gets its own contrast. */
export async function look(fields, fresh = true) {
    const before = shown();
    try {
        const now = { ...before, ...(await getJson("image", { image: before.id, ...fields })) };
        takeImage(now);
        const same = String(sizes(now)) === String(sizes(before)) && channelCount(now) === channelCount(before);
        if (!same) {
            store.set({ display: { ...store.get("display"), [now.id]: undefined } });
            prepare(now);
            store.set({ position: middle(now), centre: sizes(now).map((n) => n / 2), zoom: null });
        }
        await loadStatistics(now, fresh);
    } catch (error) {
        say(error.message);
    }
}

/* Files that were replaced: what is known of them is asked for again, and contrast stays as it is. */
const LOOKS = 2000; // ms
export function followFiles() {
    setInterval(async () => {
        if (document.hidden) return;
        for (const { id, values, serial } of store.get("session").images.filter((image) => !image.error)) {
            const item = id === store.get("image") ? store.get("item") : 0;
            if (values) continue; // a pipeline tells by itself
            const now = await getJson("image", { image: id, item }).catch(() => null);
            if (!now || now.serial === serial) continue;
            if (id === store.get("image")) await look({ item }, false);
            else takeImage({ ...imageOf(id), ...now });
        }
    }, LOOKS);
}

function takeImage(now) {
    const session = store.get("session");
    store.set({ session: { ...session, images: session.images.map((image) => (image.id === now.id ? now : image)) } });
}

export function openItem(item) {
    store.set({ item, sheet: false, zoom: null, message: "" });
    return look({ item });
}

export function chooseValue(value) {
    store.set({ value, message: "" });
    return look({ value });
}

/* Moves the cross-hair, and the planes after it where it would leave them. */
export function moveTo(position, follow = false) {
    const size = sizes(shown());
    const place = position.map((p, k) => clamp(Math.round(p), 0, Math.max(0, size[k] - 1)));
    store.set(follow ? { position: place, centre: place.map((p) => p + 0.5) } : { position: place });
}

export function step(place, by) {
    const position = [...store.get("position")];
    position[place] += by;
    moveTo(position);
}

export function pan(by) {
    const size = sizes(shown());
    store.set({ centre: store.get("centre").map((c, k) => clamp(c + by[k], 0, size[k])) });
}

export function walk(name, by) {
    const slider = sliders(shown()).find((one) => one.name === name);
    if (slider) store.merge("along", { [name]: clamp((store.get("along")[name] ?? 0) + by, 0, slider.size - 1) });
}

/* A voxel of an object, in the middle of its box if it is there. */
async function innerVoxel(image, label, first, box) {
    const middle = box.map(([low, high]) => Math.floor((low + high - 1) / 2)),
        [z, y, x] = middle;
    const { value } = await getJson("value", { ...chosen(image), z, y, x });
    return value === label || !first ? middle : first;
}

/* Shows an object: the planes go there, it gets an edge, and the table its row. */
export async function selectLabel(label, go = true) {
    store.set({ selected: label });
    const image = labelImage();
    if (!label || !go || !image) return;
    try {
        const { first, box } = await getJson("object", { image: image.id, label });
        const inside = await innerVoxel(image, label, first, box),
            scale = ratio(image, shown()),
            size = sizes(shown());
        if (store.get("selected") !== label) return;
        store.set({
            position: inside.map((p, k) => clamp(Math.floor((p + 0.5) * scale[k]), 0, size[k] - 1)),
            centre: box.map(([low, high], k) => ((low + high) / 2) * scale[k]),
        });
    } catch (error) {
        say(error.message);
    }
}

/* Only these rows of the table count from now on: their objects light up. where: [{ column, low, high }]. */
export async function filterRows(where) {
    store.merge("table", { where });
    const table = tableOf();
    if (!where.length || table?.labels === null || table?.labels === undefined) return store.set({ lit: null });
    try {
        const { labels } = await getJson("rows", { table: table.id, ids: 1, where: where.map(whereText) });
        if (store.get("table").where === where) store.set({ lit: new Set(labels) });
    } catch (error) {
        say(error.message);
    }
}
export const whereText = ({ column, low, high }) => `${column}:${low ?? ""}:${high ?? ""}`;

/* Objects get the colour of their value in a column; an empty name gives them their own colours again. */
export async function colourBy(column) {
    store.merge("labels", { column });
    if (!column) return store.set({ values: null });
    try {
        const { labels, values } = await getJson("labels-values", { table: tableOf().id, column });
        const known = values.filter((value) => typeof value === "number" && isFinite(value));
        const low = known.reduce((a, b) => Math.min(a, b), Infinity),
            high = known.reduce((a, b) => Math.max(a, b), -Infinity);
        const places = new Map();
        labels.forEach((label, k) => {
            if (typeof values[k] === "number") places.set(label, Math.round(((values[k] - low) / (high - low || 1)) * 255));
        });
        if (store.get("labels").column === column) store.set({ values: { places, low, high } });
    } catch (error) {
        say(error.message);
    }
}
