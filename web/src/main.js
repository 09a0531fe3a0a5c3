// Starts the page: asks what there is to show, takes over what the address says, and draws.
import { html, render } from "./ui.js";
import { getJson } from "./api.js";
import { App } from "./app.js";
import { isEmpty, isFlat } from "./geometry.js";
import { listenToKeys } from "./keys.js";
import { followLink, fromHash } from "./link.js";
import { ALL, compareWith, followFiles, loadStatistics, pictures, showImage, shown, store } from "./state.js";
import { isBusy, views } from "./viewport.js";
import { Watch } from "./watch.js";

async function start() {
    const root = document.getElementById("app");
    root.textContent = "";
    let session;
    try {
        session = await getJson("session");
    } catch (error) {
        return render(html`<p class="nothing" role="alert">${error.message}</p>`, root);
    }
    document.title = `${session.title} – Fovea`;
    if (session.mode === "watch") return render(html`<${Watch} />`, root);
    store.set({ session });
    const broken = session.images.filter(({ error }) => error),
        labels = session.images.find(({ role, error }) => role === "labels" && !error);
    if (broken.length === session.images.length)
        return render(
            html`<p class="nothing" role="alert">
                ${broken[0] ? `${broken[0].name}: ${broken[0].error}` : "There is no image to show."}</p>`,
            root,
        );
    const first = pictures()[0] ?? labels;
    store.merge("labels", { image: labels?.id ?? null, ...(first === labels ? { opacity: 1 } : {}) }); // alone: nothing below
    if (first === labels) store.merge("volume", { labels: true });
    store.set({ image: first.id });
    showImage(first.id);
    if (fitsBeside()) compareWith("side", ALL);
    if (broken.length) store.set({ message: `${broken[0].name}: ${broken[0].error}` });
    if (matchMedia("(max-width: 700px)").matches) store.set({ side: false, layout: "z" }); // a phone has room for one plane
    if (location.hash.length > 1) {
        fromHash(location.hash.slice(1));
        loadStatistics(shown());
    }
    if (session.tables?.length) store.merge("table", { id: session.tables[0].id });
    render(html`<${App} />`, root);
    listenToKeys();
    followLink();
    followFiles();
}

/* A few pictures that were named together are seen together; volumes keep their three planes, and can be compared by hand. */
function fitsBeside() {
    const all = pictures();
    return all.length > 1 && all.length <= 4 && all.every((image) => isFlat(image) && !image.collection && !isEmpty(image));
}

/* For tests and measurements: whether something that is seen is on its way, and the state. */
function busy() {
    const { session, display, image, message, sheet } = store.values,
        one = display[image]?.channels[0];
    return isBusy() || Boolean(session && !message && !sheet && one?.low === null && !isEmpty(shown()));
}
window.fovea = { busy, store, views };
start();
