/** Light or dark: as the system is, or as somebody has chosen on these pages. */
import { signal } from "@preact/signals";
import { keep, kept } from "./hooks";

export type Theme = "auto" | "light" | "dark";

export const theme = signal<Theme>(kept<Theme>("theme", "auto"));

/** Counts changes of colours, for what draws with them itself. */
export const repainted = signal(0);

export function applyTheme(value: Theme): void {
  theme.value = value;
  keep("theme", value);
  if (value === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = value;
  repainted.value += 1;
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  repainted.value += 1;
});

/** A colour of the style sheet, as it is in the theme that is shown. */
export function color(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
