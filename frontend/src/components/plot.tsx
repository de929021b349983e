/** A chart of an answer: lines over times or numbers, bars for names. */
import { useEffect } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { compact, count, moment } from "../format";
import { useSize } from "../hooks";
import type { Plot } from "../plot";
import { Fact, Facts } from "./basics";
import { color, timeTicks } from "./chart";

const COLOURS = 6;

export function PlotFigure({ plot }: { plot: Plot }) {
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
  }, [width, plot]);
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
      <table class="bars">
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

function Bar({ value, largest, number }: { value: number | null; largest: number; number: number }) {
  if (value === null) return <span class="null">null</span>;
  return (
    <span class="measure">
      <span class={`fill series-${number % COLOURS} ${value < 0 ? "less" : ""}`} style={{ width: `${(Math.abs(value) / largest) * 75}%` }} aria-hidden="true" />
      <span>{Math.abs(value) < 1e6 ? String(value) : count(value)}</span>
    </span>
  );
}
