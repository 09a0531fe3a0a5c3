// The volume: fetches the finest level within a budget, draws it coarsely while it moves and finely when it rests.
import { clamp, html, useEffect, useRef, useState, useStore } from "./ui.js";
import { getVoxels } from "./api.js";
import { colourMap, labelIndex, LABEL_COLOURS, parts } from "./colour.js";
import { levelCount, sizes, stretch } from "./geometry.js";
import { MODES, RayCaster } from "./raycast.js";
import { Choice, Slider, Tick } from "./side.js";
import { chosen, displayOf, inObjects, labelImage, say, shown, store } from "./state.js";
import { isBusy } from "./viewport.js";

const BUDGET = 256 ** 3; // voxels
const RESTS = 120; // ms without movement, then the fine picture
const QUICK = 35; // ms that a picture should take while it moves
const STRIP = 80; // ms that a strip of a fine picture should take
const FINEST = 1; // pixels of a fine picture per pixel of the page

/* The finest level that fits, or null. */
function levelWithin(image, largest, budget = BUDGET) {
    for (let level = 0; level < levelCount(image); level++) {
        const size = sizes(image, level);
        if (size.reduce((a, b) => a * b, 1) <= budget && Math.max(...size) <= largest) return level;
    }
    return null;
}

/* The channels that make up the volume of an image, by their numbers; null: it has one value for each voxel. */
function mixture(image) {
    if (image.rgb) return [0];
    const { channels } = displayOf(image) ?? {};
    if (!image.axes.includes("c") || !(channels?.length > 1)) return null;
    return channels.map(({ on }, k) => (on ? k : -1)).filter((k) => k >= 0);
}

/* Voxels with colours and the largest part of each in the fourth place, of channels in theirs or of red, green, blue. */
export function mix(planes, colours) {
    const rgb = colours === null,
        count = planes[0].length / (rgb ? 3 : 1),
        mixed = new Uint8ClampedArray(4 * count);
    planes.forEach((data, k) => {
        const [r, g, b] = rgb ? [] : parts(colours[k]).map((part) => part / 255);
        for (let i = 0, j = 0; j < 4 * count; i++, j += 4) {
            if (rgb) {
                mixed[j] = data[3 * i];
                mixed[j + 1] = data[3 * i + 1];
                mixed[j + 2] = data[3 * i + 2];
            } else {
                mixed[j] += data[i] * r;
                mixed[j + 1] += data[i] * g;
                mixed[j + 2] += data[i] * b;
            }
            mixed[j + 3] = Math.max(mixed[j], mixed[j + 1], mixed[j + 2]);
        }
    });
    return new Uint8Array(mixed.buffer);
}

/* Directions of the screen for two angles. y points down, as in the planes; the rays of angle 0 run along z. */
export function camera({ yaw, pitch, distance }, extent) {
    const along = [Math.sin(yaw) * Math.cos(pitch), Math.sin(pitch), Math.cos(yaw) * Math.cos(pitch)];
    const right = [Math.cos(yaw), 0, -Math.sin(yaw)];
    const down = [
        along[1] * right[2] - along[2] * right[1],
        along[2] * right[0] - along[0] * right[2],
        along[0] * right[1] - along[1] * right[0],
    ];
    return { along, right, down, span: distance * Math.hypot(...extent) };
}

/* The size of an image along x, y, z, with its spacing; the largest is 1. */
function extentOf(image) {
    const edge = stretch(image),
        full = sizes(image).map((size, k) => size * edge[k]),
        most = Math.max(...full);
    return [full[2] / most, full[1] / most, full[0] / most];
}

class VolumeView {
    constructor(canvas, lines, told) {
        Object.assign(this, {
            canvas,
            lines,
            told,
            caster: new RayCaster(canvas),
            frame: 0,
            fine: 0,
            share: 0.33,
            asked: "",
            turns: 0,
            range: null,
        });
        this.sizes = new ResizeObserver(() => this.moved());
        this.sizes.observe(canvas.parentNode);
        this.stop = store.listen((changed) => this.follow(changed));
        this.wait();
    }

