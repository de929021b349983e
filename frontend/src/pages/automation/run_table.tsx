/** Runs as a table; a click on one shows all that is known of it. */
import { useState } from "preact/hooks";
import { Ago, Badge, Dialog, ErrorCode, Fact, Facts, Hash, Moment } from "../../components/basics";
import { Table } from "../../components/table";
import { count, duration, RECORDS, size } from "../../format";
import { datasetPath, href } from "../../router";
import type { Run } from "../../types";

const TONES: Record<string, "plain" | "good" | "bad" | "warn" | "info"> = {
  updated: "good",
  "up to date": "plain",
  failed: "bad",
  interrupted: "warn",
  skipped: "warn",
  running: "info",
};

const REASONS: Record<string, string> = {
  schedule: "scheduled",
  rows: "new rows",
  retry: "retry after a failure",
  manual: "started by hand",
  interrupted: "retry after an interruption",
};

const COLUMNS = [
  "Started",
  "Dataset",
  "Job",
  "Outcome",
  { name: "Records", isNumber: true, title: RECORDS },
  { name: "Duration", isNumber: true },
  "What happened",
];

export function Outcome({ run }: { run: Run }) {
  return <Badge tone={TONES[run.outcome] ?? "plain"}>{run.outcome}</Badge>;
}

/** The first line of what went wrong; only those who may read the workspace are told more than the code. */
export function why(run: Run): string {
  return run.errorMessage?.split("\n")[0] ?? (run.errorCode ? `error ${run.errorCode}` : "");
}

export function RunTable({ runs, label, withDataset = true }: { runs: Run[]; label: string; withDataset?: boolean }) {
  const [opened, open] = useState<Run>();
  return (
    <>
      <Table label={label} columns={COLUMNS.filter((one) => withDataset || one !== "Dataset")}>
        {runs.map((run) => (
          <tr key={run.id}>
            <th scope="row">
              <button type="button" class="quiet" onClick={() => open(run)} aria-label={`Details of the ${run.job} of ${run.dataset} at ${run.startedAt}`}>
                <Moment time={run.startedAt} />
              </button>{" "}
              <span class="dim">
                <Ago time={run.startedAt} />
              </span>
            </th>
            {withDataset && (
              <td>
                <a href={href(datasetPath(run.dataset, "runs"))}>{run.dataset}</a>
              </td>
            )}
            <td>
              {run.job}
              {run.attempt > 1 && <span class="dim"> try {run.attempt}</span>}
            </td>
            <td>
              <Outcome run={run} />
            </td>
            <td class="number">{run.rows === null ? "" : count(run.rows)}</td>
            <td class="number">{run.seconds === null ? "" : duration(run.seconds)}</td>
            <td class="cut">
              {run.errorCode && <ErrorCode code={run.errorCode} />} {why(run)}
              {!run.errorCode && run.warnings && <Badge tone="warn">warnings</Badge>}
            </td>
          </tr>
        ))}
      </Table>
      {opened && <Details run={opened} close={() => open(undefined)} />}
    </>
  );
}

function Details({ run, close }: { run: Run; close: () => void }) {
  return (
    <Dialog title={`${run.job} of ${run.dataset}`} close={close}>
      <p>
        <Outcome run={run} /> Reason: {REASONS[run.reason] ?? run.reason}.
      </p>
      {run.errorCode && (
        <div class="problem">
          <p>
            <strong>{run.errorMessage ?? "The reason is only shown to users who may read the whole workspace."}</strong> <ErrorCode code={run.errorCode} />
          </p>
        </div>
      )}
      {run.warnings && <pre tabIndex={0}>{run.warnings}</pre>}
      <Facts>
        <Fact name="Due">
          <Moment time={run.dueAt} />
        </Fact>
        <Fact name="Started">
          <Moment time={run.startedAt} />
        </Fact>
        {run.outcome !== "running" && (
          <Fact name="Ended">
            <Moment time={run.at} />
          </Fact>
        )}
        <Fact name="Attempt">{run.attempt}</Fact>
        {run.rows !== null && <Fact name="New records" title={RECORDS}>{count(run.rows)}</Fact>}
        {run.blocks !== null && <Fact name="Blocks">{count(run.blocks)}</Fact>}
        {run.watermark && (
          <Fact name="Watermark">
            <Moment time={run.watermark} />
          </Fact>
        )}
        {run.peakMemory !== null && <Fact name="Memory">{size(run.peakMemory)}</Fact>}
        {run.engineMemory !== null && <Fact name="Memory of the engine">{size(run.engineMemory)}</Fact>}
        {run.head && (
          <Fact name="Head">
            <Hash text={run.head} />
          </Fact>
        )}
        <Fact name="Run">
          <Hash text={run.id} />
        </Fact>
      </Facts>
      <p>
        <a href={href(datasetPath(run.dataset, "runs"))}>All runs of {run.dataset}</a>
      </p>
    </Dialog>
  );
}
