// A collection as a contact sheet: small pictures that are read when they are seen, and open when clicked.
import { html, useEffect, useRef, useStore } from "./ui.js";
import { getJson, getVoxels } from "./api.js";
import { OBJECTS } from "./colour.js";
import { levelCount, sizes } from "./geometry.js";
import { paintMap, paintRgb, picture } from "./paint.js";
import { chosen, contrast, displayOf, openItem, shown, store } from "./state.js";

const AT_ONCE = 4;
const waiting = [];
let running = 0;

/* Runs few of the pictures at a time, the last wanted first. */
async function soon(job) {
    waiting.push(job);
    if (running >= AT_ONCE) return;
    running++;
    while (waiting.length)
        await waiting
            .pop()()
            .catch(() => {});
    running--;
}

async function drawItem(canvas, collection, item) {
    const image = { ...collection, ...(await getJson("image", { image: collection.id, item })) };
    const level = levelCount(image) - 1,
        [depth, height, width] = sizes(image, level),
        fields = { ...chosen(image), item };
    const several = image.axes.includes("c") && !image.rgb ? { c: 0 } : {};
    const place = { level, axis: "z", index: depth >> 1, x: 0, y: 0, w: width, h: height };
    const [plane, statistics] = await Promise.all([
        getVoxels("plane", { ...fields, ...several, ...place }),
        getJson("statistics", { ...fields, ...several }),
    ]);
    const own = displayOf(collection),
        map = statistics.objects && !own.mapChosen ? OBJECTS : own.map;
    const settings = { ...own, map, ...contrast(image, statistics) };
    const made = picture(plane.shape, (pixels) =>
        image.rgb ? paintRgb(plane.data, settings, pixels) : paintMap(plane.data, settings, pixels),
    );
    canvas.width = made.width;
    canvas.height = made.height;
    canvas.getContext("2d").drawImage(made, 0, 0);
}

function Thumb({ image, item, name }) {
    const canvas = useRef(),
        { display } = useStore(store, "item");
    useEffect(() => {
        const look = new IntersectionObserver(([{ isIntersecting }]) => {
            if (!isIntersecting) return;
            look.disconnect();
            soon(() => drawItem(canvas.current, image, item));
        });
        look.observe(canvas.current);
        return () => look.disconnect();
    }, [image.id, item, display[image.id]?.map]);
    return html`<li><button type="button" onClick=${() => openItem(item)}
        aria-current=${store.get("item") === item ? "true" : undefined}>
        <canvas ref=${canvas} width="96" height="96" aria-hidden="true"></canvas><span>${name}</span></button></li>`;
}

export function Sheet() {
    const image = shown();
    return html`<main class="sheet"><h2>${image.collection.length} images</h2>
        <ul>${image.collection.map(
            (name, item) => html`<${Thumb} image=${image} item=${item} name=${name}
            key=${`${image.id} ${item}`} />`,
        )}</ul></main>`;
}
