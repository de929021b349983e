/** Scheduled work: whether a scheduler is running, what is late or failing, the last runs, and all schedules. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call, get, session } from "../../api";
import { Ago, Badge, Choice, Empty, ErrorCode, Loading, Problem } from "../../components/basics";
import { Table } from "../../components/table";
import { count, counted } from "../../format";
import { useLoad, useSettled, useTitle } from "../../hooks";
import { address, datasetPath, href, setParameters } from "../../router";
import type { Automation, Schedule } from "../../types";
import { type Outcomes, RunList, useAgain } from "./run_list";
import { why } from "./run_table";
import { Times } from "./times";

export function RunsPage() {
  useTitle("Runs");
  const parameters = address.value.searchParams;
  const view = parameters.get("view") === "schedules" ? "schedules" : "runs";
  const outcomes = (parameters.get("outcome") ?? "") as Outcomes;
  const state = useLoad((signal) => get<Automation>("platform/automation", { signal }), [session.value.name]);
  useAgain(state.reload);
  return (
    <section>
      <div class="bar">
        <h1>Runs</h1>
        <Choice
          label="What to show"
          value={view}
          options={[
            ["runs", "Runs"],
            ["schedules", "Schedules"],
          ]}
          choose={(value) => setParameters({ view: value === "runs" ? undefined : value })}
        />
      </div>
      {state.error && <Problem error={state.error} retry={state.reload} />}
      <Summary state={state.value} />
      {view === "runs" ? (
        <RunList outcomes={outcomes} choose={(value) => setParameters({ outcome: value || undefined })} />
      ) : (
        <Schedules />
      )}
    </section>
  );
}

/** Cards of one height, whatever they say: what stands below them must not move when they load, or load again. */
function Summary({ state }: { state: Automation | undefined }) {
  return (
    <div class="cards steady">
      <Card title="Is the scheduler running?">{state && <Running state={state} />}</Card>
      <Card title="Is something late?">{state && <Late late={state.late} />}</Card>
      <Card title="What keeps failing?">{state && <Failing failing={state.failing} />}</Card>
    </div>
  );
}

function Card({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="card" tabIndex={0} aria-label={title}>
      <h2>{title}</h2>
      {children ?? <span class="skeleton" />}
    </section>
  );
}

function Running({ state: { scheduler, numSchedules, running } }: { state: Automation }) {
  return (
    <>
      <p>
        {scheduler ? (
          <>
            <Badge tone="good">yes</Badge> a scheduler is running
          </>
        ) : (
          <>
            <Badge tone={numSchedules ? "bad" : "plain"}>no</Badge> no scheduler is running, so no schedule is executed
          </>
        )}
      </p>
      <p class="dim">
        {counted(numSchedules, "dataset")} with a schedule, {counted(running.length, "run")} in progress
      </p>
      {!scheduler && (
        <p>
          Start one with <code>odf run</code>, or with <code>odf serve --run</code>.
        </p>
      )}
    </>
  );
}

function Late({ late }: { late: Automation["late"] }) {
  if (!late.length) return <p>All datasets with a maximum age are on time.</p>;
  return (
    <ul class="plain">
      {late.map((one) => (
        <li key={one.dataset}>
          <a href={href(datasetPath(one.dataset))}>{one.dataset}</a> <Badge tone="bad">late</Badge>{" "}
          <span class="dim">
            last rows <Ago time={one.updatedAt} />, promised at least every {one.maxAge}
          </span>
        </li>
      ))}
    </ul>
  );
}

function Failing({ failing }: { failing: Automation["failing"] }) {
  if (!failing.length) return <p>The last run of every job succeeded.</p>;
  return (
    <ul class="plain">
      {failing.map((run) => (
        <li key={run.id}>
          <a href={href(datasetPath(run.dataset, "runs"))}>{run.dataset}</a> <Badge tone="bad">{run.job} failed</Badge>{" "}
          <span class="dim">
            <Ago time={run.at} />
          </span>
          <div class="line">
            {run.errorCode && <ErrorCode code={run.errorCode} />} {why(run)}
          </div>
        </li>
      ))}
    </ul>
  );
}

const PAGE = 100;

async function schedules(search: string, offset: number, signal?: AbortSignal): Promise<{ found: Schedule[]; total: number }> {
  const query = new URLSearchParams({ search, limit: String(PAGE), offset: String(offset) });
  const answer = await call(`platform/schedules?${query}`, { signal });
  return { found: await answer.json(), total: Number(answer.headers.get("X-Total-Count")) };
}

function Schedules() {
  const [typed, type] = useState("");
  const search = useSettled(typed, 150);
  const first = useLoad((signal) => schedules(search, 0, signal), [search, session.value.name]);
  const [more, setMore] = useState<Schedule[]>([]);
  useEffect(() => setMore([]), [first.value]);
  const shown = [...(first.value?.found ?? []), ...more];
  const total = first.value?.total ?? 0;
  return (
    <>
      <label class="search">
        <span class="hidden">Search datasets with a schedule</span>
        <input type="search" placeholder="Search by name" value={typed} onInput={(event) => type(event.currentTarget.value)} />
      </label>
      {first.error && <Problem error={first.error} retry={first.reload} />}
      {!first.value && first.isLoading && <Loading />}
      {first.value && total === 0 && (
        <Empty title={search ? `No match for “${search}”` : "No dataset has a schedule"}>
          <p>
            Give one a schedule on its page, under “Runs”, or with <code>odf schedule set NAME --every 1h</code>.
          </p>
        </Empty>
      )}
      {total > 0 && (
        <>
          <p class="dim" role="status">
            {counted(total, "dataset")} with a schedule
          </p>
          <Table label="Schedules" columns={["Dataset", "Jobs and next times", "Promise"]}>
            {shown.map((one) => (
              <tr key={one.dataset}>
                <th scope="row">
                  <a href={href(datasetPath(one.dataset, "runs"))}>{one.dataset}</a> {one.isPaused && <Badge tone="warn">paused</Badge>}
                </th>
                <td>
                  <Times schedule={one} />
                </td>
                <td>
                  {one.maxAge ? `new rows at least every ${one.maxAge}` : <span class="dim">none</span>} {one.isLate && <Badge tone="bad">late</Badge>}
                </td>
              </tr>
            ))}
          </Table>
          {shown.length < total && (
            <button type="button" onClick={async () => setMore([...more, ...(await schedules(search, shown.length)).found])}>
              Show more ({count(total - shown.length)} left)
            </button>
          )}
        </>
      )}
    </>
  );
}
