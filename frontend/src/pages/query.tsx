/** SQL over all datasets: an editor, answers with their blocks, and links and proofs that reproduce them. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get, ofDataset, session } from "../api";
import { Choice, Problem } from "../components/basics";
import { type Completions, type Editor, type Found, SqlEditor } from "../components/sql_editor";
import { duration } from "../format";
import { keep, kept, useTitle } from "../hooks";
import { address, setParameters } from "../router";
import { fieldsOf } from "../rows";
import type { Answer, Dataset, Field } from "../types";
import { body, type Dialect, type Result, Shown } from "./query_answer";
import { FirstQueries } from "./query_start";

const PIECE = 200;
const NAMES = 50;

async function count_(query: string, dialect: Dialect, datasets: unknown, signal: AbortSignal): Promise<number | undefined> {
  try {
    const asked = body(`select count(*) as n from (${query}\n) as counted`, dialect, { datasets });
    const answer = await get<Answer>("query", { method: "POST", body: asked, signal });
    return Number(answer.output.data[0]?.[0]);
  } catch {
    return undefined; // EXPLAIN, or a query that cannot stand in another one: then the first page is all
  }
}

export function QueryPage() {
  useTitle("Query");
  const parameters = address.value.searchParams;
  const [text, setText] = useState(parameters.get("query") ?? kept("query", ""));
  const [dialect, setDialect] = useState<Dialect>((parameters.get("dialect") as Dialect | null) ?? "SqlDataFusion");
  const [result, setResult] = useState<Result>();
  const [error, setError] = useState<ApiError>();
  const [started, setStarted] = useState<number>();
  const abort = useRef<AbortController>(undefined);
  const editor = useRef<Editor>(undefined);
  const pinned = pinnedBlocks(parameters.get("datasets"));
  const completions = useCompletions();
  useEffect(() => keep("query", text), [text]);
  useEffect(() => () => abort.current?.abort(), []);

  const run = async (text: string) => {
    const query = text.trim().replace(/;\s*$/, "");
    abort.current?.abort();
    const controller = new AbortController();
    abort.current = controller;
    const { signal } = controller;
    const begun = performance.now();
    setStarted(Date.now());
    setError(undefined);
    setCancelled(undefined);
    if (query !== parameters.get("query")) setParameters({ query: undefined, datasets: undefined }); // the link is of another answer
    try {
      const isSame = pinned && query === parameters.get("query");
      const wanted = { include: ["Input"], schemaFormat: "OdfJson", limit: PIECE, ...(isSame ? { datasets: pinned } : {}) };
      const answer = await get<Answer>("query", { method: "POST", body: body(query, dialect, wanted), signal });
      const seconds = (performance.now() - begun) / 1000;
      const first = answer.output.data.length;
      const shown = { query, dialect, answer, fields: fieldsOf(answer), seconds, isWhole: first < PIECE, total: first };
      setResult(shown);
      if (!shown.isWhole) {
        const total = await count_(query, dialect, answer.input?.datasets, signal);
        if (!signal.aborted && total !== undefined) setResult({ ...shown, total, isWhole: true });
      }
    } catch (problem) {
      if (!signal.aborted) {
        setResult(undefined);
        setError(problem instanceof ApiError ? problem : new ApiError(0, String(problem)));
      }
    } finally {
      if (abort.current === controller) setStarted(undefined);
    }
  };
  useEffect(() => {
    if (parameters.get("query")) void run(text);
  }, []);
  const [cancelled, setCancelled] = useState<number>();
  const cancel = () => {
    abort.current?.abort();
    if (started !== undefined) setCancelled((Date.now() - started) / 1000);
    setStarted(undefined);
  };
  const toCurrent = () => editor.current?.insert("odf_current('NAME')");
  const writeAndRun = (query: string) => {
    editor.current?.replace(query);
    void run(query);
  };
  return (
    <section>
      <div class="bar">
        <h1>Query</h1>
        <Choice
          label="Dialect"
          value={dialect}
          options={[
            ["SqlDataFusion", "DataFusion"],
            ["SqlSpark", "Spark"],
          ]}
          choose={setDialect}
        />
        <AsAt insert={(words) => editor.current?.insert(words)} />
        <button type="button" onClick={toCurrent} title="A dataset by its name alone is its whole changelog, with every version of corrected rows">
          Read current states
        </button>
      </div>
      <SqlEditor initial={text} editor={editor} change={setText} run={(written) => void run(written)} completions={completions} error={error?.message} />
      <div class="bar">
        {started === undefined ? (
          <button type="button" class="primary" onClick={() => void run(text)}>
            Run <kbd>Ctrl-Enter</kbd>
          </button>
        ) : (
          <>
            <button type="button" onClick={cancel}>
              Cancel
            </button>
            <Clock since={started} />
          </>
        )}
        <button type="button" onClick={() => void run(`EXPLAIN ${text}`)}>
          Explain
        </button>
        {cancelled !== undefined && <span role="status">Cancelled after {duration(cancelled)}.</span>}
        {pinned && text.trim() === parameters.get("query") && <span class="dim">The link names the blocks: it always gives the same answer.</span>}
      </div>
      {error && <Problem error={error} />}
      {!result && started === undefined && (
        <FirstQueries run={writeAndRun} name={(dataset) => (text.trim() ? editor.current?.name(dataset) : editor.current?.replace(`select * from odf_current('${dataset}')`))} />
      )}
      {result && <Shown result={result} toCurrent={toCurrent} />}
    </section>
  );
}

function Clock({ since }: { since: number }) {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => set(Date.now()), 100);
    return () => clearInterval(timer);
  }, []);
  return <span role="timer">{duration(Math.max(0, now - since) / 1000)}</span>;
}

/** Words for datasets as they were. */
function AsAt({ insert }: { insert: (words: string) => void }) {
  const [time, setTime] = useState("");
  const whole = time && `${time}:00Z`.replace(/(:\d\d:\d\d):00Z$/, "$1Z");
  return (
    <details class="menu">
      <summary>As it was …</summary>
      <div class="stack">
        <label>
          Time, in UTC
          <input type="datetime-local" value={time} onInput={(event) => setTime(event.currentTarget.value)} />
        </label>
        <button type="button" disabled={!whole} onClick={() => insert(`odf_as_at('NAME', '${whole}')`)}>
          As at: what was known then
        </button>
        <button type="button" disabled={!whole} onClick={() => insert(`odf_as_of('NAME', '${whole}')`)}>
          As of: what was true then
        </button>
      </div>
    </details>
  );
}

