// The page of fovea watch: what a run is doing, from one object that the server sends a few times a second.
import uPlot from "../vendor/uplot.js";
import { html, useEffect, useRef, useState } from "./ui.js";
import { Graph } from "./graph.js";

const KINDS = ["compute", "read", "write", "wait"];

/* Seconds as a person would say them. */
function duration(seconds) {
    if (seconds === null || seconds === undefined || !isFinite(seconds)) return "–";
    if (seconds < 10) return `${Number(seconds.toPrecision(2))} s`;
    const whole = Math.round(seconds);
    if (whole < 60) return `${whole} s`;
    if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
    return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

function bytes(count) {
    if (count === null || count === undefined) return "–";
    const power = Math.min(4, Math.max(0, Math.floor(Math.log10(Math.max(1, count)) / 3)));
    return `${Number((count / 1000 ** power).toPrecision(3))} ${["B", "KB", "MB", "GB", "TB"][power]}`;
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/* A plot that takes new data without being made again. options: width and height come from the element. */
function Curves({ label, options, data }) {
    const box = useRef(),
        plot = useRef(null);
    useEffect(() => {
        const element = box.current,
            size = () => ({ width: element.clientWidth || 300, height: element.clientHeight || 160 });
        plot.current = new uPlot({ ...options(), ...size(), legend: { show: false }, cursor: { show: false } }, data, element);
        const sizes = new ResizeObserver(() => plot.current?.setSize(size()));
        sizes.observe(element);
        return () => {
            sizes.disconnect();
            plot.current.destroy();
            plot.current = null;
        };
    }, []);
    useEffect(() => plot.current?.setData(data), [data]);
    return html`<div class="curves" role="img" aria-label=${label} ref=${box}></div>`;
}

const axis = (values) => ({
    stroke: colour("--quiet"),
    grid: { stroke: colour("--line"), width: 0.5 },
    ticks: { size: 4 },
    size: 58,
    values,
});

function Memory({ memory }) {
    if (!memory?.times?.length) return null;
    const first = memory.times[0],
        times = memory.times.map((t) => t - first),
        most = Math.max(0, ...memory.residents),
        near = memory.bound && most > memory.bound / 10, // a bound far away would press the curve flat
        bound = times.map(() => (near ? memory.bound : null));
    const line = (name, extra = {}) => ({ stroke: colour(name), width: 2, points: { show: false }, ...extra });
    const options = () => ({
        scales: { x: { time: false }, y: { range: (_, low, high) => [0, Math.max(high, 1) * 1.05] } },
        axes: [{ ...axis((_, ticks) => ticks.map(duration)), size: 30 }, axis((_, ticks) => ticks.map(bytes))],
        series: [{}, line("--accent"), line("--quiet"), line("--bad", { dash: [6, 4] })],
    });
    return html`<section class="card" aria-label="memory"><h2>Memory</h2>
        <p>${memory.resident ? `${bytes(memory.resident)} in use, ` : ""}at most ${bytes(most)}${
            memory.bound ? ` of ${bytes(memory.bound)} allowed` : ""}</p>
        <${Curves} label="memory over time" options=${options}
            data=${[times, memory.residents, memory.planneds, bound]} /></section>`;
}

function Residuals({ list }) {
    return (list ?? []).map(({ op, item, points }) => {
        if (!points?.length) return null;
        const options = () => ({
            scales: { x: { time: false }, y: { distr: points.every(([, r]) => r > 0) ? 3 : 1 } },
            axes: [{ ...axis(), size: 30 }, axis()],
            series: [{}, { stroke: colour("--accent"), width: 2, points: { show: points.length < 60 } }],
        });
        return html`<section class="card" key=${`${op} ${item}`} aria-label=${`residuals of ${op}`}><h2>
            ${op}: residual by iteration</h2>
            <${Curves} label=${`residuals of ${op}`} options=${options}
                data=${[points.map(([n]) => n), points.map(([, r]) => r)]} /></section>`;
    });
}

/* One bar per worker: in each short time, how much of it was computing, reading, writing, waiting. */
function Lane({ lane }) {
    const canvas = useRef();
    useEffect(() => {
        const count = lane.compute?.length ?? 0,
            ctx = canvas.current.getContext("2d"),
            tints = KINDS.map((kind) => colour(`--${kind}`));
        canvas.current.width = Math.max(1, count) * 4;
        canvas.current.height = 24;
        for (let bin = 0; bin < count; bin++) {
            let top = 24;
            KINDS.forEach((kind, k) => {
                const high = (lane[kind]?.[bin] ?? 0) * 24;
                ctx.fillStyle = tints[k];
                ctx.fillRect(bin * 4, top - high, 4, high);
                top -= high;
            });
        }
    }, [lane]);
    const share = (lane.compute ?? []).reduce((a, b) => a + b, 0) / Math.max(1, lane.compute?.length ?? 1);
    return html`<tr><th scope="row">${lane.name}</th><td><canvas ref=${canvas} role="img"
        aria-label=${`${lane.name}: ${Math.round(share * 100)} % of the time computing`}></canvas></td></tr>`;
}

function Timeline({ timeline }) {
    if (!timeline?.lanes?.length) return null;
    return html`<section class="card wide" aria-label="workers"><h2>Workers, ${duration(timeline.to - timeline.from)}</h2>
        <p class="kinds">${KINDS.map((kind) => html`<span><i class=${`dot ${kind}`}></i>${kind}</span>`)}</p>
        <table class="lanes"><tbody>${timeline.lanes.map((lane) => html`<${Lane} lane=${lane} key=${lane.name} />`)}</tbody>
            </table></section>`;
}

function Summary({ state }) {
    const { tasks, items, rates } = state,
        going = rates && state.state === "running",
        fact = (name, value) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`;
    return html`<section class="card wide" aria-label="progress"><h2 class=${`state ${state.state}`}>${state.sentence}</h2>
        <progress aria-label="all tasks" max="1" value=${state.fraction ?? 0}></progress>
        <dl class="facts">
            ${fact("time", duration(state.seconds))}${(state.left ?? null) !== null && fact("left", duration(state.left))}
            ${tasks && fact("tasks", `${tasks.done} of ${tasks.total}`)}
            ${tasks?.found > 0 && fact("found", `${tasks.found} from an earlier run`)}
            ${tasks?.failed > 0 && fact("failed", tasks.failed)}
            ${items?.total > 0 && fact("items", `${items.opened} of ${items.total}`)}
            ${going && fact("tasks/s", Number((rates.tasks ?? 0).toPrecision(3)))}
            ${going && fact("read", `${bytes(rates.read)}/s`)}
            ${going && fact("written", `${bytes(rates.written)}/s`)}
            ${state.engine && fact("engine", `${state.engine}${state.workers ? `, ${state.workers} workers` : ""}`)}
            ${state.device && state.device !== "cpu" && fact("device", state.device)}
            ${state.leases && fact("leases of it", `${state.leases.count}, ${duration(state.leases.leased)} held`)}
            ${state.leases && fact("waited for it", duration(state.leases.queued))}
            ${(state.values ?? []).map(({ name, text }) => fact(name, text))}
        </dl></section>`;
}

function Failures({ list, total }) {
    if (!list?.length) return null;
    return html`<section class="card wide" aria-label="failures"><h2>${total ?? list.length} failed</h2>
        <ul class="failures">${list.map(({ item, reason }) => html`<li><b>${item}</b> ${reason}</li>`)}</ul></section>`;
}

function Processes({ list }) {
    if (!list?.length) return null;
    const jobs = list.some(({ job }) => job);
    return html`<section class="card" aria-label="processes"><h2>Processes</h2><div class="scroll" tabindex="0"
        role="region" aria-label="list of processes">
        <table class="plain"><thead><tr><th scope="col">where</th>${jobs && html`<th scope="col">Slurm job</th>`}
            <th scope="col">state</th><th scope="col">tasks</th><th scope="col">memory</th></tr></thead>
        <tbody>${list.map(
            ({ name, host, pid, job, state, tasks, resident }) => html`<tr key=${name}><td>${host} ${pid}</td>
            ${jobs && html`<td>${job ?? ""}</td>`}<td>${state}</td><td>${tasks}</td><td>${bytes(resident)}</td></tr>`,
        )}</tbody></table></div></section>`;
}

/* What is done, the newest first, with a picture of each image. */
function Outputs({ list, total }) {
    if (!list?.length) return null;
    const hide = ({ target }) => (target.hidden = true);
    return html`<section class="card wide" aria-label="results"><h2>Results${total > list.length ? `, the last of ${total}` : ""}
        </h2><ul class="plain results">${[...list].reverse().map(
            ({ number, path, picture }) => html`<li key=${path}>${picture &&
            html`<img src=${`/api/picture?number=${number}`} alt=${`middle slice of ${path}`} onError=${hide} />`}
            <span>${path}</span></li>`,
        )}</ul></section>`;
}

/* The pipeline's file, or the beginning of a text that was given on the command line. */
function title({ program, text, folder }) {
    return program && program !== "-e" ? program : text ? text.split("\n", 1)[0].slice(0, 120) : folder;
}

export function Watch() {
    const [state, setState] = useState(null),
        [lost, setLost] = useState(false);
    useEffect(() => {
        const events = new EventSource("/api/events");
        events.addEventListener("state", ({ data }) => {
            const next = JSON.parse(data);
            setLost(false);
            setState(next);
            const share = (next.fraction ?? null) === null ? next.state : `${Math.floor(next.fraction * 100)} %`;
            document.title = `${share} – Fovea`;
        });
        events.onerror = () => setLost(true);
        return () => events.close();
    }, []);
    if (!state)
        return html`<p class="nothing" role="status">
            ${lost ? "The program that shows this page does not answer." : "Looking at the run…"}</p>`;
    return html`<div class="watch"><header><h1>Fovea</h1><p class="title">${title(state)}</p>
            <p role="status" class="quiet">${lost ? "no connection: this is the last that was heard" : ""}</p></header>
        <main><${Summary} state=${state} /><${Failures} list=${state.failures} total=${state.failures_total} />
            ${(state.parts ?? []).map((part, k) => html`<${Graph} part=${part} key=${k} />`)}
            <${Outputs} list=${state.outputs} total=${state.outputs_total} /><${Timeline} timeline=${state.timeline} />
            <${Memory} memory=${state.memory} /><${Residuals} list=${state.residuals} /><${Processes} list=${state.processes} />
        </main></div>`;
}
