/** Answers as charts, by the rules of `odf sql --plot`: lines over times or numbers, bars for names. */
import { useEffect, useState } from "preact/hooks";
import uPlot from "uplot";
import { compact, count, moment } from "../format";
import { useLoad, useSize } from "../hooks";
import { color, repainted } from "../theme";
import { columnsToPlot, kindOfPlot, MOST_BARS, MOST_POINTS, NothingToPlot, type Plot, plotOf } from "../plot";
import type { Cell, Field } from "../types";
import { Empty, Fact, Facts, Loading, Problem } from "./basics";

const COLOURS = 6;
const PIECE = 10_000; // rows that are asked for at once
const DAY = 86_400;

type Load = (from: number, to: number, signal: AbortSignal) => Promise<Cell[][]>;

interface Properties {
  fields: Field[];
  total: number;
  /** Changes when the rows are those of something else. */
  identity: string;
  load: Load;
}

/** The answer as a chart; of its rows, only what is drawn is kept. */
export function AnswerChart({ fields, total, identity, load }: Properties) {
  const [done, setDone] = useState(0);
  const { value, error, reload } = useLoad<Plot | NothingToPlot>(
    async (signal) => {
      try {
        return plotOf(fields, await drawnRows(fields, Math.min(total, MOST_POINTS), load, setDone, signal));
      } catch (problem) {
        if (problem instanceof NothingToPlot) return problem;
        throw problem;
      }
    },
    [identity, total],
  );
  if (error) return <Problem error={error} retry={reload} />;
  if (!value) return <Loading what={done ? `Loading rows: ${count(done)} of ${count(total)}` : "Loading rows"} />;
  if (value instanceof NothingToPlot) {
    const [what, hint] = value.message.split("\n");
    return <Empty title={what ?? ""}>{hint}</Empty>;
  }
  return (
    <>
      <PlotFigure plot={value} />
      {value.kind === "names" && total > MOST_BARS && <p class="dim">The first {MOST_BARS} of {count(total)} rows.</p>}
      {total > MOST_POINTS && value.kind !== "names" && <p class="dim">The first {count(MOST_POINTS)} of {count(total)} rows.</p>}
    </>
  );
}

/** Of all rows the cells that are drawn, in pieces of the same blocks. */
async function drawnRows(fields: Field[], total: number, load: Load, tell: (done: number) => void, signal: AbortSignal): Promise<Cell[][]> {
  const wanted = columnsToPlot(fields).filter((at) => at >= 0);
  const most = kindOfPlot(fields) === "names" ? Math.min(total, MOST_BARS) : total;
  const rows: Cell[][] = [];
  for (let from = 0; from < most; from += PIECE) {
    const piece = await load(from, Math.min(most, from + PIECE), signal);
    for (const row of piece) rows.push(wanted.map((at) => row[at] ?? null));
    tell(rows.length);
  }
  return rows;
}

/** Labels of an axis of times in UTC: days, or times of day with the day where it begins. */
function timeTicks(_: uPlot, ticks: number[], __: number, ___: number, step: number): string[] {
  return ticks.map((tick, index) => {
    const [day = "", clock = ""] = new Date(tick * 1000).toISOString().split("T");
    if (step >= DAY) return day;
    const time = clock.slice(0, step >= 60 ? 5 : 8);
    return index === 0 || tick % DAY === 0 ? `${time}\n${day}` : time;
  });
}

function PlotFigure({ plot }: { plot: Plot }) {
  if (plot.single.length) {
    return (
      <Facts>
        {plot.single.map(([name, value]) => (
          <Fact key={name} name={name}>
            <strong class="value">{value || "null"}</strong>
          </Fact>
        ))}
      </Facts>
    );
  }
  return plot.kind === "names" ? <Bars plot={plot} /> : <Lines plot={plot} />;
}

function Lines({ plot }: { plot: Plot }) {
  const [element, { width }] = useSize<HTMLDivElement>();
  const paint = repainted.value;
  useEffect(() => {
    if (!element.current || width < 50) return;
    const axis = { stroke: color("--dim"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false } };
    const isTime = plot.kind === "times";
    const drawing = new uPlot(
      {
        width,
        height: 360,
        scales: { x: { time: isTime } },
        tzDate: (time) => uPlot.tzDate(new Date(time * 1000), "UTC"),
        axes: [
          { ...axis, label: plot.across, labelSize: 22, values: isTime ? timeTicks : (_: uPlot, ticks: number[]) => ticks.map(compact) },
          { ...axis, size: 70, values: (_: uPlot, ticks: number[]) => ticks.map(compact) },
        ],
        series: [
          { label: plot.across, value: (_: uPlot, value: number | null) => (value === null ? "" : isTime ? moment(new Date(value * 1000).toISOString()) : count(value)) },
          ...plot.series.map((one, at) => ({
            label: one.name,
            stroke: color(`--series-${at % COLOURS}`),
            width: 2,
            spanGaps: true,
            points: { show: plot.places.length < 100 },
            value: (_: uPlot, value: number | null) => (value === null ? "" : String(value)),
          })),
        ],
      },
      [plot.places, ...plot.series.map((one) => one.values)],
      element.current,
    );
    return () => drawing.destroy();
  }, [width, plot, paint]);
  const names = plot.series.map((one) => one.name).join(", ");
  return (
    <figure class="chart">
      <figcaption>
        {names} over {plot.across}
      </figcaption>
      <div ref={element} role="img" aria-label={`${names} over ${plot.across}, ${count(plot.places.length)} points; the table has the numbers`} />
    </figure>
  );
}

/** Bars to the right, one below the other: names need room. The numbers stand beside them. */
function Bars({ plot }: { plot: Plot }) {
  const largest = Math.max(...plot.series.flatMap((one) => one.values.map((value) => Math.abs(value ?? 0)))) || 1;
  return (
    <figure class="chart">
      <figcaption>
        {plot.series.map((one) => one.name).join(", ")} by {plot.across}
      </figcaption>
      <table class="measures">
        <thead>
          <tr>
            <th scope="col">{plot.across}</th>
            {plot.series.map((one, at) => (
              <th scope="col" key={one.name}>
                <span class={`mark series-${at % COLOURS}`} aria-hidden="true" /> {one.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {plot.names.map((name, row) => (
            <tr key={row}>
              <th scope="row">{name}</th>
              {plot.series.map((one, at) => (
                <td key={one.name}>
                  <Bar value={one.values[row] ?? null} largest={largest} number={at} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  );
}

/** Four digits are enough beside a bar; all of them are in its title. */
const rounded = (value: number): string => (Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(4))));

function Bar({ value, largest, number }: { value: number | null; largest: number; number: number }) {
  if (value === null) return <span class="null">null</span>;
  return (
    <span class="measure">
      <span class={`fill series-${number % COLOURS} ${value < 0 ? "less" : ""}`} style={{ width: `${(Math.abs(value) / largest) * 100}%` }} aria-hidden="true" />
      <span title={String(value)}>{rounded(value)}</span>
    </span>
  );
}
