/** A table of any number of rows, of which only those in sight are asked for and drawn. */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError } from "../api";
import { brief, count, text } from "../format";
import { useKept } from "../hooks";
import type { Cell } from "../types";
import { Problem } from "./basics";

const ROW = 30;
const CHUNK = 100;
const TALLEST = 10_000_000; // browsers draw elements of some 17 to 33 million pixels, and no taller ones
const CHUNKS_KEPT = 60;
const SETTLED = 80; // milliseconds

export interface Column {
  name: string;
  isNumber: boolean;
  /** Whether it is of the changelog, and not of the data: people may hide it. */
  isSystem?: boolean;
  /** Whether its values are signs of operations. */
  isOperation?: boolean;
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
  /** The sentence that says what a click on a row does. */
  opens?: string;
  /** The row that is shown first. */
  start?: number;
  /** What its rows are called. */
  noun?: string;
  note?: ComponentChildren;
}

/** Rows in chunks; those that were looked at longest ago are forgotten, and those scrolled past are not waited for. */
function useChunks({ load, identity, total }: Properties) {
  const chunks = useRef(new Map<number, Cell[][]>());
  const waiting = useRef(new Map<number, AbortController>());
  const [, redraw] = useState(0);
  const [error, setError] = useState<ApiError>();
  const known = useRef("");
  if (known.current !== identity) {
    known.current = identity;
    release(waiting.current);
    chunks.current = new Map();
  }
  useEffect(() => () => release(waiting.current), []);
  const ask = (chunk: number) => {
    const abort = new AbortController();
    const there = chunks.current;
    waiting.current.set(chunk, abort);
    load(chunk * CHUNK, Math.min(total, (chunk + 1) * CHUNK), abort.signal)
      .then((rows) => {
        if (abort.signal.aborted) return;
        there.set(chunk, rows);
        for (const old of there.keys()) {
          if (there.size <= CHUNKS_KEPT) break;
          there.delete(old);
        }
        redraw((one) => one + 1);
      })
      .catch((problem: unknown) => {
        if (!abort.signal.aborted) setError(problem instanceof ApiError ? problem : new ApiError(0, String(problem)));
      })
      .finally(() => {
        if (waiting.current.get(chunk) === abort) waiting.current.delete(chunk);
      });
  };
  /** Asks for these chunks, and for no others any more. */
  const want = (wanted: number[]) => {
    if (error) return;
    release(waiting.current, wanted);
    for (const chunk of wanted) {
      const rows = chunks.current.get(chunk);
      if (rows) {
        chunks.current.delete(chunk); // now the one that was looked at last
        chunks.current.set(chunk, rows);
      } else if (!waiting.current.has(chunk)) ask(chunk);
    }
  };
  const row = (index: number): Cell[] | undefined => chunks.current.get(Math.floor(index / CHUNK))?.[index % CHUNK];
  return { row, want, error, retry: () => setError(undefined) };
}

function release(waiting: Map<number, AbortController>, but: number[] = []): void {
  for (const [chunk, abort] of waiting) {
    if (but.includes(chunk)) continue;
    abort.abort();
    waiting.delete(chunk);
  }
}

