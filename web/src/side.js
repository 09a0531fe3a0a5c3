// The panel beside the planes: which image, contrast, colours, channels, labels, comparison, parameters.
import { html, short, useStore } from "./ui.js";
import { mapsOf } from "./colour.js";
import { isEmpty, sizes, spacing, SPACE } from "./geometry.js";
import { Histogram } from "./histogram.js";
import {
    ALL,
    chooseValue,
    colourBy,
    compareWith,
    contrast,
    displayOf,
    inObjects,
    labelImage,
    pictures,
    sameSize,
    setChannel,
    setDisplay,
    setMap,
    setPart,
    showImage,
    shown,
    store,
    tableOf,
} from "./state.js";

export const Choice = ({ name, value, options, change, id }) => html`<label class="field"><span>${name}</span>
    <select value=${value} id=${id} onChange=${(event) => change(event.target.value)}>
        ${options.map(([key, text]) => html`<option value=${key} selected=${String(key) === String(value)}>${text}</option>`)}
    </select></label>`;
export const Tick = ({ name, value, change }) => html`<label class="tick"><input type="checkbox" checked=${value}
    onChange=${(event) => change(event.target.checked)} /> ${name}</label>`;
export const Slider = ({ name, value, low, high, by, change, shownAs }) => html`<label class="field slider"><span>${name}</span>
    <input type="range" min=${low} max=${high} step=${by} value=${value}
        onInput=${(event) => change(event.target.valueAsNumber)} />
    <output>${shownAs ?? short(value)}</output></label>`;

const LEVELS = { uint8: "8-bit", uint16: "16-bit", int16: "16-bit with sign" };

function About() {
    const image = shown(),
        step = spacing(image),
        size = sizes(image);
    const places = SPACE.map((_, k) => k)
        .filter((k) => image.axes.includes(SPACE[k]))
        .reverse();
    const length = step && places.map((k) => short(Number((size[k] * (step[k] ?? 1)).toPrecision(4)))).join(" × ");
    return html`<p class="quiet">
        ${image.axes.map((axis, k) => `${axis} ${image.shape[k]}`).join(" · ")},
        ${" "}${image.rgb ? "colours" : (LEVELS[image.dtype] ?? image.dtype)}
        ${step && html`<br />${length} ${image.unit ?? ""} along ${places.map((k) => SPACE[k]).join(", ")}`}
        ${step && html`<br />voxel ${places.map((k) => short(step[k] ?? 1)).join(" × ")} ${image.unit ?? ""}`}
    </p>`;
}

function Contrast() {
    const image = shown(),
        display = displayOf(image);
    if (!display || isEmpty(image)) return null;
    const k = Math.min(display.channel, display.channels.length - 1),
        one = display.channels[k];
    const several = display.channels.length > 1;
    const settings = { ...one, map: display.map, invert: display.invert, colour: several ? one.colour : null };
    return html`<section aria-label="contrast"><h2>Contrast ${several ? `of ${channelName(image, k)}` : ""}</h2>
        ${
            inObjects(image)
                ? html`<p class="quiet">A colour for each number, as of objects. Choose grey to see how large they are.</p>`
                : html`<${Stretch} image=${image} k=${k} settings=${settings} several=${several} />`
        }
        ${
            !several &&
            !image.rgb &&
            html`<${Choice} name="Colours" id="map" value=${display.map} options=${mapsOf(image).map((map) => [map, map])}
            change=${(map) => setMap(image, map)} />`
        }
        ${
            image.complex &&
            html`<${Choice} name="Show" id="part" value=${display.part} options=${[
                ["amplitude", "amplitude"],
                ["phase", "phase"],
            ]}
            change=${(part) => setPart(image, part)} />`
        }
    </section>`;
}

/* The histogram of a channel with the two ends of its contrast. */
function Stretch({ image, k, settings, several }) {
    const { statistics, invert } = settings;
    return html`<${Histogram} settings=${settings} name="contrast" change=${(patch) => setChannel(image, k, patch)} />
        <div class="row">
            <button type="button" disabled=${!statistics}
                onClick=${() => setChannel(image, k, contrast(image, statistics))}>Auto</button>
            <button type="button" disabled=${!statistics}
                onClick=${() => setChannel(image, k, { low: statistics.min, high: statistics.max })}>All</button>
            ${
                !several &&
                html`<${Tick} name="invert" value=${invert}
                change=${(value) => setDisplay(image, { invert: value })} />`
            }
        </div>`;
}

const channelName = (image, k) => image.channels?.[k]?.name || `channel ${k}`;

