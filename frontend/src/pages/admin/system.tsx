/** The machine: versions, disk, engine, checks, and settings with where each comes from. */
import { useState } from "preact/hooks";
import { ApiError, get } from "../../api";
import { Badge, Choice, Fact, Facts, Loading, Problem } from "../../components/basics";
import { Confirm } from "../../components/forms";
import { Table } from "../../components/table";
import { count, duration, size } from "../../format";
import { useLoad } from "../../hooks";
import { change, Notice, useNotice } from "./common";
import type { Check, Engine, Setting, System } from "./types";

export function SystemTab() {
  const { value, error, reload } = useLoad((signal) => get<System>("platform/system", { signal }), []);
  const [notice, tell] = useNotice();
  if (error) return <Problem error={error} retry={reload} />;
  if (!value) return <Loading />;
  const { disk } = value;
  const used = disk.total - disk.free;
  return (
    <>
      <Notice text={notice} />
      <h2>Server</h2>
      <Facts>
        <Fact name="odfpy">{value.version}</Fact>
        <Fact name="Specification">{value.specification}</Fact>
        <Fact name="Python">{value.python}</Fact>
        <Fact name="Machine">
          {value.platform}, {value.processors ?? "?"} processors
        </Fact>
        <Fact name="Workspace">
          <code>{value.workspace}</code>
        </Fact>
        <Fact name="Datasets">{count(value.numDatasets)}</Fact>
      </Facts>
      <h2>Disk</h2>
      <Facts>
        <Fact name="Free">
          {size(disk.free)} of {size(disk.total)}{" "}
          <meter min={0} max={disk.total} high={disk.total * 0.9} value={used} aria-label={`${size(used)} of ${size(disk.total)} are used`} />
        </Fact>
        <Fact name="Rows of datasets">{size(disk.data)}</Fact>
        <Fact name="Cache">
          {size(disk.cache)} <span class="dim">(free space with odf gc)</span>
        </Fact>
      </Facts>
      <EngineState engine={value.engine} done={(text) => {
        tell(text);
        reload();
      }} />
      <Checks />
      <Settings />
    </>
  );
}

function EngineState({ engine, done }: { engine: Engine; done: (text: string) => void }) {
  const [isStopping, stop] = useState(false);
  const { status } = engine;
  const number = (name: string): number => Number(status?.[name] ?? 0);
  return (
    <section>
      <h2>Engine</h2>
      <p>
        <Badge tone={engine.running ? "good" : "plain"}>{engine.running ? "running" : "not running"}</Badge>{" "}
        {!engine.running && <span class="dim">It starts when it is needed.</span>}
        {engine.problem}
      </p>
      {status && (
        <Facts>
          <Fact name="Spark">{String(status["engineVersion"])}</Fact>
          <Fact name="State">{status["busy"] ? "running a job" : status["ready"] ? "idle" : "starting"}</Fact>
          <Fact name="Uptime">{duration(number("uptimeMillis") / 1000)}</Fact>
          <Fact name="Completed jobs">{count(number("jobsDone"))}</Fact>
          <Fact name="Memory">{size(number("memoryBytes"))}</Fact>
          <Fact name="Java">{String(status["java"])}</Fact>
          <Fact name="Sandbox">{String(status["sandbox"])}</Fact>
        </Facts>
      )}
      {engine.running && (
        <button type="button" onClick={() => stop(true)}>
          Stop the engine
        </button>
      )}
      {isStopping && (
        <Confirm
          title="Stop the Spark engine?"
          action="Stop the engine"
          close={() => stop(false)}
          run={async () => {
            await change("DELETE", "platform/engine");
            stop(false);
            done("The engine is stopped.");
          }}
        >
          <p>A running job is completed first. The next job starts the engine again, which takes some seconds.</p>
        </Confirm>
      )}
    </section>
  );
}

function Checks() {
  const [state, set] = useState<Check[] | ApiError | "running">();
  const run = async () => {
    set("running");
    try {
      set(await get<Check[]>("platform/diagnosis"));
    } catch (error) {
      set(error as ApiError);
    }
  };
  return (
    <section>
      <h2>Installation</h2>
      <button type="button" onClick={run} disabled={state === "running"}>
        Check the installation
      </button>
      {state === "running" && <Loading what="Checking" />}
      {state instanceof ApiError && <Problem error={state} retry={run} />}
      {Array.isArray(state) && (
        <div role="status">
          <p>{state.every((one) => one.ok) ? "All checks passed." : `${state.filter((one) => !one.ok).length} of ${state.length} checks failed.`}</p>
          <ul class="words">
            {state.map((one) => (
              <li key={one.name}>
                <Badge tone={one.ok ? "good" : "bad"}>{one.ok ? "ok" : "failed"}</Badge> <strong>{one.name}</strong> {one.detail}
                {one.hint && <div>{one.hint}</div>}
              </li>
            ))}
          </ul>
        </div>
      )}
    </section>
  );
}

function Settings() {
  const { value, error, reload } = useLoad((signal) => get<Setting[]>("platform/settings", { signal }), []);
  const [search, type] = useState("");
  const [which, choose] = useState<"all" | "set">("all");
  if (error) return <Problem error={error} retry={reload} />;
  const sought = search.toLowerCase();
  const shown = (value ?? []).filter((one) => (which === "all" || !one.isDefault) && `${one.key} ${one.meaning}`.toLowerCase().includes(sought));
  return (
    <section>
      <h2>Settings</h2>
      <p class="dim">
        Change them on the machine of the server, with <code>odf config set KEY VALUE</code>: some let sources run
        commands or read files, which no token permits.
      </p>
      <div class="bar">
        <label class="search">
          <span class="hidden">Search settings</span>
          <input type="search" placeholder="Search settings" value={search} onInput={(event) => type(event.currentTarget.value)} />
        </label>
        <Choice
          label="Which settings"
          value={which}
          options={[
            ["all", "All"],
            ["set", "Changed only"],
          ]}
          choose={choose}
        />
      </div>
      {!value && <Loading />}
      {value && shown.length === 0 && <p role="status">None.</p>}
      {shown.length > 0 && (
        <Table label="Settings" columns={["Setting", "Value", "Set in", "Description"]} style="settings">
          {shown.map((one) => (
            <tr key={one.key}>
              <th scope="row">
                <code>{one.key}</code>
              </th>
              <td>{one.isSecret && !one.isDefault ? <span class="dim">set, but hidden</span> : one.value === null ? <span class="dim">not set</span> : <code>{String(one.value)}</code>}</td>
              <td>{one.isDefault ? <span class="dim">default</span> : <code>{one.from}</code>}</td>
              <td>
                {one.meaning}. <span class="dim">{one.values}</span>
              </td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}
