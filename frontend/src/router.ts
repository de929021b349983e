/** Addresses of pages, below the base that the server puts into the shell. */
import { signal } from "@preact/signals";

const base = new URL(document.baseURI).pathname;

function current(): URL {
  return new URL(location.href);
}

/** The address of the page that is shown. */
export const address = signal(current());

/** The path of a page without the base and without slashes at its ends: `datasets/com.example.rates`. */
export function pathOf(url: URL): string {
  const path = url.pathname.startsWith(base) ? url.pathname.slice(base.length) : "";
  return path.replace(/^\/+|\/+$/g, "");
}

/** The address of a page, for links. */
export function href(path: string, parameters: Record<string, string | undefined> = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value) query.set(name, value);
  const text = query.toString();
  return base + path + (text ? `?${text}` : "");
}

/** The path of a dataset's page; names may have an account before a slash. */
export function datasetPath(name: string, tab = ""): string {
  const path = `datasets/${name.split("/").map(encodeURIComponent).join("/")}`;
  return tab ? `${path}/-/${tab}` : path;
}

/** Shows another page; `replace` leaves no step in the history of the browser. */
export function navigate(target: string, replace = false): void {
  if (replace) history.replaceState(null, "", target);
  else history.pushState(null, "", target);
  const before = pathOf(address.value);
  address.value = current();
  if (pathOf(address.value) !== before) {
    window.scrollTo(0, 0);
    document.getElementById("content")?.focus({ preventScroll: true });
  }
}

/** Sets parameters of the address that is shown. */
export function setParameters(parameters: Record<string, string | undefined>): void {
  const url = current();
  for (const [name, value] of Object.entries(parameters)) {
    if (value) url.searchParams.set(name, value);
    else url.searchParams.delete(name);
  }
  if (url.href !== location.href) navigate(url.pathname + url.search, true);
}

function followed(event: MouseEvent): void {
  const link = (event.target as Element | null)?.closest("a");
  const isPlain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
  if (!link || !isPlain || event.defaultPrevented || link.target || link.hasAttribute("download")) return;
  const url = new URL(link.href);
  if (url.origin !== location.origin || !url.pathname.startsWith(base) || url.pathname.startsWith(`${base}open`)) return;
  if (url.pathname === location.pathname && url.search === location.search && url.hash) return;
  event.preventDefault();
  navigate(url.pathname + url.search + url.hash);
}

addEventListener("click", followed);
addEventListener("popstate", () => {
  address.value = current();
});