function pinnedBlocks(text: string | null): unknown[] | undefined {
  try {
    const found: unknown = text ? JSON.parse(text) : undefined;
    return Array.isArray(found) ? found : undefined;
  } catch {
    return undefined;
  }
}

/** The first names of datasets that contain some letters. */
async function namesWith(part: string): Promise<Found> {
  const query = new URLSearchParams({ search: part.slice(0, 200), limit: String(NAMES) });
  const found = await get<Dataset[]>(`datasets?${query}`);
  return { names: found.map((dataset) => dataset.name), areAll: found.length < NAMES };
}

async function columnsOf(name: string): Promise<string[]> {
  const path = ofDataset(name, "metadata?include=schema&schemaFormat=OdfJson");
  const answer = await get<{ output: { schema?: { fields: Field[] } } }>(path);
  return (answer.output.schema?.fields ?? []).map((field) => field.name);
}

/** Names of datasets and, as they are needed, of their columns. */
function useCompletions(): Completions {
  const columns = useRef(new Map<string, Promise<string[]>>());
  const who = session.value.name;
  useEffect(() => columns.current.clear(), [who]);
  return {
    datasets: namesWith,
    columns: (name) => {
      const known = columns.current.get(name);
      if (known) return known;
      const found = namesWith(name).then(async ({ names }) => (names.includes(name) ? columnsOf(name) : []));
      columns.current.set(name, found);
      found.catch(() => columns.current.delete(name));
      return found;
    },
  };
}