export function Rows(properties: Properties) {
  const { label, columns, total, identity, rowClass, open, opens, start = 0, noun = "rows", note } = properties;
  const [showsSystem, showSystem] = useKept("systemColumns", isWide());
  const isOptional = columns.some((column) => column.isSystem) && columns.some((column) => !column.isSystem);
  const shownAt = [...columns.keys()].filter((at) => showsSystem || !isOptional || !columns[at]?.isSystem);
  const frame = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [seen, setSeen] = useState(600);
  const { row, want, error, retry } = useChunks(properties);
  const height = Math.min(total * ROW, TALLEST);
  const steps = Math.max(1, height - seen);
  const most = Math.max(0, total - Math.floor(seen / ROW) + 2);
  const isScaled = total * ROW > TALLEST;
  const first = Math.max(0, Math.min(most, Math.floor(isScaled ? (top / steps) * most : top / ROW)) - (isScaled ? 0 : 4));
  const last = Math.min(total, first + Math.ceil(seen / ROW) + 9);
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const from = isScaled ? (start / Math.max(1, total)) * (height - element.clientHeight) : start * ROW;
    element.scrollTop = from;
    setTop(element.scrollTop);
    const observer = new ResizeObserver(() => setSeen(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, [identity]);
  const drawnBefore = useRef(0);
  useEffect(() => {
    if (last <= first) return;
    const wanted: number[] = [];
    for (let one = Math.floor(first / CHUNK); one <= Math.floor((last - 1) / CHUNK); one += 1) wanted.push(one);
    // Whoever drags the bar past thousands of rows wants those where it stops.
    const isFar = Math.abs(first - drawnBefore.current) > CHUNK;
    drawnBefore.current = first;
    if (!isFar) return want(wanted);
    const timer = setTimeout(() => want(wanted), SETTLED);
    return () => clearTimeout(timer);
  });

  const widths = useWidths(columns, row, first, last, identity);
  const before = isScaled ? Math.min(top, height - (last - first) * ROW) : first * ROW;
  const after = Math.max(0, height - before - (last - first) * ROW);
  const shownFirst = isScaled ? first : Math.min(first + 4, Math.floor(top / ROW));
  const end = isScaled ? first + Math.floor(seen / ROW) - 1 : Math.floor((top + seen - ROW + 1) / ROW); // below the header
  const shownLast = Math.min(total, end) - 1;
  const drawn = [];
  for (let index = first; index < last; index += 1) {
    const cells = row(index);
    drawn.push(
      <tr
        key={index}
        aria-rowindex={index + 2}
        class={`${cells && rowClass ? rowClass(cells) : ""} ${cells && open ? "opens" : ""}`}
        onClick={cells && open ? () => isSelecting() || open(cells, index) : undefined}
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
        {shownAt.map((at) => (
          <td key={at} class={classOf(columns[at])}>
            {cells ? <Shown value={cells[at] ?? null} /> : <span class="skeleton" />}
          </td>
        ))}
      </tr>,
    );
  }
  return (
    <div class="rows">
      {error && <Problem error={error} retry={retry} />}
      {(opens || isOptional) && (
        <p class="bar dim">
          {opens && total > 0 && <span>{opens}</span>}
          {isOptional && (
            <label class="toggle">
              <input type="checkbox" checked={showsSystem} onChange={(event) => showSystem(event.currentTarget.checked)} /> System columns
            </label>
          )}
        </p>
      )}
      <div class="frame" ref={frame} tabIndex={0} role="region" aria-label={label} onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
        <table aria-rowcount={total + 1}>
          <colgroup>
            <col style={{ width: `${Math.max(3.5, String(total).length * 0.6 + 2)}rem` }} />
            {shownAt.map((at) => (
              <col key={at} style={{ width: `${widths[at] ?? 8}rem` }} />
            ))}
          </colgroup>
          <thead>
            <tr aria-rowindex={1}>
              <th scope="col" class="number">
                row
              </th>
              {shownAt.map((at) => (
                <th key={at} scope="col" class={`${classOf(columns[at])} ${columns[at]?.isSystem ? "dim" : ""}`} title={columns[at]?.name}>
                  {columns[at]?.name}
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
        {total === 0 ? `No ${noun}.` : `${noun.charAt(0).toUpperCase()}${noun.slice(1)} ${count(shownFirst)} to ${count(Math.max(shownFirst, shownLast))} of ${count(total)}`} {note}
      </p>
    </div>
  );
}

function Space({ pixels }: { pixels: number }) {
  return <tr class="space" aria-hidden="true" style={{ height: `${pixels}px` }} />;
}

const classOf = (column: Column | undefined): string => (column?.isOperation ? "op" : column?.isNumber ? "number" : "");

/** Whether columns of the data have room beside those of the changelog. */
const isWide = (): boolean => matchMedia("(min-width: 40rem)").matches;

/** Whether the click ends the selection of some text, which somebody wants to copy. */
const isSelecting = (): boolean => getSelection()?.isCollapsed === false;

function Shown({ value }: { value: Cell }) {
  if (value === null) return <span class="null">null</span>;
  const whole = text(value);
  if (whole.length > 200) return <>{whole.slice(0, 200)}…</>;
  const shown = brief(whole);
  return shown === whole ? <>{whole}</> : <span title={whole}>{shown}</span>;
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
      const longest = Math.max(...rows.map((cells) => brief(cells[at] ?? null).length));
      return Math.min(24, Math.max(least, longest * 0.56 + 1.4));
    });
  }
  return found.current.widths;
}
