/** A table of any number of rows, of which only those in sight are asked for and drawn. */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError } from "../api";
import { count, text } from "../format";
import type { Cell } from "../types";
import { Problem } from "./basics";

const ROW = 30;
const CHUNK = 100;
const TALLEST = 10_000_000; // browsers draw elements of some 17 to 33 million pixels, and no taller ones
const CHUNKS_KEPT = 60;

export interface Column {
  name: string;
  isNumber: boolean;
  isSystem?: boolean;
}

interface Properties {
  label: string;
  columns: Column[];
  total: number;
  /** Gives the rows from one up to, not including, another. */
  load: (from: number, to: number, signal: AbortSignal) => Promise<Cell[][]>;
  /** Changes when the rows are those of something else. */
  identity: string;
  rowClass?: (row: Cell[]) => string;
  open?: (row: Cell[], index: number) => void;
  note?: ComponentChildren;
}

/** Rows in chunks; those that were looked at longest ago are forgotten. */
function useChunks({ load, identity, total }: Properties) {
  const chunks = useRef(new Map<number, Cell[][] | "waiting">());
  const abort = useRef(new AbortController());
  const [, redraw] = useState(0);
  const [error, setError] = useState<ApiError>();
  const known = useRef("");
  if (known.current !== identity) {
    known.current = identity;
    abort.current.abort();
    abort.current = new AbortController();
    chunks.current = new Map();
  }
  useEffect(() => () => abort.current.abort(), []);
  const want = (chunk: number) => {
    if (chunks.current.has(chunk) || error) return;
    chunks.current.set(chunk, "waiting");
    const { signal } = abort.current;
    const there = chunks.current;
    load(chunk * CHUNK, Math.min(total, (chunk + 1) * CHUNK), signal)
      .then((rows) => {
        if (signal.aborted) return;
        there.delete(chunk);
        there.set(chunk, rows);
        for (const old of there.keys()) {
          if (there.size <= CHUNKS_KEPT) break;
          there.delete(old);
        }
        redraw((one) => one + 1);
      })
      .catch((problem: unknown) => {
        there.delete(chunk);
        if (!signal.aborted) setError(problem instanceof ApiError ? problem : new ApiError(0, String(problem)));
      });
  };
  const row = (index: number): Cell[] | undefined => {
    const chunk = chunks.current.get(Math.floor(index / CHUNK));
    return Array.isArray(chunk) ? chunk[index % CHUNK] : undefined;
  };
  return { row, want, error, retry: () => setError(undefined) };
}

export function Rows(properties: Properties) {
  const { label, columns, total, identity, rowClass, open, note } = properties;
  const frame = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [seen, setSeen] = useState(600);
  const { row, want, error, retry } = useChunks(properties);
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    element.scrollTop = 0;
    setTop(0);
    const observer = new ResizeObserver(() => setSeen(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, [identity]);

  const height = Math.min(total * ROW, TALLEST);
  const steps = Math.max(1, height - seen);
  const most = Math.max(0, total - Math.floor(seen / ROW) + 2);
  const isScaled = total * ROW > TALLEST;
  const first = Math.max(0, Math.min(most, Math.floor(isScaled ? (top / steps) * most : top / ROW)) - (isScaled ? 0 : 4));
  const last = Math.min(total, first + Math.ceil(seen / ROW) + 9);
  useEffect(() => {
    if (last > first) for (let one = Math.floor(first / CHUNK); one <= Math.floor((last - 1) / CHUNK); one += 1) want(one);
  });

  const widths = useWidths(columns, row, first, last, identity);
  const before = isScaled ? Math.min(top, height - (last - first) * ROW) : first * ROW;
  const after = Math.max(0, height - before - (last - first) * ROW);
  const drawn = [];
  for (let index = first; index < last; index += 1) {
    const cells = row(index);
    drawn.push(
      <tr
        key={index}
        aria-rowindex={index + 2}
        class={cells && rowClass ? rowClass(cells) : ""}
        onClick={cells && open ? () => open(cells, index) : undefined}
      >
        <th scope="row" class="number">
          {open && cells ? (
            <button type="button" class="quiet" aria-label={`Row ${index}`}>
              {index}
            </button>
          ) : (
            index
          )}
        </th>
        {columns.map((column, at) => (
          <td key={column.name} class={column.name === "op" ? "op" : column.isNumber ? "number" : ""}>
            {cells ? shown(cells[at] ?? null) : <span class="skeleton" />}
          </td>
        ))}
      </tr>,
    );
  }
  return (
    <div class="rows">
      {error && <Problem error={error} retry={retry} />}
      <div class="frame" ref={frame} tabIndex={0} role="region" aria-label={label} onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
        <table aria-rowcount={total + 1}>
          <colgroup>
            <col style={{ width: "5.5rem" }} />
            {columns.map((column, at) => (
              <col key={column.name} style={{ width: `${widths[at] ?? 8}rem` }} />
            ))}
          </colgroup>
          <thead>
            <tr aria-rowindex={1}>
              <th scope="col" class="number">
                row
              </th>
              {columns.map((column) => (
                <th key={column.name} scope="col" class={`${column.isNumber && column.name !== "op" ? "number" : ""} ${column.isSystem ? "dim" : ""}`}>
                  {column.name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {before > 0 && <Space pixels={before} />}
            {drawn}
            {after > 0 && <Space pixels={after} />}
          </tbody>
        </table>
      </div>
      <p class="dim" role="status">
        {total === 0 ? "No rows." : `Rows ${count(first)} to ${count(Math.max(first, last - 1))} of ${count(total)}`} {note}
      </p>
    </div>
  );
}

function Space({ pixels }: { pixels: number }) {
  return <tr class="space" aria-hidden="true" style={{ height: `${pixels}px` }} />;
}

function shown(value: Cell) {
  if (value === null) return <span class="null">null</span>;
  const whole = text(value);
  return whole.length > 200 ? `${whole.slice(0, 200)}…` : whole;
}

/** Widths of columns in rem, from the rows that were seen first: they must not jump while somebody scrolls. */
function useWidths(columns: Column[], row: (index: number) => Cell[] | undefined, first: number, last: number, identity: string) {
  const found = useRef<{ identity: string; widths: number[] | undefined }>({ identity: "", widths: undefined });
  if (found.current.identity !== identity) found.current = { identity, widths: undefined };
  const defaults = useMemo(() => columns.map((column) => Math.max(5, column.name.length * 0.6 + 2)), [columns]);
  if (!found.current.widths) {
    const rows: Cell[][] = [];
    for (let index = first; index < last; index += 1) {
      const cells = row(index);
      if (cells) rows.push(cells);
    }
    if (!rows.length) return defaults;
    found.current.widths = defaults.map((least, at) => {
      const longest = Math.max(...rows.map((cells) => text(cells[at] ?? null).length));
      return Math.min(24, Math.max(least, longest * 0.56 + 1.4));
    });
  }
  return found.current.widths;
}
