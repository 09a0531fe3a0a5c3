// The part of the address after #: enough of the state that a link brings the same view back.
import { throttle } from "./ui.js";
import {
    colourBy,
    compareWith,
    displayOf,
    filterRows,
    imageOf,
    look,
    prepare,
    setDisplay,
    showImage,
    shown,
    store,
} from "./state.js";

const numbers = (text) =>
    text
        .split(",")
        .map(Number)
        .filter((value) => isFinite(value));
const tidy = (value) => Number(value.toPrecision(7));

/* Short names of single values, and what they stand for. */
const PLAIN = { c: "compare", l: "layout", val: "value" };
const COUNTED = { i: "image", o: "other", n: "item", s: "selected" };

function toHash() {
    const v = store.values,
        image = shown(),
        display = displayOf(image),
        parts = new URLSearchParams();
    for (const [short, key] of Object.entries(PLAIN)) if (v[key]) parts.set(short, v[key]);
    for (const [short, key] of Object.entries(COUNTED))
        if (v[key] || (key === "item" && image.collection && !v.sheet)) parts.set(short, v[key]);
    parts.set("p", v.position.join());
    if (v.zoom !== null) {
        parts.set("at", v.centre.map(tidy).join());
        parts.set("z", tidy(v.zoom));
    }
    for (const [name, value] of Object.entries(v.along)) parts.set(`a.${name}`, value);
    for (const [name, value] of Object.entries(v.parameters)) parts.set(`p.${name}`, value);
    if (display) {
        parts.set("m", display.map + (display.invert ? "-" : ""));
        if (image.complex) parts.set("part", display.part);
        display.channels.forEach((one, k) => {
            if (one.low !== null && one.high !== null)
                parts.set(`r${k}`, [one.on ? 1 : 0, tidy(one.low), tidy(one.high), one.colour.slice(1)].join());
        });
    }
    if (v.labels.image !== null)
        parts.set("lab", [v.labels.on ? 1 : 0, v.labels.outline ? 1 : 0, v.labels.opacity, v.labels.image].join());
    if (v.labels.column) parts.set("by", v.labels.column);
    if (v.table.open) parts.set("tab", [v.table.sort ?? "", v.table.descending ? 1 : 0].join());
    for (const { column, low, high } of v.table.where) parts.append("w", `${column}:${low}:${high}`);
    if (v.layout === "volume" || v.layout === "all")
        parts.set(
            "vol",
            [v.volume.mode, v.volume.opacity, tidy(v.volume.yaw), tidy(v.volume.pitch), tidy(v.volume.distance)].join(),
        );
    return parts.toString();
}

/* Takes over what an address says; what it says wrongly is passed over. */
export function fromHash(text) {
    const parts = new URLSearchParams(text),
        patch = {},
        session = store.get("session");
    for (const [short, key] of Object.entries(PLAIN)) if (parts.has(short)) patch[key] = parts.get(short);
    for (const [short, key] of Object.entries(COUNTED))
        if (/^-?\d+$/.test(parts.get(short) ?? "")) patch[key] = Number(parts.get(short));
    if (patch.image !== undefined && !imageOf(patch.image)) delete patch.image;
    if (patch.layout && !["all", "z", "y", "x", "volume"].includes(patch.layout)) delete patch.layout;
    if (patch.compare && !["one", "side", "blink", "difference"].includes(patch.compare)) delete patch.compare;
    for (const [short, key] of [
        ["p", "position"],
        ["at", "centre"],
    ]) {
        const place = numbers(parts.get(short) ?? "");
        if (place.length === 3) patch[key] = place;
    }
    if (Number(parts.get("z")) > 0) patch.zoom = Number(parts.get("z"));
    const along = {},
        parameters = {};
    for (const [name, value] of parts) {
        if (name.startsWith("a.")) along[name.slice(2)] = Number(value) || 0;
        if (name.startsWith("p.")) parameters[name.slice(2)] = Number(value);
    }
    showImage(patch.image ?? store.get("image"));
    const { compare = "one", other, ...rest } = patch;
    store.set({ ...rest, along, parameters });
    if (rest.item !== undefined && shown().collection) {
        store.set({ sheet: false });
        look({ item: rest.item }, false);
    } else if (rest.value && shown().values?.includes(rest.value)) look({ value: rest.value }, false);
    compareWith(compare, other);
    const image = shown();
    prepare(image);
    const map = parts.get("m") ?? displayOf(image).map;
    const channels = displayOf(image).channels.map((one, k) => {
        const [on, low, high, colour] = (parts.get(`r${k}`) ?? "").split(",");
        return colour ? { ...one, on: on === "1", low: Number(low), high: Number(high), colour: `#${colour}` } : one;
    });
    setDisplay(image, { mapChosen: parts.has("m"), map: map.replace("-", ""), invert: map.endsWith("-"), part: parts.get("part") ?? "amplitude", channels });
    const lab = numbers(parts.get("lab") ?? "");
    if (lab.length === 4 && imageOf(lab[3]))
        store.merge("labels", { on: lab[0] === 1, outline: lab[1] === 1, opacity: lab[2], image: lab[3] });
    if (parts.has("vol")) {
        const [mode, ...rest] = parts.get("vol").split(","),
            [opacity, yaw, pitch, distance] = rest.map(Number);
        if (rest.length === 4 && rest.every((one) => isFinite(Number(one))))
            store.merge("volume", { mode, opacity, yaw, pitch, distance });
    }
    if (parts.has("tab") && session.tables?.length) {
        const [sort, descending] = parts.get("tab").split(",");
        store.merge("table", { open: true, sort: sort || null, descending: descending === "1" });
    }
    const where = parts
        .getAll("w")
        .map((text) => /^(.*):([^:]*):([^:]*)$/.exec(text))
        .filter(Boolean)
        .map(([, column, low, high]) => ({ column, low: Number(low), high: Number(high) }));
    if (where.length) filterRows(where);
    if (parts.get("by") && session.tables?.length) colourBy(parts.get("by"));
}

/* Keeps the address in step with the state, and the state with an address that is typed or pasted. */
export function followLink() {
    let own = "";
    const write = throttle(200, () => {
        own = `#${toHash()}`;
        history.replaceState(null, "", own);
    });
    store.listen(write);
    addEventListener("hashchange", () => location.hash !== own && fromHash(location.hash.slice(1)));
}
