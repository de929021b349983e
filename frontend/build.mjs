// Builds the pages: `npm ci && npm run build`. The same sources give the same bytes; `tests/serving/pages` compares.
import { build, context } from "esbuild";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";

const target = join(import.meta.dirname, "..", "odfpy", "serving", "pages", "assets");

// What changes rarely is in files of its own, so that a change of a page does not change them.
const entries = { main: "src/main.tsx", icon: "src/icon.svg" };

/** Empties the folder of the built files before, and writes which file an entry has become after. */
const manifest = {
  name: "manifest",
  setup(plugin) {
    plugin.onStart(async () => {
      await mkdir(target, { recursive: true });
      for (const name of await readdir(target)) await rm(join(target, name));
    });
    plugin.onEnd(async (result) => {
      const names = {};
      for (const [path, output] of Object.entries(result.metafile?.outputs ?? {})) {
        const name = basename(path);
        if (output.entryPoint?.endsWith("main.tsx")) names["main.js"] = name;
        if (name.startsWith("main-") && name.endsWith(".css")) names["main.css"] = name;
        if (name.endsWith(".svg")) names["icon.svg"] = name;
      }
      await writeFile(join(target, "manifest.json"), `${JSON.stringify(names, null, 1)}\n`);
    });
  },
};

const options = {
  absWorkingDir: import.meta.dirname,
  entryPoints: Object.values(entries),
  outdir: target,
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  assetNames: "[name]-[hash]",
  loader: { ".svg": "copy" },
  bundle: true,
  splitting: true,
  format: "esm",
  minify: true,
  metafile: true,
  legalComments: "eof",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  plugins: [manifest],
  logLevel: "info",
};

if (process.argv.includes("--watch")) await (await context(options)).watch();
else await build(options);