    end() {
        this.stop();
        this.turns++;
        this.sizes.disconnect();
        clearTimeout(this.fine);
        clearTimeout(this.later);
        cancelAnimationFrame(this.frame);
        this.flight?.abort();
        this.caster.end();
    }

    /* The planes come first: the volume is asked for when none is on its way. */
    wait() {
        clearTimeout(this.later);
        this.later = setTimeout(() => (isBusy() ? this.wait() : this.load()), 250);
    }

    follow(changed) {
        const of = (keys) => changed.some((key) => keys.includes(key));
        const other = of(["image", "display", "along", "item", "value", "parameters", "lit", "values", "session", "layout"]);
        if (other || (of(["volume", "labels"]) && this.wish() !== this.asked)) this.wait();
        if (of(["volume", "display", "values"])) this.moved();
    }

    /* The image whose numbers are objects, if they are what is shown. */
    get labels() {
        if (store.get("volume").labels && labelImage()) return labelImage();
        return shown() && inObjects(shown()) ? shown() : null;
    }

    /* A text that says what should be loaded. */
    wish() {
        const image = this.labels ?? shown(),
            display = displayOf(image);
        const { low, high } = display?.channels[display.channel] ?? {},
            mixed = mixture(image)?.map((k) => [k, ...["low", "high", "colour"].map((name) => display.channels[k][name])]);
        return JSON.stringify([
            chosen(image),
            this.labels ? [store.get("lit")?.size, store.get("labels").column] : (mixed ?? [display?.channel, low, high]),
        ]);
    }

    async load() {
        const labels = this.labels,
            image = labels ?? shown(),
            wish = this.wish();
        const level = levelWithin(image, this.caster.largest);
        if (wish === this.asked) return;
        this.asked = wish;
        if (image.values && store.get("layout") !== "volume") {
            this.asked = "";
            return this.told("The volume of a pipeline is computed when you choose Volume.");
        }
        if (level === null) return this.told("No level of this image is small enough for the volume.");
        const { channel = 0, channels = [{}] } = displayOf(image) ?? {},
            mixed = labels ? null : mixture(image),
            wanted = mixed ?? [channel];
        if (!wanted.length) return this.told("No channel is switched on.");
        if (!labels && wanted.some((k) => typeof channels[k].low !== "number")) return (this.asked = "");
        this.flight?.abort();
        this.flight = new AbortController();
        const several = (c) => (image.axes.includes("c") && !image.rgb ? { c } : {}),
            range = ({ low, high }) => (labels ? {} : { as: "uint8", low, high });
        const fields = wanted.map((k) => ({ ...chosen(image), ...several(k), level, ...range(channels[k]) }));
        this.told("reading the volume…");
        try {
            const { signal } = this.flight,
                parts = await Promise.all(fields.map((one) => getVoxels("volume", one, { signal }))),
                colours = image.rgb ? null : wanted.map((k) => channels[k].colour),
                data = mixed
                    ? mix(
                          parts.map((part) => part.data),
                          colours,
                      )
                    : parts[0].data;
            const { low, high } = channels[channel];
            this.mixed = Boolean(mixed);
            this.take(image, labels, data, parts[0].shape.slice(0, 3), [low, high], level);
        } catch (error) {
            if (error.name !== "AbortError") this.told(error.message);
        }
    }

    take(image, labels, data, shape, range, level) {
        const voxels = labels ? this.places(data) : new Uint8Array(data.buffer);
        if (!this.caster.setVoxels(voxels, shape, extentOf(image), !labels))
            return this.told("The volume does not fit into the memory of the graphics.");
        this.range = range;
        this.told(`${shape[2]} × ${shape[1]} × ${shape[0]} voxels${level ? `, level ${level}` : ""}`);
        this.moved();
    }

    /* Labels as places in a table of 255 colours; objects that do not count become empty. */
    places(data) {
        const { lit, values } = store.values,
            places = new Uint8Array(data.length);
        for (let i = 0; i < data.length; i++) {
            const label = data[i];
            if (!label || (lit && !lit.has(label))) continue;
            places[i] = values ? Math.max(1, values.places.get(label) ?? 1) : labelIndex(label);
        }
        return places;
    }

