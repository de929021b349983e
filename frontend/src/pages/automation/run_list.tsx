/** The last runs, of all datasets or of one, with those that are under way first; older ones when somebody wants them. */
import { useEffect, useState } from "preact/hooks";
import { call } from "../../api";
import { Choice, Empty, Loading, Problem } from "../../components/basics";
import { useLoad } from "../../hooks";
import type { Run } from "../../types";
import { RunTable } from "./run_table";

const PAGE = 50;
const AGAIN = 5000; // milliseconds: runs come and go by themselves

export type Outcomes = "" | "failed";

interface Page {
  runs: Run[];
  hasMore: boolean;
}

async function load(dataset: string | undefined, outcomes: Outcomes, until?: string, signal?: AbortSignal): Promise<Page> {
  const query = new URLSearchParams({ limit: String(PAGE + 1) });
  if (until) query.set("until", until);
  if (dataset) query.set("dataset", dataset);
  if (outcomes) query.set("outcome", outcomes);
  const found = (await (await call(`platform/runs?${query}`, { signal })).json()) as Run[];
  return { runs: found.slice(0, PAGE), hasMore: found.length > PAGE };
}

/** Loads again now and then, as long as the page can be seen. */
export function useAgain(reload: () => void): void {
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && reload(), AGAIN);
    return () => clearInterval(timer);
  }, [reload]);
}

export function RunList({ dataset, outcomes, choose }: { dataset?: string; outcomes: Outcomes; choose: (value: Outcomes) => void }) {
  const first = useLoad((signal) => load(dataset, outcomes, undefined, signal), [dataset, outcomes]);
  const [older, setOlder] = useState<Page[]>([]);
  useEffect(() => setOlder([]), [dataset, outcomes]);
  useAgain(first.reload);
  const pages = [...(first.value ? [first.value] : []), ...older];
  // Pages overlap: the next one begins with what ended when the last run of the one before did.
  const runs = [...new Map(pages.flatMap((page) => page.runs).map((run) => [run.id, run])).values()];
  const more = async () => setOlder([...older, await load(dataset, outcomes, runs.at(-1)?.at)]);
  return (
    <>
      <div class="bar">
        <Choice
          label="Which runs"
          value={outcomes}
          options={[
            ["", "All"],
            ["failed", "Failed"],
          ]}
          choose={choose}
        />
      </div>
      {first.error && <Problem error={first.error} retry={first.reload} />}
      {!first.value && first.isLoading && <Loading />}
      {first.value && runs.length === 0 && (
        <Empty title={outcomes ? "No run has failed" : "No runs yet"}>
          {!outcomes && (
            <p>
              Give a dataset a schedule, with <code>odf schedule set NAME --every 1h</code>, and start <code>odf run</code>.
            </p>
          )}
        </Empty>
      )}
      {runs.length > 0 && <RunTable runs={runs} label="Runs" withDataset={!dataset} />}
      {pages.at(-1)?.hasMore && (
        <button type="button" onClick={() => void more()}>
          Show older runs
        </button>
      )}
    </>
  );
}
