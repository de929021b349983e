// Builds the pages: `npm ci && npm run build`. The same sources give the same bytes. The manifest has hashes of the
// sources and of what came of them, so that a test can tell without Node that neither has changed by itself.
import { createHash } from "node:crypto";
import { build, context } from "esbuild";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";

const target = join(import.meta.dirname, "..", "odfpy", "serving", "pages", "assets");

// What changes rarely is in files of its own, so that a change of a page does not change them.
const entries = { main: "src/main.tsx", icon: "src/icon.svg" };

const sha256 = (data) => createHash("sha256").update(data).digest("hex");

/** The hash of all sources: lines of `sha256sum`, in the order of paths. */
async function sourcesHash() {
  const folder = import.meta.dirname;
  const below = await readdir(join(folder, "src"), { recursive: true, withFileTypes: true });
  const paths = below.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name).slice(folder.length + 1));
  const lines = [];
  for (const path of [...paths, "build.mjs", "package-lock.json", "tsconfig.json"].sort()) {
    lines.push(`${sha256(await readFile(join(folder, path)))}  ${path}\n`);
  }
  return sha256(lines.join(""));
}

/** Empties the folder of the built files before, and writes which file an entry has become after. */
const manifest = {
  name: "manifest",
  setup(plugin) {
    plugin.onStart(async () => {
      await mkdir(target, { recursive: true });
      for (const name of await readdir(target)) await rm(join(target, name));
    });
    plugin.onEnd(async (result) => {
      const names = { preload: [] };
      for (const [path, output] of Object.entries(result.metafile?.outputs ?? {})) {
        const name = basename(path);
        if (output.entryPoint?.endsWith("main.tsx")) {
          names["main.js"] = name;
          names.preload = output.imports.filter((one) => one.kind === "import-statement").map((one) => basename(one.path));
        }
        if (name.startsWith("main-") && name.endsWith(".css")) names["main.css"] = name;
        if (name.endsWith(".svg")) names["icon.svg"] = name;
      }
      const built = {};
      for (const name of (await readdir(target)).sort()) built[name] = sha256(await readFile(join(target, name)));
      const text = JSON.stringify({ ...names, sources: await sourcesHash(), built }, null, 1);
      await writeFile(join(target, "manifest.json"), `${text}\n`);
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
