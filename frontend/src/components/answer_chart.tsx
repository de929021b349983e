/** Answers as charts, by the rules of `odf sql --plot`: the first column goes across, the other numbers go up. */
import { useMemo } from "preact/hooks";
import { compact } from "../format";
import { useLoad } from "../hooks";
import { isNumber, kindOf } from "../rows";
import type { Cell, Field } from "../types";
import { Loading, Problem } from "./basics";
import { Chart } from "./chart";

const MOST_POINTS = 10_000;
const MOST_BARS = 40;
const MOST_SERIES = 6;

const isTime = (field: Field): boolean => ["Timestamp", "Date"].includes(kindOf(field));

/** The columns that go up: all numbers but the first column, if that one goes across. */
function upward(fields: Field[]): number[] {
  const found = fields.map((_, at) => at).filter((at) => isNumber(fields[at] as Field));
  return (fields.length > 1 ? found.filter((at) => at > 0) : found).slice(0, MOST_SERIES);
}

/** Whether an answer has something to draw. */
export function canBeDrawn(fields: Field[], total: number): boolean {
  const [first] = fields;
  if (!first || total < 2 || !upward(fields).length) return false;
  return isTime(first) || isNumber(first) || total <= MOST_BARS;
}

interface Properties {
  fields: Field[];
  total: number;
  identity: string;
  load: (from: number, to: number, signal: AbortSignal) => Promise<Cell[][]>;
}

export function AnswerChart({ fields, total, identity, load }: Properties) {
  const { value, error, reload } = useLoad((signal) => load(0, Math.min(total, MOST_POINTS), signal), [identity]);
  if (error) return <Problem error={error} retry={reload} />;
  if (!value) return <Loading />;
  const [first] = fields;
  if (!first) return null;
  const isLine = isTime(first) || isNumber(first);
  return (
    <>
      <div class="columns">
        {upward(fields).map((at) => {
          const name = fields[at]?.name ?? "";
          return isLine ? <Line key={at} rows={value} at={at} name={name} across={first} isSingle={fields.length === 1} /> : <Bars key={at} rows={value} at={at} name={name} across={first.name} />;
        })}
      </div>
      {total > MOST_POINTS && <p class="dim">The first {compact(MOST_POINTS)} rows.</p>}
    </>
  );
}

function Line({ rows, at, name, across, isSingle }: { rows: Cell[][]; at: number; name: string; across: Field; isSingle: boolean }) {
  const drawn = useMemo(() => {
    const points = rows
      .map((row, index) => [isSingle ? index : isTime(across) ? Date.parse(String(row[0])) / 1000 : Number(row[0]), row[at] === null ? null : Number(row[at])] as [number, number | null])
      .filter(([x, y]) => Number.isFinite(x) && (y === null || Number.isFinite(y)))
      .sort(([one], [other]) => one - other);
    return { times: points.map(([x]) => x), values: points.map(([, y]) => y) };
  }, [rows, at, across, isSingle]);
  const title = isSingle ? `${name} by row` : `${name} by ${across.name}`;
  return <Chart title={title} unit={name} times={drawn.times} values={drawn.values} isTime={isTime(across) && !isSingle} elsewhere="the rows" />;
}

function Bars({ rows, at, name, across }: { rows: Cell[][]; at: number; name: string; across: string }) {
  const numbers = rows.map((row) => Number(row[at] ?? 0));
  const most = Math.max(...numbers.map(Math.abs), Number.MIN_VALUE);
  return (
    <figure class="chart">
      <figcaption>
        {name} by {across}
      </figcaption>
      <table class="bars">
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              <th scope="row">{row[0] === null ? "null" : String(row[0])}</th>
              <td class="number">{row[at] === null ? "null" : compact(numbers[index] ?? 0)}</td>
              <td class="bar-room">
                <span class={`bar-of ${(numbers[index] ?? 0) < 0 ? "below" : ""}`} style={{ width: `${(Math.abs(numbers[index] ?? 0) / most) * 100}%` }} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  );
}
