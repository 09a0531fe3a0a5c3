// What every component uses: preact with templates, and a store that re-renders only who looks at what has changed.
import { h, render } from "../vendor/preact.js";
import { useEffect, useReducer, useRef, useState } from "../vendor/preact-hooks.js";
import htm from "../vendor/htm.js";

export const html = htm.bind(h);
export { render, useEffect, useRef, useState };

/* A plain object of values with listeners. A listener is told which keys have changed. */
export class Store {
    constructor(values) {
        this.values = values;
        this.listeners = new Set();
    }
    get(key) {
        return this.values[key];
    }
    set(patch) {
        const changed = Object.keys(patch).filter((key) => !Object.is(this.values[key], patch[key]));
        if (!changed.length) return;
        this.values = { ...this.values, ...patch };
        for (const listener of [...this.listeners]) listener(changed, this.values);
    }
    /* Changes fields of an object that is one of the values. */
    merge(key, patch) {
        this.set({ [key]: { ...this.values[key], ...patch } });
    }
    listen(listener) {
        this.listeners.add(listener);
        return () => this.listeners.delete(listener);
    }
}

/* The values under these keys; the component is drawn again when one of them changes. */
export function useStore(store, ...keys) {
    const [, again] = useReducer((count) => count + 1, 0);
    const drawn = store.values;
    useEffect(() => {
        if (keys.some((key) => !Object.is(drawn[key], store.values[key]))) again(); // changed before anyone listened
        return store.listen((changed) => changed.some((key) => keys.includes(key)) && again());
    }, [store]);
    return drawn;
}

/* Calls a function at most once per so many milliseconds, last call included. */
export function throttle(milliseconds, action) {
    let timer = 0;
    return () => {
        if (!timer)
            timer = setTimeout(() => {
                timer = 0;
                action();
            }, milliseconds);
    };
}

export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/* A number as a person would write it. */
export function short(value) {
    if (value === null || value === undefined) return "–";
    if (typeof value !== "number") return String(value);
    if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value);
    return String(Number(value.toPrecision(5)));
}
