// Builds web/dist from web/src and web/vendor with esbuild: node web/build.mjs [FOLDER_OF_NODE_MODULES] [OUTPUT]
// The result is committed, so that building Fovea needs no npm; sources.sha256 tells a test whether it is up to date.
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const web = dirname(fileURLToPath(import.meta.url));
const modules = resolve(process.argv[2] ?? join(web, "../build/web/node_modules"));
const output = resolve(process.argv[3] ?? join(web, "dist"));
const esbuild = createRequire(join(modules, "/"))("esbuild");

/* The hash of everything the bundle is made of: file names and contents in the order of names. */
function hashOfSources() {
    const hash = createHash("sha256");
    for (const folder of ["src", "vendor"])
        for (const name of readdirSync(join(web, folder)).sort()) {
            hash.update(`${folder}/${name}\n`);
            hash.update(readFileSync(join(web, folder, name)));
        }
    return hash.digest("hex");
}

const banner = { js: `/*! ${readFileSync(join(web, "vendor/NOTICE.txt"), "utf8").trim()} */` };
mkdirSync(output, { recursive: true });
const common = { bundle: true, minify: true, legalComments: "none", target: "es2022", charset: "utf8", logLevel: "warning" };
await esbuild.build({
    ...common,
    entryPoints: [join(web, "src/main.js")],
    format: "esm",
    banner,
    outfile: join(output, "app.js"),
});
await esbuild.build({ ...common, entryPoints: [join(web, "src/app.css")], outfile: join(output, "app.css") });
copyFileSync(join(web, "src/index.html"), join(output, "index.html"));
writeFileSync(join(output, "sources.sha256"), hashOfSources() + "\n");
