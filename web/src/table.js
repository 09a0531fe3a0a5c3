// The table of objects: only the rows that are seen are asked for. A click shows the object, a click on an object its row.
import { html, short, throttle, useEffect, useRef, useState, useStore } from "./ui.js";
import { getJson } from "./api.js";
import { Plots } from "./plots.js";
import { filterRows, say, selectLabel, store, tableOf, whereText } from "./state.js";

const ROW = 26; // pixels
const PAGE = 200; // rows per request
const TALLEST = 2e7; // pixels that a list may be high in every browser; longer lists scroll in larger steps

/* Rows of one order and filter, page by page, as they are wanted. */
class Rows {
    constructor(fields, arrived) {
        Object.assign(this, { fields, arrived, pages: new Map(), total: null });
        this.controller = new AbortController();
    }
    async load(page) {
        if (this.pages.has(page)) return;
        this.pages.set(page, null);
        try {
            const fields = { ...this.fields, offset: page * PAGE, limit: PAGE };
            const { total, rows } = await getJson("rows", fields, this.controller.signal);
            this.pages.set(page, rows);
            this.total = total;
            this.arrived();
        } catch (error) {
            this.pages.delete(page);
            if (error.name !== "AbortError") say(error.message);
        }
    }
    /* The row with this number, or null as long as it has not arrived. */
    at(index) {
        return this.pages.get(Math.floor(index / PAGE))?.[index % PAGE] ?? null;
    }
    show(first, last) {
        for (let page = Math.floor(first / PAGE); page <= Math.floor(last / PAGE); page++) this.load(page);
    }
}

const order = ({ id, sort, descending, where }) => ({
    table: id,
    sort,
    desc: sort && descending ? 1 : null,
    where: where.map(whereText),
});

function span({ low, high }) {
    if (low <= -Number.MAX_VALUE) return `at most ${short(high)}`;
    return high >= Number.MAX_VALUE ? `at least ${short(low)}` : `${short(low)} to ${short(high)}`;
}

function Chips() {
    const { where } = store.get("table");
    if (!where.length) return null;
    return html`<span class="chips">${where.map(
        (one) => html`<button type="button" class="chip" aria-label=${`do not filter by ${one.column}`}
        onClick=${() => filterRows(where.filter((other) => other !== one))}>
        ${one.column} ${span(one)} ✕</button>`,
    )}</span>`;
}

function Head({ table, sort, descending }) {
    const choose = (name) => store.merge("table", { sort: name, descending: sort === name && !descending });
    return html`<thead><tr aria-rowindex="1">${table.columns.map(
        ({ name, type }) => html`<th scope="col" class=${type}
        aria-sort=${sort === name ? (descending ? "descending" : "ascending") : "none"}>
        <button type="button" onClick=${() => choose(name)}>${name}${sort === name ? (descending ? " ▾" : " ▴") : ""}</button>
            </th>`,
    )}</tr></thead>`;
}

function List({ table }) {
    const box = useRef(),
        [, again] = useState(0),
        [top, setTop] = useState(0),
        list = useRef(null),
        cursor = useRef(0);
    const { table: view, selected } = useStore(store, "table", "selected");
    const { id, sort, descending, where } = view,
        place = table.columns.findIndex(({ name }) => name === table.label_column);
    useEffect(() => {
        list.current?.controller.abort();
        list.current = new Rows(order(view), () => again((n) => n + 1));
        box.current.scrollTop = 0;
        setTop(0);
        list.current.load(0);
    }, [id, sort, descending, where]);
    const total = list.current?.total ?? table.rows,
        whole = Math.min(total * ROW, TALLEST),
        seen = (box.current?.clientHeight ?? 200) / ROW;
    const scale = total * ROW > TALLEST ? (total - seen) / (TALLEST - seen * ROW) : 1 / ROW;
    const first = Math.max(0, Math.floor(top * scale) - 5),
        last = Math.min(total - 1, first + Math.ceil(seen) + 12);
    useEffect(() => {
        if (total) list.current?.show(first, Math.max(first, last));
    });
    const goTo = (index) => {
        const near = index >= first + 5 && index < first + seen + 3;
        if (!near) box.current.scrollTop = Math.max(0, (index - seen / 2) / scale);
    };
    useEffect(() => {
        if (!selected || place < 0) return;
        getJson("row", { ...order(store.get("table")), label: selected }).then(
            ({ index }) => {
                if (index < 0) return;
                cursor.current = index;
                goTo(index);
            },
            (error) => say(error.message),
        );
    }, [selected]);
    const choose = (row, index) => {
        cursor.current = index;
        if (row && place >= 0) selectLabel(row[place]);
    };
    const key = (event) => {
        const by = { ArrowDown: 1, ArrowUp: -1, PageDown: Math.floor(seen), PageUp: -Math.floor(seen) }[event.key];
        if (!by) return;
        event.preventDefault();
        const next = Math.min(total - 1, Math.max(0, cursor.current + (selected ? by : 0)));
        goTo(next);
        choose(list.current.at(next), next);
    };
    const onScroll = useRef(throttle(16, () => box.current && setTop(box.current.scrollTop))).current;
    const numbers = Array.from({ length: Math.max(0, last - first + 1) }, (_, k) => first + k);
    const above = Math.min(whole, first / (scale * 1)),
        below = Math.max(0, whole - above - numbers.length * ROW);
    return html`<div class="rows" ref=${box} tabindex="0" role="region" aria-label=${`rows of ${table.name}`}
        onScroll=${onScroll} onKeyDown=${key}>
        <table aria-rowcount=${total + 1}><${Head} table=${table} sort=${sort} descending=${descending} />
        <tbody><tr aria-hidden="true" style=${{ height: `${above}px` }}></tr>
        ${numbers.map((index) => {
            const row = list.current?.at(index),
                here = row && place >= 0 && row[place] === selected;
            return html`<tr key=${index} aria-rowindex=${index + 2} aria-current=${here ? "true" : undefined}
                onClick=${() => choose(row, index)}>
                ${table.columns.map(({ type }, k) => html`<td class=${type}>${row ? short(row[k]) : "…"}</td>`)}</tr>`;
        })}
        <tr aria-hidden="true" style=${{ height: `${below}px` }}></tr></tbody></table>
    </div>`;
}

export function TablePanel() {
    const { table: view, session, lit } = useStore(store, "table", "lit"),
        table = tableOf();
    if (!view.open || !table) return null;
    return html`<section class="table" aria-label="table">
        <div class="row head"><h2>${
            session.tables.length > 1
                ? html`<select aria-label="table" value=${view.id} onChange=${(event) => {
                      filterRows([]);
                      store.merge("table", { id: Number(event.target.value), sort: null, x: null, y: null });
                  }}>${session.tables.map(
                      ({ id, name }) => html`<option value=${id} selected=${id === view.id}>
                      ${name}</option>`,
                  )}</select>`
                : table.name
        }</h2>
            <span class="quiet">${lit ? `${lit.size} of ${table.rows} rows` : `${table.rows} rows`}</span><${Chips} /></div>
        <${List} table=${table} key=${table.id} /><${Plots} table=${table} />
    </section>`;
}
