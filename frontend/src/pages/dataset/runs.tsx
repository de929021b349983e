/** The runs of a dataset, and its schedule: paused, changed and asked for by those who may write. */
import { useState } from "preact/hooks";
import { get, mayWrite, ofDataset } from "../../api";
import { Badge, Loading, Problem, Snippet } from "../../components/basics";
import { useLoad } from "../../hooks";
import { address, setParameters } from "../../router";
import type { Schedule } from "../../types";
import { useChanges } from "../automation/change";
import { type Outcomes, RunList, useAgain } from "../automation/run_list";
import { Times } from "../automation/times";
import type { TabProperties } from "./page";

const EXAMPLE = `schedule:
  pull: {every: 1h}
  verify: {cron: "0 3 * * sun", timezone: Europe/Berlin}
  maxAge: 2d
`;

export function RunsTab({ dataset }: TabProperties) {
  const outcomes = (address.value.searchParams.get("outcome") ?? "") as Outcomes;
  const { value, error, reload } = useLoad((signal) => get<Schedule>(ofDataset(dataset.name, "schedule"), { signal }), [dataset.id]);
  useAgain(reload);
  return (
    <section>
      <h2>Schedule</h2>
      {error && <Problem error={error} retry={reload} />}
      {!value && !error && <Loading />}
      {value && <ScheduleOf name={dataset.name} schedule={value} reload={reload} />}
      <h2>Runs</h2>
      <RunList dataset={dataset.name} outcomes={outcomes} choose={(wanted) => setParameters({ outcome: wanted || undefined })} />
    </section>
  );
}

function ScheduleOf({ name, schedule, reload }: { name: string; schedule: Schedule; reload: () => void }) {
  const [isEditing, edit] = useState(false);
  const { change, runNow, said, error } = useChanges(name, () => {
    edit(false);
    reload();
  });
  return (
    <>
      {schedule.yaml === null ? (
        <p>No schedule: it is only updated by pulls and ingests that are started by hand.</p>
      ) : (
        <>
          <p>
            {schedule.isPaused && <Badge tone="warn">paused</Badge>}{" "}
            {schedule.maxAge && (
              <>
                New rows are promised at least every <strong>{schedule.maxAge}</strong>
                {schedule.isPaused ? ", except while it is paused." : "."} {!schedule.isPaused && schedule.isLate && <Badge tone="bad">late</Badge>}
              </>
            )}
          </p>
          <Times schedule={schedule} />
        </>
      )}
      {mayWrite() && (
        <div class="bar">
          {schedule.yaml !== null && (
            <button
              type="button"
              onClick={() => change(`schedule/paused?value=${!schedule.isPaused}`, { method: "PUT" }, schedule.isPaused ? "The schedule is resumed." : "The schedule is paused.")}
            >
              {schedule.isPaused ? "Resume" : "Pause"}
            </button>
          )}
          {schedule.upcoming.map((one) => (
            <button key={one.job} type="button" onClick={() => void runNow(one.job)}>
              {one.job[0]?.toUpperCase()}
              {one.job.slice(1)} now
            </button>
          ))}
          {!isEditing && (
            <button type="button" onClick={() => edit(true)}>
              {schedule.yaml === null ? "Add a schedule" : "Change the schedule"}
            </button>
          )}
          <span role="status">{said}</span>
        </div>
      )}
      {error && <Problem error={error} />}
      {isEditing ? (
        <Editor
          text={schedule.yaml ?? EXAMPLE}
          isNew={schedule.yaml === null}
          save={(yaml) => change("schedule", { method: "PUT", body: { yaml } }, "The schedule is saved.")}
          remove={() => change("schedule", { method: "DELETE" }, "The schedule is removed.")}
          cancel={() => edit(false)}
        />
      ) : (
        schedule.yaml !== null && (
          <details>
            <summary>The schedule as YAML, for a manifest beside “content”</summary>
            <Snippet label="schedule" text={schedule.yaml} />
          </details>
        )
      )}
    </>
  );
}

function Editor(props: { text: string; isNew: boolean; save: (yaml: string) => void; remove: () => void; cancel: () => void }) {
  const [text, setText] = useState(props.text);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    props.save(text);
  };
  return (
    <form class="stack" onSubmit={submit}>
      <label>
        Schedule, as YAML of a manifest
        <textarea class="code-field" rows={8} spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <p class="dim">
        Jobs: pull, compact, verify, push. Times: <code>every</code>, <code>cron</code> with <code>timezone</code>, or a number of new <code>rows</code>.
      </p>
      <div class="bar">
        <button type="submit" class="primary">
          Save
        </button>
        <button type="button" onClick={props.cancel}>
          Cancel
        </button>
        {!props.isNew && (
          <button type="button" onClick={props.remove}>
            Remove the schedule
          </button>
        )}
      </div>
    </form>
  );
}
