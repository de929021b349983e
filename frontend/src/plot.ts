/**
 * What a chart of an answer shows, by the rules of `odf sql --plot`.
 *
 * The first column is across: times and numbers make lines, names make bars. Every other column of numbers is drawn; a
 * single column is drawn over the number of the row. A single row is not a chart, and is shown in numbers.
 */
import { text } from "./format";
import { isNumber, kindOf } from "./rows";
import type { Cell, Field } from "./types";

export const MOST_POINTS = 100_000; // rows that are drawn; nobody sees more
export const MOST_BARS = 40;
const LARGEST = 1e300; // numbers beyond it are left out: the difference of two must be one, too
const NESTED = new Set(["List", "Map", "Struct"]);

export interface Series {
  name: string;
  values: (number | null)[];
}

export interface Plot {
  across: string;
  kind: "times" | "numbers" | "names";
  /** Where across, in growing order; of names, their numbers. Times are in seconds since 1970. */
  places: number[];
  names: string[];
  series: Series[];
  /** Of a single row, what is in its columns, by their names; it is shown instead of a drawing. */
  single: [string, string][];
}

/** Why an answer is not a chart, and what to try. */
export class NothingToPlot extends Error {}

const isTime = (field: Field): boolean => ["Timestamp", "Date"].includes(kindOf(field));

/** The columns that a chart needs, by their places, with the one across first; -1 stands for the number of the row. */
export function columnsToPlot(fields: Field[]): number[] {
  const first = fields[0];
  const across = fields.length > 1 && first && !NESTED.has(kindOf(first)) ? 0 : -1;
  const numbers = fields.flatMap((field, at) => (at > across && isNumber(field) ? [at] : []));
  if (!numbers.length) {
    const besides = across === 0 ? " besides the first" : "";
    throw new NothingToPlot(`The answer has no numeric column to plot${besides}\nSelect the horizontal axis first, then numbers.`);
  }
  return [across, ...numbers];
}

/** What goes across in the chart of an answer. */
export function kindOfPlot(fields: Field[]): Plot["kind"] {
  const first = columnsToPlot(fields)[0] === 0 ? fields[0] : undefined;
  if (!first || isNumber(first)) return "numbers";
  return isTime(first) ? "times" : "names";
}

/** A number of a cell as it is drawn; null where it is none, or not finite. */
export function drawn(value: Cell | undefined): number | null {
  if (value === null || value === undefined || value === "" || typeof value === "boolean") return null;
  const found = Number(value);
  return Math.abs(found) <= LARGEST ? found : null; // also false for NaN
}

function seconds(value: Cell | undefined): number | null {
  if (typeof value !== "string") return null;
  const isWithZone = value.length <= 10 || /(Z|[+-]\d\d:?\d\d)$/.test(value);
  const found = Date.parse(isWithZone ? value : `${value}Z`) / 1000;
  return Number.isFinite(found) ? found : null;
}

/**
 * The chart of an answer.
 *
 * `rows` has the columns of `columnsToPlot`, without that of the number of the row.
 */
export function plotOf(fields: Field[], rows: Iterable<Cell[]>): Plot {
  const [across = -1, ...numbers] = columnsToPlot(fields);
  const first = across === 0 ? fields[0] : undefined;
  const kind = kindOfPlot(fields);
  const points: { place: number; name: string; values: (number | null)[]; cells: Cell[] }[] = [];
  let number = 0;
  for (const row of rows) {
    number += 1;
    if (kind === "names" && number > MOST_BARS) break;
    const cells = first ? row.slice(1) : row;
    const place = !first ? number : kind === "times" ? seconds(row[0]) : kind === "names" ? number - 1 : drawn(row[0]);
    if (place === null) continue;
    const name = kind === "names" ? text(row[0]).slice(0, 200) || "(none)" : "";
    points.push({ place, name, values: cells.map(drawn), cells: first ? row : cells });
  }
  if (!number) throw new NothingToPlot("The answer has no rows to plot");
  const seen = points.filter((point) => point.values.some((value) => value !== null));
  if (!seen.length) throw new NothingToPlot("The answer has no numbers to plot: they are null, or not finite");
  const shown = (kind === "names" ? points : seen).sort((one, other) => one.place - other.place);
  const used = [...(first ? [0] : []), ...numbers].map((at) => fields[at]?.name ?? "");
  const only = seen.length === 1 && shown.length === 1 ? seen[0] : undefined;
  return {
    across: first?.name ?? "row",
    kind,
    places: shown.map((point) => point.place),
    names: kind === "names" ? shown.map((point) => point.name) : [],
    series: numbers.map((at, index) => ({ name: fields[at]?.name ?? "", values: shown.map((point) => point.values[index] ?? null) })),
    single: only ? used.map((name, at) => [name, text(only.cells[at]).slice(0, 1000)]) : [],
  };
}
