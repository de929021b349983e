/** Charts of numbers over time; the same numbers stand in a table beside, for those who do not see charts. */
import { useEffect, useState } from "preact/hooks";
import uPlot from "uplot";
import { compact } from "../format";
import { useSize } from "../hooks";
import { color, repainted } from "../theme";

const DAY = 86_400;

interface Properties {
  title: string;
  /** What the numbers count: `rows`, `days`. */
  unit: string;
  /** Seconds since 1970, ascending. */
  times: number[];
  values: (number | null)[];
  asBars?: boolean;
  /** Whether times are times, and not any numbers. */
  isTime?: boolean;
  /** Where those who do not see the chart find its numbers. */
  elsewhere?: string;
}

/** Times at the axis, no finer than they differ: `19 Nov`, `Nov 2026`, `14:30`; days where a day begins. */
function ticks(splits: number[]): string[] {
  const step = (splits[1] ?? 0) - (splits[0] ?? 0);
  const day: Intl.DateTimeFormatOptions = { day: "numeric", month: "short" };
  const parts: Intl.DateTimeFormatOptions =
    step >= 300 * DAY
      ? { year: "numeric" }
      : step >= 27 * DAY
        ? { month: "short", year: "numeric" }
        : step >= DAY
          ? day
          : { hour: "2-digit", minute: "2-digit" };
  const written = (time: number, form: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat("en-GB", { ...form, timeZone: "UTC" }).format(time * 1000);
  return splits.map((time) => written(time, step < DAY && time % DAY === 0 ? day : parts));
}

export function Chart({ title, unit, times, values, asBars = false, isTime = true, elsewhere = "the table below" }: Properties) {
  const [element, { width }] = useSize<HTMLDivElement>();
  const [at, point] = useState<number | null>();
  const paint = repainted.value;
  useEffect(() => {
    if (!element.current || width < 50) return;
    const axis = { stroke: color("--dim"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false } };
    const bars = asBars && uPlot.paths.bars ? { paths: uPlot.paths.bars({ size: [0.8, 40] }) } : {};
    const air = asBars ? DAY / 2 : 0;
    const plot = new uPlot(
      {
        width,
        height: 170,
        cursor: { y: false, drag: { x: false } },
        legend: { show: false },
        scales: {
          x: { time: isTime, range: (_, low, high) => [low - air, high === low ? high + 1 : high + air] },
          y: { range: (_, low, high) => [Math.min(0, low * 1.05), Math.max(high * 1.05, low < 0 ? 0 : 1e-9)] },
        },
        tzDate: (time) => uPlot.tzDate(new Date(time * 1000), "UTC"),
        axes: [
          { ...axis, size: 28, values: (_, splits) => (isTime ? ticks(splits) : splits.map(compact)), ...(asBars ? { incrs: [1, 2, 7, 14, 30, 91, 365].map((days) => days * DAY) } : {}) },
          { ...axis, size: 56, label: unit, labelSize: 20, labelFont: "12px system-ui", values: (_, splits) => splits.map(compact) },
        ],
        series: [
          {},
          {
            stroke: color("--accent"),
            fill: color(asBars ? "--accent" : "--accent-soft"),
            width: asBars ? 0 : 2,
            points: { show: !asBars && values.length < 60 },
            spanGaps: true,
            ...bars,
          },
        ],
        hooks: { setCursor: [(drawn) => point(drawn.cursor.idx)] },
      } as uPlot.Options,
      [times, values],
      element.current,
    );
    return () => plot.destroy();
  }, [width, times, values, paint]);
  const time = at === null || at === undefined ? undefined : times[at];
  const value = at === null || at === undefined ? undefined : values[at];
  return (
    <figure class="chart">
      <figcaption>
        {title}{" "}
        {time !== undefined && (
          <span class="dim">
            {isTime ? new Date(time * 1000).toISOString().slice(0, asBars ? 10 : 16).replace("T", " ") : compact(time)}:{" "}
            {value === null || value === undefined ? "none" : compact(value)} {unit}
          </span>
        )}
      </figcaption>
      <div ref={element} role="img" aria-label={`${title}, in ${unit}; the numbers are in ${elsewhere}`} />
    </figure>
  );
}
