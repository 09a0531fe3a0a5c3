// One plane on a canvas: image, labels above it, and what is drawn over both.
import { getJson } from "./api.js";
import { factors, isEmpty, levelCount, levelFor, PLANE, sizes } from "./geometry.js";
import { labelColours, paintChannels, paintDifference, paintLabels, paintMap, paintRgb, picture } from "./paint.js";
import { overlay } from "./overlay.js";
import { Source } from "./source.js";
import { chosen, displayOf, imageOf, labelImage, pointer, say, shown, store } from "./state.js";
import { addView, removeView, upward, viewOf } from "./viewport.js";

const GRID = 32; // regions start and end at multiples of so many voxels, so that small movements need nothing new
const BLINK = 600; // ms
const MARGIN = 0.25; // of the region, on each side, once the plane is moved

/* A source of planes with the picture that was last made of them. */
class Layer {
    constructor(view) {
        this.source = new Source(
            () => view.arrived(this),
            (message) => say(message),
        );
        this.made = null;
    }
    /* The picture of what has arrived; made again when the planes or the key have changed. */
    picture(key, paint) {
        const { current } = this.source;
        if (!current) return null;
        if (this.made?.of !== current || this.made.key !== key)
            this.made = { of: current, key, canvas: picture(current.planes[0].shape, (pixels) => paint(current.planes, pixels)) };
        return this.made.canvas;
    }
}

export class PlaneView {
    /* id: of the image, or null for the one that is chosen. */
    constructor(canvas, axis, id) {
        Object.assign(this, { canvas, axis, id, width: 0, height: 0, frame: 0, blinked: false, last: {} });
        this.context = canvas.getContext("2d");
        this.layers = { image: new Layer(this), whole: new Layer(this), other: new Layer(this), labels: new Layer(this) };
        this.stop = store.listen(() => this.redraw());
        this.sizes = new ResizeObserver(() => this.resize());
        this.sizes.observe(canvas);
        this.blinking = setInterval(() => {
            if (store.get("compare") !== "blink") return;
            this.blinked = Math.floor(Date.now() / BLINK) % 2 === 1;
            this.redraw();
        }, BLINK / 2);
        addView(this);
        this.resize();
    }

    end() {
        removeView(this);
        this.stop();
        this.sizes.disconnect();
        clearInterval(this.blinking);
        cancelAnimationFrame(this.frame);
        for (const layer of Object.values(this.layers)) layer.source.drop();
    }

    get image() {
        return this.id === null ? shown() : imageOf(this.id);
    }
    get busy() {
        return Object.values(this.layers).some((layer) => layer.source.busy);
    }

    resize() {
        const { clientWidth, clientHeight } = this.canvas,
            scale = devicePixelRatio || 1;
        Object.assign(this, { width: clientWidth, height: clientHeight, scale });
        this.canvas.width = Math.max(1, Math.round(clientWidth * scale));
        this.canvas.height = Math.max(1, Math.round(clientHeight * scale));
        this.redraw();
    }

    redraw() {
        if (!this.frame)
            this.frame = requestAnimationFrame(() => {
                this.frame = 0;
                this.draw();
            });
    }

    /* What of a level is seen: { level, index, x, y, w, h, factor }, or null. */
    region(image, level, margin) {
        const { down, along, across } = PLANE[this.axis],
            { pixels, centre, position } = viewOf(image);
        const factor = factors(image, level),
            size = sizes(image, level);
        const span = (place, screen) => {
            const half = (screen / 2 / pixels[place]) * (1 + 2 * margin);
            const low = Math.max(0, Math.floor((centre[place] - half) / factor[place] / GRID) * GRID);
            const high = Math.min(size[place], Math.ceil((centre[place] + half) / factor[place] / GRID) * GRID);
            return [low, high - low];
        };
        const [x, w] = span(along, this.width),
            [y, h] = span(down, this.height);
        const index = Math.min(Math.max(0, Math.floor(position[across] / factor[across])), size[across] - 1);
        const inside = size[across] === 1 || position[across] < sizes(image)[across];
        return w > 0 && h > 0 && inside ? { level, index, x, y, w, h, factor } : null;
    }

    /* Asks for what is seen of an image, unless a layer has it. channels: which ones, or null where there are none. */
    want(layer, image, channels, level) {
        const seen = this.region(image, level, 0);
        if (!seen) return layer.source.drop();
        const common = { ...chosen(image), level, axis: this.axis, index: seen.index };
        const sign = JSON.stringify([common, channels]),
            { current } = layer.source;
        const moved = current?.sign === sign;
        if (
            moved &&
            current.x <= seen.x &&
            current.y <= seen.y &&
            current.x + current.w >= seen.x + seen.w &&
            current.y + current.h >= seen.y + seen.h
        )
            return;
        const { x, y, w, h, factor } = moved ? this.region(image, level, MARGIN) : seen;
        const fields = (channels ?? [null]).map((c) => ({ ...common, x, y, w, h, c }));
        layer.source.want({ fields, sign, image, level, index: seen.index, x, y, w, h, factor });
    }