    /* Something has changed: a coarse picture now, a fine one after a while. */
    moved() {
        this.turns++;
        clearTimeout(this.fine);
        this.fine = setTimeout(() => this.refine(), RESTS);
        if (!this.frame)
            this.frame = requestAnimationFrame(() => {
                this.frame = 0;
                this.draw();
            });
    }

    /* What is drawn now, with so many pixels per pixel of the page; null: there is nothing to draw yet. */
    settings(scale, quality) {
        const { clientWidth, clientHeight } = this.canvas.parentNode,
            { volume } = store.values,
            display = displayOf(shown());
        const one = display?.channels[display.channel],
            range = this.range ?? [one?.low, one?.high];
        if (!clientWidth || !display || one.low === null) return null;
        const relative = (value) => (this.labels ? value : (value - range[0]) / (range[1] - range[0] || 1));
        return {
            camera: camera(volume, extentOf(this.labels ?? shown())),
            mode: this.labels ? "labels" : volume.mode,
            opacity: volume.opacity,
            low: this.mixed ? 0 : relative(this.labels ? 0 : one.low),
            high: this.mixed ? 1 : relative(this.labels ? 1 : one.high),
            width: Math.max(1, Math.round(clientWidth * scale)),
            height: Math.max(1, Math.round(clientHeight * scale)),
            quality,
        };
    }

    setColours() {
        const { map, invert } = displayOf(shown());
        const own = store.get("values") ? colourMap("viridis") : LABEL_COLOURS;
        this.caster.setColours(this.labels ? own : colourMap(map, invert));
    }

    drawn(quality) {
        this.frames = (this.frames ?? 0) + 1;
        Object.assign(this.canvas.dataset, { quality, frames: this.frames });
    }

    /* While it moves: as large as can be drawn in about QUICK. */
    draw() {
        const settings = this.settings(this.share, 0.6),
            start = performance.now();
        if (!settings) return;
        this.setColours();
        this.caster.draw(settings);
        const by = Math.sqrt(QUICK / Math.max(1, performance.now() - start));
        this.share = clamp(this.share * clamp(by, 0.5, 1.2), 0.12, 1);
        this.drawn("coarse");
        drawBox(this.lines, this.labels ?? shown(), settings.camera);
    }

    /* When it rests: strip by strip, so that a new movement need not wait. */
    async refine() {
        const settings = this.settings(FINEST, 1),
            turns = this.turns;
        if (!settings || !this.caster.shape) return;
        this.setColours();
        this.caster.begin(settings);
        for (let from = 0, rows = 32; from < settings.height;) {
            const start = performance.now(),
                to = Math.min(settings.height, from + rows);
            this.caster.strip(settings, from, to);
            rows = Math.ceil(clamp((rows * STRIP) / Math.max(1, performance.now() - start), 32, 4 * rows));
            from = to;
            await new Promise((done) => setTimeout(done));
            if (this.turns !== turns) return;
        }
        this.caster.show(settings);
        this.drawn("fine");
    }
}

/* The edges of the box and the names of its axes, as lines above the volume. */
function drawBox(canvas, image, { right, down, span }) {
    const { clientWidth: width, clientHeight: height } = canvas,
        scale = devicePixelRatio || 1,
        ctx = canvas.getContext("2d");
    Object.assign(canvas, { width: width * scale, height: height * scale });
    ctx.setTransform(scale, 0, 0, scale, 0, 0);
    const extent = extentOf(image);
    const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    const at = (corner) => {
        const p = corner.map((c, k) => c * extent[k]),
            unit = Math.min(width, height) / span;
        return [width / 2 + dot(p, right) * unit, height / 2 + dot(p, down) * unit];
    };
    ctx.strokeStyle = "rgb(255 255 255 / 35%)";
    ctx.beginPath();
    for (let axis = 0; axis < 3; axis++)
        for (const a of [-0.5, 0.5])
            for (const b of [-0.5, 0.5]) {
                const from = [a, b],
                    ends = [-0.5, 0.5].map((c) => at([...from.slice(0, axis), c, ...from.slice(axis)]));
                ctx.moveTo(...ends[0]);
                ctx.lineTo(...ends[1]);
            }
    ctx.stroke();
    ctx.fillStyle = "rgb(255 255 255 / 85%)";
    ctx.font = "13px system-ui, sans-serif";
    for (const [name, corner] of [
        ["x", [0.55, -0.5, -0.5]],
        ["y", [-0.5, 0.55, -0.5]],
        ["z", [-0.5, -0.5, 0.55]],
    ])
        ctx.fillText(name, ...at(corner));
}