function Channels() {
    const image = shown(),
        display = displayOf(image);
    if (!display || display.channels.length < 2) return null;
    return html`<section aria-label="channels"><h2>Channels</h2>
        ${display.channels.map(
            (one, k) => html`<div class="row channel">
            <${Tick} name=${channelName(image, k)} value=${one.on} change=${(on) => setChannel(image, k, { on })} />
            <input type="color" value=${one.colour} aria-label=${`colour of ${channelName(image, k)}`}
                   onInput=${(event) => setChannel(image, k, { colour: event.target.value })} />
            <button type="button" aria-pressed=${display.channel === k}
                onClick=${() => setDisplay(image, { channel: k })}>contrast</button>
        </div>`,
        )}
    </section>`;
}

function Labels() {
    const { labels, values, session } = store.values;
    const choices = session.images.filter((image) => image.role === "labels" && sameSize(image, shown()));
    const table = tableOf(),
        numbers = table?.columns.filter(({ type }) => type !== "text") ?? [];
    if (!choices.length) return null;
    const merge = (patch) => store.merge("labels", patch);
    return html`<section aria-label="labels"><h2>Labels</h2>
        ${
            choices.length > 1 &&
            html`<${Choice} name="Image" value=${labels.image} options=${choices.map(({ id, name }) => [id, name])}
            change=${(id) => merge({ image: Number(id) })} />`
        }
        <div class="row"><${Tick} name="show" value=${labels.on} change=${(on) => merge({ on })} />
            <${Tick} name="outline" value=${labels.outline} change=${(outline) => merge({ outline })} /></div>
        <${Slider} name="Opacity" value=${labels.opacity} low="0" high="1" by="0.05" change=${(opacity) => merge({ opacity })} />
        ${
            table &&
            labelImage() &&
            html`<${Choice} name="Colour by" id="colour-by" value=${labels.column} change=${colourBy}
            options=${[["", "own colours"], ...numbers.map(({ name }) => [name, name])]} />
            ${
                values &&
                html`<p class="legend"><span>${short(values.low)}</span><i class="ramp"></i><span>
                ${short(values.high)}</span></p>`
            }`
        }
    </section>`;
}

function Compare() {
    const { compare, other } = store.values,
        image = shown(),
        others = pictures().filter(({ id }) => id !== image.id);
    if (!others.length) return null;
    const all = compare === "side" && others.length > 1 ? [[ALL, "all"]] : [];
    return html`<section aria-label="compare"><h2>Compare</h2>
        <${Choice} name="How" id="compare" value=${compare} change=${(how) => compareWith(how, other)}
            options=${[
                ["one", "not"],
                ["side", "side by side"],
                ["blink", "blink"],
                ["difference", "difference"],
            ]} />
        ${
            compare !== "one" &&
            html`<${Choice} name="With" id="with" value=${other} change=${(id) => compareWith(compare, Number(id))}
            options=${[...others.map(({ id, name }) => [id, name]), ...all]} />`
        }
    </section>`;
}

function Parameters() {
    const image = shown(),
        { parameters, value } = store.values;
    if (!image.values?.length) return null;
    return html`<section aria-label="values"><h2>Values</h2>
        <${Choice} name="Value" id="value" value=${value ?? image.value ?? image.values[0]} change=${chooseValue}
            options=${image.values.map((name) => [name, name])} />
        ${(image.parameters ?? []).map(
            (one) => html`<${Slider} name=${one.name} value=${parameters[one.name] ?? one.value} low=${one.min}
            high=${one.max} by=${one.step} change=${(now) => store.merge("parameters", { [one.name]: now })} />`,
        )}
        ${!image.parameters?.length && html`<p class="quiet">A line such as “param sigma = 2” in the text becomes a slider.</p>`}
    </section>`;
}

/* What the panel looks at: it is drawn again when one of these changes. */
const SEEN = "session image display labels values compare other parameters value table smooth crosshair".split(" ");

export function Side({ children }) {
    const { image, smooth, crosshair } = useStore(store, ...SEEN);
    const list = pictures();
    return html`<aside class="side" aria-label="settings">
        ${
            list.length > 1 &&
            html`<${Choice} name="Image" id="image" value=${image} options=${list.map(({ id, name }) => [id, name])}
            change=${(id) => showImage(Number(id))} />`
        }
        ${list.length <= 1 && html`<h2 class="name">${shown().name}</h2>`}
        <${About} /><${Parameters} /><${Contrast} /><${Channels} /><${Labels} />${children}<${Compare} />
        <section aria-label="planes"><h2>Planes</h2><div class="row">
            <${Tick} name="cross-hair" value=${crosshair} change=${(on) => store.set({ crosshair: on })} />
            <${Tick} name="smooth" value=${smooth} change=${(on) => store.set({ smooth: on })} /></div></section>
    </aside>`;
}
