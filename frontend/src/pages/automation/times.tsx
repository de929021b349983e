/** The jobs of a schedule, each with its times in words and the next one. */
import { moment } from "../../format";
import type { Schedule, Upcoming } from "../../types";

export function Times({ schedule }: { schedule: Schedule }) {
  if (schedule.upcoming.length === 0) return <span class="dim">nothing</span>;
  return (
    <ul class="plain">
      {schedule.upcoming.map((one) => (
        <li key={one.job}>
          <strong>{one.job}</strong> {one.trigger} {schedule.isPaused ? <span class="dim">(paused)</span> : <Next upcoming={one} />}
        </li>
      ))}
    </ul>
  );
}

function Next({ upcoming: { at, local } }: { upcoming: Upcoming }) {
  if (!at) return <span class="dim">when new rows arrive</span>;
  return (
    <span class="dim">
      next{" "}
      <time dateTime={at} title={local ?? at}>
        {Date.parse(at) <= Date.now() ? "now" : moment(at)}
      </time>
    </span>
  );
}