function turn(dx, dy) {
    const { yaw, pitch } = store.get("volume");
    store.merge("volume", { yaw: yaw - dx, pitch: Math.min(1.55, Math.max(-1.55, pitch + dy)) });
}
const nearer = (by) => store.merge("volume", { distance: Math.min(6, Math.max(0.2, store.get("volume").distance * by)) });

const KEYS = {
    ArrowLeft: () => turn(0.1, 0),
    ArrowRight: () => turn(-0.1, 0),
    ArrowUp: () => turn(0, -0.1),
    ArrowDown: () => turn(0, 0.1),
    "+": () => nearer(0.87),
    "=": () => nearer(0.87),
    "-": () => nearer(1.15),
};

export function VolumePane() {
    const canvas = useRef(),
        lines = useRef(),
        [state, tell] = useState("reading the volume…"),
        [broken, setBroken] = useState(false);
    useEffect(() => {
        let view = null;
        try {
            view = new VolumeView(canvas.current, lines.current, tell);
        } catch {
            setBroken(true);
            say("Volumes need WebGL2, which this browser has switched off; the planes work without it.");
        }
        return () => view?.end();
    }, []);
    const last = useRef(null);
    const move = ({ clientX, clientY }) => {
        if (!last.current) return;
        turn((clientX - last.current[0]) / 150, (clientY - last.current[1]) / 150);
        last.current = [clientX, clientY];
    };
    if (broken)
        return html`<section class="pane" aria-label="volume"><p class="nothing light">Volumes need WebGL2, which this browser has
        switched off. The planes work without it.</p></section>`;
    return html`<section class="pane" aria-label="volume"><div class="turn" tabindex="0" role="application"
        aria-label="volume, turn it with the arrows"
        onPointerDown=${(event) => {
            event.currentTarget.setPointerCapture(event.pointerId);
            last.current = [event.clientX, event.clientY];
        }} onPointerMove=${move} onPointerUp=${() => (last.current = null)} onPointerCancel=${() => (last.current = null)}
        onWheel=${(event) => {
            event.preventDefault();
            nearer(Math.exp(event.deltaY / 600));
        }}
        onKeyDown=${(event) => {
            if (!KEYS[event.key]) return;
            event.preventDefault();
            event.stopPropagation();
            KEYS[event.key]();
        }}>
        <canvas class="cast" ref=${canvas} aria-hidden="true"></canvas><canvas class="lines" ref=${lines} aria-hidden="true">
            </canvas></div>
        <p class="tag">${state}</p></section>`;
}

/* Its part of the panel. */
export function VolumeSettings() {
    const { volume } = useStore(store, "volume", "layout"),
        merge = (patch) => store.merge("volume", patch);
    return html`<section aria-label="settings of the volume"><h2>Volume</h2>
        <${Choice} name="Rays" id="rays" value=${volume.mode} options=${MODES.map((mode) => [mode, mode])}
            change=${(mode) => merge({ mode })} />
        <${Slider} name="Opacity" value=${volume.opacity} low="0.02" high="1" by="0.02"
            change=${(opacity) => merge({ opacity })} />
        ${
            labelImage() &&
            html`<${Tick} name="labels instead of the image" value=${volume.labels}
            change=${(on) => merge({ labels: on })} />`
        }
    </section>`;
}
