/** Records per day, and how far the watermark was behind the clock: as charts and as a table. */
import { useMemo } from "preact/hooks";
import { Chart } from "../../components/chart";
import { Table } from "../../components/table";
import { count, duration, moment, RECORDS } from "../../format";
import type { Day } from "../../types";

const DAY = 86_400;
const COLUMNS = [
  "Day",
  { name: "Commits", isNumber: true },
  { name: "Records", isNumber: true, title: RECORDS },
  "Watermark",
  { name: "Watermark lag", isNumber: true },
];
const UNITS: [number, string][] = [
  [3 * DAY, "days"],
  [3 * 3600, "hours"],
  [3 * 60, "minutes"],
];

/** The days in between, too, at least a week, so that a chart shows when nothing came. */
function everyDay(days: Day[]): [number, Day | undefined][] {
  const known = new Map(days.map((day) => [Date.parse(day.day) / 1000, day]));
  const last = Math.max(...known.keys());
  const found: [number, Day | undefined][] = [];
  for (let time = Math.min(...known.keys(), last - 6 * DAY); time <= last; time += DAY) found.push([time, known.get(time)]);
  return found;
}

/** Seconds in the largest unit in which there are a few of them. */
function scaled(seconds: (number | null)[]): { unit: string; values: (number | null)[] } {
  const most = Math.max(...seconds.map((one) => Math.abs(one ?? 0)));
  const [least, unit] = UNITS.find(([length]) => most >= length) ?? [3, "seconds"];
  return { unit, values: seconds.map((one) => (one === null ? null : one / (least / 3))) };
}

export function Activity({ days }: { days: Day[] }) {
  const drawn = useMemo(() => {
    if (!days.length) return undefined;
    const every = everyDay(days);
    return {
      times: every.map(([time]) => time),
      rows: every.map(([, day]) => day?.numRecords || null),
      lag: scaled(every.map(([, day]) => day?.lagSeconds ?? null)),
    };
  }, [days]);
  if (!drawn) return null;
  return (
    <section>
      <h2>Activity</h2>
      <div class="columns">
        <Chart title="Records per day" unit="records" times={drawn.times} values={drawn.rows} asBars elsewhere="the table of days" />
        {drawn.lag.values.filter((one) => one !== null).length > 1 && (
          <Chart title="Watermark lag" unit={drawn.lag.unit} times={drawn.times} values={drawn.lag.values} elsewhere="the table of days" />
        )}
      </div>
      <details>
        <summary>The days as a table</summary>
        <Table label="Days" columns={COLUMNS}>
          {[...days].reverse().map((day) => (
            <tr key={day.day}>
              <th scope="row">{day.day}</th>
              <td class="number">{count(day.numCommits)}</td>
              <td class="number">{count(day.numRecords)}</td>
              <td>{day.watermark ? moment(day.watermark) : ""}</td>
              <td class="number">{day.lagSeconds === null ? "" : duration(day.lagSeconds)}</td>
            </tr>
          ))}
        </Table>
      </details>
    </section>
  );
}
