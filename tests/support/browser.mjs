// Drives Chromium for browser.py: reads {"do": NAME, ...} a line from standard input, answers {"result": ...} or {"error": ...}.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const require = createRequire(process.argv[2] + "/");
const { chromium } = require("playwright-core");
const SOFTWARE = ["--enable-unsafe-swiftshader"]; // WebGL2 without a graphics card
const PATIENCE = 120000; // ms

let browser = null,
    context = null,
    page = null;
const complaints = [];

const actions = {
    async open({ url, size = [1280, 720], scheme = "dark", webgl = true, touch = false }) {
        await browser?.close();
        const flags = webgl ? SOFTWARE : ["--disable-gpu", "--disable-3d-apis"];
        browser = await chromium.launch({ executablePath: process.argv[3], args: ["--no-sandbox", ...flags] });
        context = await browser.newContext({
            viewport: { width: size[0], height: size[1] },
            colorScheme: scheme,
            hasTouch: touch,
        });
        page = await context.newPage();
        page.setDefaultTimeout(PATIENCE);
        complaints.length = 0;
        page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
        page.on("pageerror", (error) => complaints.push(String(error.stack ?? error)));
        await page.goto(url);
    },
    goto: ({ url }) => page.goto(url),
    evaluate: ({ text }) => page.evaluate(text),
    async until({ text }) {
        const end = Date.now() + PATIENCE;
        while (!(await page.evaluate(text))) {
            if (Date.now() > end) throw new Error("waited in vain");
            await new Promise((done) => setTimeout(done, 30));
        }
    },
    click: ({ selector, at, count = 1 }) =>
        page.click(selector, { position: at ? { x: at[0], y: at[1] } : undefined, clickCount: count }),
    select: ({ selector, value }) => page.selectOption(selector, value).then(() => null),
    fill: ({ selector, value }) => page.fill(selector, value),
    key: ({ key }) => page.keyboard.press(key),
    hover: ({ selector, at }) => page.hover(selector, { position: at ? { x: at[0], y: at[1] } : undefined }),
    async wheel({ selector, at, by, key }) {
        await page.hover(selector, { position: at ? { x: at[0], y: at[1] } : undefined });
        if (key) await page.keyboard.down(key);
        await page.mouse.wheel(0, by);
        if (key) await page.keyboard.up(key);
    },
    async drag({ selector, from, to, steps = 8 }) {
        const box = await page.locator(selector).first().boundingBox(),
            at = ([x, y]) => [box.x + x * box.width, box.y + y * box.height];
        await page.mouse.move(...at(from));
        await page.mouse.down();
        await page.mouse.move(...at(to), { steps });
        await page.mouse.up();
    },
    shot: ({ path }) => page.screenshot({ path }).then(() => null),
    async axe() {
        // By its own protocol rather than as a script of the page, whose content policy forbids that.
        await page.evaluate(readFileSync(require.resolve("axe-core/axe.min.js"), "utf8") + ";null");
        const { violations } = await page.evaluate("axe.run()");
        return violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.map(({ html }) => html) }));
    },
    complaints: () => complaints,
};

for await (const line of createInterface({ input: process.stdin })) {
    const { do: name, ...rest } = JSON.parse(line);
    try {
        console.log(JSON.stringify({ result: (await actions[name](rest)) ?? null }));
    } catch (error) {
        console.log(JSON.stringify({ error: String(error.message ?? error) }));
    }
}
await browser?.close();