    /* After a plane has arrived: draws it, and fetches the next one in the direction of the last step. */
    arrived(layer) {
        const { index, fields, image, level } = layer.source.current,
            before = this.last[level + " " + image.id];
        this.last = { ...this.last, [level + " " + image.id]: index };
        this.redraw();
        const next = index + Math.sign(index - (before ?? index));
        if (next !== index && next >= 0 && next < sizes(image, level)[PLANE[this.axis].across])
            layer.source.ahead(fields.map((one) => ({ ...one, index: next })));
    }

    draw() {
        const { context: ctx, image, scale } = this;
        ctx.setTransform(scale, 0, 0, scale, 0, 0);
        ctx.clearRect(0, 0, this.width, this.height);
        if (!image || isEmpty(image) || !this.width) return;
        const display = displayOf(image),
            { compare, other } = store.values,
            second = compare === "one" ? null : imageOf(other);
        if (!display) return;
        const { pixels } = viewOf(image),
            level = levelFor(image, this.axis, pixels);
        const on = display.channels.map((one, k) => (one.on ? k : -1)).filter((k) => k >= 0);
        const channels = image.axes.includes("c") && !image.rgb ? on : null;
        if (channels?.length === 0) this.layers.image.source.drop();
        else this.want(this.layers.image, image, channels, level);
        this.wantWhole(image, channels, level);
        if (this.id === null && compare === "difference" && second) this.drawDifference(image, second, display, level);
        else if (this.id === null && compare === "blink" && second && displayOf(second)) this.drawBlink(image, second, display);
        else this.drawImage(image, display);
        this.drawLabels();
        overlay(this);
        this.canvas.parentNode.toggleAttribute("data-busy", this.busy);
    }

    /* The coarsest level of the whole plane lies below, for parts that have not arrived yet. */
    wantWhole(image, channels, level) {
        const coarsest = levelCount(image) - 1,
            { current } = this.layers.image.source,
            size = sizes(image, level);
        const { down, along } = PLANE[this.axis];
        if (!current || level === coarsest || (current.w >= size[along] && current.h >= size[down])) return;
        const factor = factors(image, coarsest),
            all = sizes(image, coarsest);
        const index = Math.min(
            Math.floor(viewOf(image).position[PLANE[this.axis].across] / factor[PLANE[this.axis].across]),
            all[PLANE[this.axis].across] - 1,
        );
        const place = { x: 0, y: 0, w: all[along], h: all[down] };
        const common = { ...chosen(image), level: coarsest, axis: this.axis, index };
        const fields = (channels ?? [null]).map((c) => ({ ...common, ...place, c }));
        this.layers.whole.source.want({ fields, image, level: coarsest, index, factor, ...place });
    }

    /* Draws a picture of a layer where its voxels are. */
    place(canvas, current, image) {
        const { along, down } = PLANE[this.axis],
            { pixels, centre } = viewOf(image),
            { factor, x, y, w, h } = current;
        const wide = factor[along] * pixels[along],
            high = factor[down] * pixels[down];
        this.context.imageSmoothingEnabled = store.get("smooth") || Math.max(wide, high) * this.scale < 1;
        const ctx = this.context;
        ctx.save();
        if (upward(this.axis) < 0) ctx.transform(1, 0, 0, -1, 0, this.height);
        const left = (x * factor[along] - centre[along]) * pixels[along] + this.width / 2;
        ctx.drawImage(canvas, left, (y * factor[down] - centre[down]) * pixels[down] + this.height / 2, w * wide, h * high);
        ctx.restore();
    }

    paint(layer, image, display) {
        const { current } = layer.source;
        if (!current || current.image.id !== image.id) return;
        const channels = current.fields.map(({ c }) => display.channels[c ?? 0]);
        if (channels.some((one) => one.low === null || one.high === null)) return;
        const key = JSON.stringify([display.map, display.invert, channels.map(({ low, high, colour }) => [low, high, colour])]);
        const many = image.axes.includes("c") && display.channels.length > 1;
        const canvas = layer.picture(key, (planes, pixels) => {
            const settings = { ...channels[0], map: display.map, invert: display.invert };
            if (image.rgb) paintRgb(planes[0].data, settings, pixels);
            else if (many) paintChannels(planes, channels, pixels);
            else paintMap(planes[0].data, settings, pixels);
        });
        this.place(canvas, current, image);
    }

    drawImage(image, display) {
        const whole = this.layers.whole.source.current,
            now = this.layers.image.source.current;
        if (
            whole &&
            now &&
            now.w * now.h < sizes(image, now.level)[PLANE[this.axis].along] * sizes(image, now.level)[PLANE[this.axis].down]
        )
            this.paint(this.layers.whole, image, display);
        this.paint(this.layers.image, image, display);
    }

