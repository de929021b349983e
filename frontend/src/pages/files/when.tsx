/** The days of an archive: a year as bars, a month as a calendar, each a link to its files. */
import { useMemo, useState } from "preact/hooks";
import { compact, count, counted } from "../../format";
import type { TabProperties } from "../dataset/page";
import { addressOf, daysShown, type Search } from "./search";
import type { FileDay } from "./types";

const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const WEEK = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const DAY = 86_400_000;

/** The last day of a month: `2024-02-29`. */
const lastDay = (month: string): string => `${month}-${String(lengthOf(month)).padStart(2, "0")}`;

function lengthOf(month: string): number {
  const [year = 0, number = 0] = month.split("-").map(Number);
  const time = new Date(Date.UTC(2000, number, 0));
  time.setUTCFullYear(year, number, 0); // years before 100 are those of the 20th century for the constructor
  return time.getUTCDate();
}

/** Sums of the days whose texts begin alike, in their order. */
function sums(days: FileDay[], length: number): Map<string, number> {
  const found = new Map<string, number>();
  for (const { day, numFiles } of days) found.set(day.slice(0, length), (found.get(day.slice(0, length)) ?? 0) + numFiles);
  return found;
}

interface Properties extends TabProperties {
  search: Search;
  days: FileDay[];
}

export function When({ dataset, search, days }: Properties) {
  const shown = daysShown(search, days);
  const aim = shown.to || shown.from || (days.at(-1)?.day ?? "");
  const [turned, turn] = useState<{ aim: string; month: string }>();
  const years = useMemo(() => sums(days, 4), [days]);
  const months = useMemo(() => sums(days, 7), [days]);
  if (!days.length) return <section class="when">No days.</section>;
  const month = turned?.aim === aim ? turned.month : aim.slice(0, 7);
  const show = (next: string) => turn({ aim, month: next });
  const to = (change: Partial<Search>) => addressOf(dataset.name, search, change);
  return (
    <section class="when">
      <h2>When</h2>
      <Steps label="year" at={month.slice(0, 4)} all={[...years.keys()]} name={(year) => year} choose={(year) => show(nearest(year, month, months))} />
      <Year year={month.slice(0, 4)} month={month} months={months} show={show} />
      <Steps label="month" at={month} all={[...months.keys()]} name={named} choose={show} />
      <Month month={month} days={days} shown={shown} to={to} />
      <p class="bar">
        <a href={to({ from: `${month}-01`, to: lastDay(month) })}>All of {named(month)}</a>
        <a href={to({ from: `${month.slice(0, 4)}-01-01`, to: `${month.slice(0, 4)}-12-31` })}>All of {month.slice(0, 4)}</a>
        <a href={to({ always: true })}>All times</a>
      </p>
    </section>
  );
}

const named = (month: string): string => `${MONTHS[Number(month.slice(5, 7)) - 1]} ${month.slice(0, 4)}`;

/** The same month of another year, or the nearest of that year that has files. */
function nearest(year: string, month: string, months: Map<string, number>): string {
  const wanted = `${year}${month.slice(4)}`;
  return months.has(wanted) ? wanted : ([...months.keys()].filter((one) => one.startsWith(year)).pop() ?? wanted);
}

/** One of several years or months that have files, with those before and after. */
function Steps({ label, at, all, name, choose }: { label: string; at: string; all: string[]; name: (one: string) => string; choose: (one: string) => void }) {
  const before = all.filter((one) => one < at).pop();
  const after = all.find((one) => one > at);
  const step = (target: string | undefined, sign: string, word: string) => (
    <button type="button" class="quiet" disabled={!target} onClick={() => target && choose(target)} aria-label={`${word} ${label}`}>
      {sign}
    </button>
  );
  return (
    <div class="steps">
      {step(before, "‹", "Earlier")}
      <strong aria-live="polite">{name(at)}</strong>
      {step(after, "›", "Later")}
    </div>
  );
}

/** The months of a year as bars. */
function Year({ year, month, months, show }: { year: string; month: string; months: Map<string, number>; show: (month: string) => void }) {
  const most = Math.max(1, ...MONTHS.map((_, at) => months.get(monthOf(year, at)) ?? 0));
  return (
    <div class="months" role="group" aria-label={`Months of ${year}`}>
      {MONTHS.map((name, at) => {
        const own = monthOf(year, at);
        const number = months.get(own) ?? 0;
        return (
          <button key={name} type="button" aria-pressed={own === month} aria-label={`${name}: ${counted(number, "file")}`} title={`${name}: ${counted(number, "file")}`} onClick={() => show(own)}>
            <svg viewBox="0 0 10 40" preserveAspectRatio="none" aria-hidden="true">
              <rect x="1" width="8" y={40 - (38 * number) / most - (number ? 2 : 0)} height={(38 * number) / most + (number ? 2 : 0)} />
            </svg>
            <span>
              {name[0]}
              <span class="rest">{name.slice(1, 3)}</span>
            </span>
          </button>
        );
      })}
    </div>
  );
}

const monthOf = (year: string, at: number): string => `${year}-${String(at + 1).padStart(2, "0")}`;

/** A month as a calendar; the fuller a day, the darker it is. */
function Month({ month, days, shown, to }: { month: string; days: FileDay[]; shown: { from: string; to: string }; to: (change: Partial<Search>) => string }) {
  const counts = new Map(days.filter(({ day }) => day.startsWith(month)).map(({ day, numFiles }) => [day, numFiles]));
  const most = Math.max(1, ...counts.values());
  const begin = Date.parse(`${month}-01`);
  const before = (new Date(begin).getUTCDay() + 6) % 7;
  const cells: (number | undefined)[] = [...Array(before).fill(undefined), ...Array.from({ length: lengthOf(month) }, (_, at) => begin + at * DAY)];
  while (cells.length % 7) cells.push(undefined);
  const isChosen = (day: string) => (shown.from || shown.to) && day >= shown.from && (!shown.to || day <= shown.to);
  const cell = (time: number | undefined, at: number) => {
    if (time === undefined) return <td key={at} />;
    const day = new Date(time).toISOString().slice(0, 10);
    const number = counts.get(day) ?? 0;
    const date = <span class="date">{Number(day.slice(8))}</span>;
    const level = number ? 1 + Math.floor((3 * number) / most) : 0;
    return (
      <td key={at} class={`level-${level} ${isChosen(day) ? "chosen" : ""}`}>
        {number ? (
          <a href={to({ from: day, to: day })} aria-label={`${day}: ${counted(number, "file")}`} aria-current={isChosen(day) ? "date" : undefined} title={counted(number, "file")}>
            {date}
            <span class="count">{compact(number)}</span>
          </a>
        ) : (
          date
        )}
      </td>
    );
  };
  return (
    <table class="calendar">
      <caption class="hidden">
        Files that begin on the days of {named(month)}: {count([...counts.values()].reduce((sum, one) => sum + one, 0))}
      </caption>
      <thead>
        <tr>
          {WEEK.map((day) => (
            <th key={day} scope="col" abbr={day}>
              {day.slice(0, 2)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {Array.from({ length: cells.length / 7 }, (_, week) => (
          <tr key={week}>{cells.slice(7 * week, 7 * week + 7).map(cell)}</tr>
        ))}
      </tbody>
    </table>
  );
}
