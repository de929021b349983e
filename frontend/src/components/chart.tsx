/** Charts of numbers over days; the same numbers stand in a table below, for those who do not see charts. */
import { useEffect } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { compact } from "../format";
import { useSize } from "../hooks";

interface Properties {
  title: string;
  /** Seconds since 1970, ascending. */
  times: number[];
  values: (number | null)[];
  asBars?: boolean;
  format?: (value: number) => string;
}

const color = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function Chart({ title, times, values, asBars = false, format = compact }: Properties) {
  const [element, { width }] = useSize<HTMLDivElement>();
  useEffect(() => {
    if (!element.current || width < 50) return;
    const axis = { stroke: color("--dim"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false } };
    const bars = asBars && uPlot.paths.bars ? { paths: uPlot.paths.bars({ size: [0.8, 40] }) } : {};
    const plot = new uPlot(
      {
        width,
        height: 150,
        cursor: { y: false },
        legend: { show: false },
        scales: { x: { time: true }, y: { range: (_, low, high) => [Math.min(0, low), Math.max(high * 1.05, 1)] } },
        tzDate: (time) => uPlot.tzDate(new Date(time * 1000), "UTC"),
        axes: [axis, { ...axis, size: 60, values: (_, ticks) => ticks.map(format) }],
        series: [{}, { stroke: color("--accent"), fill: color("--accent-soft"), width: 2, points: { show: !asBars && values.length < 60 }, spanGaps: true, ...bars }],
      },
      [times, values],
      element.current,
    );
    return () => plot.destroy();
  }, [width, times, values]);
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <div ref={element} role="img" aria-label={`${title}; the numbers are in the table of days`} />
    </figure>
  );
}