    drawBlink(image, second, display) {
        const two = displayOf(second),
            level = levelFor(second, this.axis, viewOf(second).pixels);
        this.want(this.layers.other, second, second.axes.includes("c") && !second.rgb ? [0] : null, level);
        if (this.blinked) this.paint(this.layers.other, second, two);
        else this.drawImage(image, display);
    }

    drawDifference(image, second, display, level) {
        if (String(sizes(image)) !== String(sizes(second)) || image.rgb || second.rgb)
            return say("A difference needs two images of the same size with one number per voxel.");
        this.want(this.layers.other, second, second.axes.includes("c") ? [0] : null, Math.min(level, levelCount(second) - 1));
        const a = this.layers.image.source.current,
            b = this.layers.other.source.current;
        if (!a || !b || ["level", "index", "x", "y", "w", "h"].some((name) => a[name] !== b[name])) return;
        const { low, high } = display.channels[0];
        const canvas = this.layers.image.picture(`difference ${b.sign} ${low} ${high}`, (planes, pixels) =>
            paintDifference(planes[0].data, b.planes[0].data, (high - low) / 2, pixels),
        );
        this.place(canvas, a, image);
    }

    drawLabels() {
        const { labels, selected, lit, values } = store.values,
            image = labelImage(),
            { source } = this.layers.labels;
        if (!image || !labels.on || isEmpty(image)) return source.current ? source.drop() : undefined;
        this.want(this.layers.labels, image, null, levelFor(image, this.axis, viewOf(image).pixels));
        if (!source.current) return;
        const key = [labels.outline, selected, this.keyOf(lit), this.keyOf(values)].join();
        const colourOf = labelColours({ values: values?.places, lit, map: "viridis" });
        const canvas = this.layers.labels.picture(key, ([plane], pixels) =>
            paintLabels(plane.data, plane.shape, { colourOf, outline: labels.outline, selected }, pixels),
        );
        this.context.globalAlpha = labels.outline ? Math.max(labels.opacity, 0.9) : labels.opacity;
        this.place(canvas, source.current, image);
        this.context.globalAlpha = 1;
    }

    /* A number that stands for an object: the same for the same object. */
    keyOf(object) {
        if (!object) return 0;
        this.keys ??= new WeakMap();
        if (!this.keys.has(object)) this.keys.set(object, (this.keyCount = (this.keyCount ?? 0) + 1));
        return this.keys.get(object);
    }

    /* The voxel under a point of the canvas, as numbers that may lie outside. */
    voxelAt(x, y, image = this.image) {
        const { along, down } = PLANE[this.axis],
            { pixels, centre, position } = viewOf(image),
            at = [...position];
        at[along] = Math.floor((x - this.width / 2) / pixels[along] + centre[along]);
        at[down] = Math.floor(((y - this.height / 2) * upward(this.axis)) / pixels[down] + centre[down]);
        return at;
    }

    /* What a layer has there: a number per channel, or null. */
    lookUp(layer, at) {
        const { current } = layer.source,
            { along, down } = PLANE[this.axis];
        if (!current) return null;
        const x = Math.floor(at[along] / current.factor[along]) - current.x,
            y = Math.floor(at[down] / current.factor[down]) - current.y;
        if (x < 0 || y < 0 || x >= current.w || y >= current.h) return null;
        const { data, shape } = current.planes[0],
            parts = shape[2] ?? 1;
        if (parts > 1) return [0, 1, 2].map((k) => data[(y * shape[1] + x) * parts + k]);
        return current.planes.map((plane) => plane.data[y * shape[1] + x]);
    }

    labelAt(x, y) {
        const image = labelImage();
        return image && store.get("labels").on ? (this.lookUp(this.layers.labels, this.voxelAt(x, y, image))?.[0] ?? 0) : 0;
    }

    /* Tells position and value under a point; asks the server where only a coarse level is here. */
    point(x, y) {
        const image = this.image,
            at = this.voxelAt(x, y),
            size = sizes(image);
        clearTimeout(this.asking);
        this.question?.abort();
        if (at.some((p, k) => p < 0 || p >= size[k])) return pointer.set({ at: null });
        const local = this.lookUp(this.layers.image, at),
            exact = this.layers.image.source.current?.level === 0;
        pointer.set({ at, image, label: this.labelAt(x, y), value: exact ? local : null });
        if (exact) return;
        this.asking = setTimeout(async () => {
            this.question = new AbortController();
            const channels =
                image.axes.includes("c") && !image.rgb ? { c: this.layers.image.source.current?.fields[0].c ?? 0 } : {};
            try {
                const { value } = await getJson(
                    "value",
                    { ...chosen(image), ...channels, z: at[0], y: at[1], x: at[2] },
                    this.question.signal,
                );
                pointer.set({ value: [value].flat() });
            } catch {
                // The pointer has moved on, or the value cannot be had: the position stands alone.
            }
        }, 60);
    }
}
