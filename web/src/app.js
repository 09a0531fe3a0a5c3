// The page of fovea view: planes, panel, table, status.
import { html, short, useEffect, useRef, useStore } from "./ui.js";
import { isEmpty, isFlat, SPACE, sliders, spacing } from "./geometry.js";
import { KEYS } from "./keys.js";
import { PlanePane } from "./panes.js";
import { Sheet } from "./sheet.js";
import { Side } from "./side.js";
import { ALL, displayOf, imageOf, pictures, pointer, shown, store, tableOf } from "./state.js";
import { TablePanel } from "./table.js";
import { VolumePane, VolumeSettings } from "./volume.js";

const LAYOUTS = [
    ["all", "All", "all planes"],
    ["z", "z", "only the plane across z"],
    ["y", "y", "only the plane across y"],
    ["x", "x", "only the plane across x"],
    ["volume", "Volume", "only the volume"],
];

function Top() {
    const { session, layout, side, table, sheet } = useStore(store, "layout", "side", "table", "image", "sheet");
    const image = shown(),
        button = (on, text, action, label) => html`<button type="button" aria-pressed=${on} aria-label=${label}
        title=${label} onClick=${action}>${text}</button>`;
    return html`<header>
        <h1>Fovea</h1><p class="title">${session.title}</p>
        ${
            !isFlat(image) &&
            html`<div class="group" role="group" aria-label="layout">
            ${LAYOUTS.map(([key, text, label]) => button(layout === key, text, () => store.set({ layout: key }), label))}</div>`
        }
        ${image.collection && button(sheet, "Sheet", () => store.set({ sheet: !sheet }), "sheet with all images")}
        ${tableOf() && button(table.open, "Table", () => store.merge("table", { open: !table.open }), "table of objects")}
        ${button(side, "Settings", () => store.set({ side: !side }), "settings beside the planes")}
        ${button(false, "?", () => store.set({ help: true }), "keys and help")}
    </header>`;
}

function Planes() {
    const { layout, compare, other } = useStore(store, "layout", "compare", "other", "image", "session");
    const image = shown();
    if (isEmpty(image))
        return html`<main class="planes one"><p class="nothing">This image is empty: it has no voxels.</p></main>`;
    const axis = SPACE.includes(layout) ? layout : "z";
    if (compare === "side") {
        const others = pictures().filter(
            ({ id }) => id !== image.id && (other === ALL || id === other) && displayOf(imageOf(id)),
        );
        return html`<main class=${`planes ${others.length > 1 ? "many" : "two"}`} key="side">
            <${PlanePane} axis=${axis} title=${image.name} key=${`${image.id} ${axis}`} />
            ${others.map(
                ({ id, name }) => html`<${PlanePane} axis=${axis} id=${id} title=${name}
                key=${`${id} ${axis}`} />`,
            )}</main>`;
    }
    const all = layout === "all" && !isFlat(image),
        volume = (all || layout === "volume") && !isFlat(image);
    const panes = isFlat(image) ? ["z"] : all ? SPACE : layout === "volume" && volume ? [] : [axis];
    return html`<main class=${`planes ${all ? "all" : "one"}`} key="planes">
        ${panes.map((one) => html`<${PlanePane} axis=${one} key=${one} />`)}${
            volume &&
            html`<${VolumePane}
            key="volume" />`
        }</main>`;
}

function Along() {
    const { along } = useStore(store, "along", "image"),
        list = sliders(shown());
    if (!list.length) return null;
    return html`<div class="along">${list.map(
        ({ name, size }) => html`<label><span>${name}</span>
        <input type="range" min="0" max=${size - 1} value=${along[name] ?? 0} aria-label=${`position along ${name}`}
               onInput=${(event) => store.merge("along", { [name]: event.target.valueAsNumber })} />
        <output>${along[name] ?? 0}</output></label>`,
    )}</div>`;
}

const told = (value) => (value === null || value === "NaN" || Number.isNaN(value) ? "not a number" : short(value));

function Status() {
    const { at, image, value, label } = useStore(pointer, "at", "value", "label"),
        { message } = useStore(store, "message");
    const step = at && spacing(image),
        there = at && SPACE.map((_, k) => k).filter((k) => image.axes.includes(SPACE[k]));
    return html`<footer>
        <p class="pointer" id="pointer">${
            at
                ? html`<span>${there.map((k) => `${SPACE[k]} ${at[k]}`).join("  ")}</span>
            ${
                step &&
                html`<span>${there.map((k) => short(Number(((at[k] + 0.5) * (step[k] ?? 1)).toPrecision(5)))).join(", ")}
                ${" "}${image.unit ?? ""}</span>`
            }
            <b>${value ? value.map(told).join(", ") : ""}</b>
            ${label ? html`<span>label ${label}</span>` : ""}`
                : html`<span class="quiet">Point at a voxel to see its value.</span>`
        }</p>
        <p class="message" role="status">${message}</p>
    </footer>`;
}

function Help() {
    const dialog = useRef(),
        { help } = useStore(store, "help");
    useEffect(() => {
        if (help) dialog.current.showModal();
    }, [help]);
    return html`<dialog ref=${dialog} aria-labelledby="help-title" onClose=${() => store.set({ help: false })}>
        <h2 id="help-title">Keys</h2>
        <dl>${KEYS.map(([key, text]) => html`<dt>${key}</dt><dd>${text}</dd>`)}</dl>
        <p>Drag to move, turn the wheel for the next slice, turn it with Ctrl or Shift to zoom, click to move the cross-hair,
            click twice to
            fit. The address of the page is a link to what you see.</p>
        <form method="dialog"><button>Close</button></form>
    </dialog>`;
}

export function App() {
    const { side, sheet } = useStore(store, "side", "image", "sheet"),
        image = shown();
    return html`<div class=${`app${side ? "" : " wide"}`}>
        <${Top} />
        <div class="work">${sheet && image.collection ? html`<${Sheet} />` : html`<${Planes} /><${Along} />`}</div>
        ${side && html`<${Side}>${!isFlat(image) && html`<${VolumeSettings} />`}<//>`}
        <${TablePanel} />
        <${Status} /><${Help} />
    </div>`;
}
