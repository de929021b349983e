/** SQL over all datasets: an editor, answers with their blocks, and links and proofs that reproduce them. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get, ofDataset, session } from "../api";
import { AnswerChart } from "../components/answer_chart";
import { Choice, Copy, Fact, Facts, Problem } from "../components/basics";
import { Rows } from "../components/rows";
import { SqlEditor, type Completions } from "../components/sql_editor";
import { count, duration } from "../format";
import { keep, kept, useTitle } from "../hooks";
import { address, setParameters } from "../router";
import { columnsOf, fieldsOf, inHalves } from "../rows";
import type { Answer, Cell, Dataset, Field } from "../types";

type Dialect = "SqlDataFusion" | "SqlSpark";
const PIECE = 200;

interface Result {
  query: string;
  dialect: Dialect;
  answer: Answer;
  fields: Field[];
  seconds: number;
  /** All rows that there are, or as many as were found so far. */
  isWhole: boolean;
  total: number;
}

function body(query: string, dialect: Dialect, more: object) {
  return { query, queryDialect: dialect, dataFormat: "JsonAoA", ...more };
}

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
  const [text, setText] = useState(parameters.get("query") ?? kept("query", "select 1 as one"));
  const [dialect, setDialect] = useState<Dialect>((parameters.get("dialect") as Dialect | null) ?? "SqlDataFusion");
  const [result, setResult] = useState<Result>();
  const [error, setError] = useState<ApiError>();
  const [started, setStarted] = useState<number>();
  const abort = useRef<AbortController>(undefined);
  const pinned = pinnedBlocks(parameters.get("datasets"));
  const completions = useCompletions();
  useEffect(() => keep("query", text), [text]);
  useEffect(() => () => abort.current?.abort(), []);

  const run = async (query = text.trim().replace(/;\s*$/, "")) => {
    abort.current?.abort();
    const controller = new AbortController();
    abort.current = controller;
    const { signal } = controller;
    const begun = performance.now();
    setStarted(Date.now());
    setError(undefined);
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
    if (parameters.get("query")) void run();
  }, []);
  const cancel = () => {
    abort.current?.abort();
    setStarted(undefined);
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
        <AsAt insert={(words) => setText(`${text}${text.endsWith(" ") || !text ? "" : " "}${words}`)} />
      </div>
      <SqlEditor value={text} change={setText} run={() => void run()} completions={completions} error={error?.message} />
      <div class="bar">
        {started === undefined ? (
          <button type="button" class="primary" onClick={() => void run()}>
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
        <button type="button" onClick={() => void run(`EXPLAIN ${text.trim().replace(/;\s*$/, "")}`)}>
          Explain
        </button>
        {pinned && <span class="dim">The link names the blocks: this answer is the same whenever it is opened.</span>}
      </div>
      {error && <Problem error={error} />}
      {result && <Shown result={result} />}
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
          As at: known then
        </button>
        <button type="button" disabled={!whole} onClick={() => insert(`odf_as_of('NAME', '${whole}')`)}>
          As of: held then
        </button>
        <button type="button" onClick={() => insert("odf_current('NAME')")}>
          Current state
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

type View = "table" | "chart";

function Shown({ result }: { result: Result }) {
  const { answer, fields, query, dialect, seconds, total } = result;
  const view: View = address.value.searchParams.get("view") === "chart" ? "chart" : "table";
  const datasets = answer.input?.datasets ?? [];
  const identity = JSON.stringify([query, dialect, datasets, fields.length]);
  const load = (from: number, to: number, signal: AbortSignal) =>
    inHalves(from, to, async (one, other) => {
      const first = answer.output.data;
      if (other <= first.length) return first.slice(one, other);
      const asked = body(query, dialect, { datasets, skip: one, limit: other - one });
      return (await get<Answer>("query", { method: "POST", body: asked, signal })).output.data as Cell[][];
    });
  const link = () => {
    setParameters({ query, dialect: dialect === "SqlDataFusion" ? undefined : dialect, datasets: JSON.stringify(datasets) });
    return location.href;
  };
  return (
    <section>
      <div class="bar">
        <Choice
          label="How to show the answer"
          value={view}
          options={[
            ["table", "Table"],
            ["chart", "Chart"],
          ]}
          choose={(value) => setParameters({ view: value === "table" ? undefined : value })}
        />
      </div>
      {view === "chart" ? (
        <AnswerChart fields={fields} total={total} load={load} identity={identity} />
      ) : (
        <Rows
          label="Answer"
          identity={identity}
          columns={columnsOf(fields)}
          total={total}
          load={load}
          note={` in ${duration(seconds)}${result.isWhole ? "" : ", and more"}`}
        />
      )}
      <div class="bar">
        <LinkButton link={link} />
        <Proof result={result} />
        <Export result={result} />
      </div>
      <details>
        <summary>Blocks that this answer was made of ({count(datasets.length)})</summary>
        <Facts>
          {datasets.map((dataset) => (
            <Fact key={dataset.id} name={dataset.alias}>
              <code>{dataset.blockHash}</code>
            </Fact>
          ))}
        </Facts>
      </details>
    </section>
  );
}

function LinkButton({ link }: { link: () => string }) {
  const [url, set] = useState("");
  return url ? (
    <Copy text={url} label="Copy the link" />
  ) : (
    <button type="button" onClick={() => set(link())} title="A link with the query and the blocks: it gives the same answer whenever it is opened">
      Link to this answer
    </button>
  );
}

function save(name: string, type: string, parts: BlobPart[]): void {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** The answer with a signature, as one file that anybody can check. */
function Proof({ result }: { result: Result }) {
  const [error, setError] = useState<ApiError>();
  const download = async () => {
    setError(undefined);
    const { query, dialect, answer, total } = result;
    const asked = body(query, dialect, { include: ["Proof"], schemaFormat: "OdfJson", datasets: answer.input?.datasets, limit: total });
    try {
      const signed = await fetchText(asked);
      save("answer.proof.json", "application/json", [signed]);
    } catch (problem) {
      setError(problem instanceof ApiError ? problem : new ApiError(0, String(problem)));
    }
  };
  return (
    <>
      <button type="button" onClick={() => void download()}>
        Download with proof
      </button>
      {error && <Problem error={error} />}
    </>
  );
}

/** The answer as it came, letter by letter: numbers must not pass through those of JavaScript. */
async function fetchText(asked: object): Promise<string> {
  const { call } = await import("../api");
  return (await call("query", { method: "POST", body: asked })).text();
}

/** All rows as CSV, asked for in pieces of the same blocks. */
function Export({ result }: { result: Result }) {
  const [done, setDone] = useState<number>();
  const [error, setError] = useState<ApiError>();
  const { query, dialect, answer, fields, total } = result;
  const run = async () => {
    setError(undefined);
    setDone(0);
    const parts: string[] = [`${fields.map((field) => quoted(field.name)).join(",")}\r\n`];
    try {
      const step = 10_000;
      for (let from = 0; from < total; from += step) {
        const asked = body(query, dialect, { datasets: answer.input?.datasets, skip: from, limit: step });
        const { data } = (await get<Answer>("query", { method: "POST", body: asked })).output;
        for (const row of data) parts.push(`${row.map(quoted).join(",")}\r\n`);
        setDone(Math.min(total, from + step));
      }
      save("answer.csv", "text/csv", parts);
    } catch (problem) {
      setError(problem instanceof ApiError ? problem : new ApiError(0, String(problem)));
    }
    setDone(undefined);
  };
  return (
    <>
      <button type="button" onClick={() => void run()} disabled={done !== undefined}>
        {done === undefined ? "Download as CSV" : `${count(done)} of ${count(total)} rows`}
      </button>
      {error && <Problem error={error} />}
    </>
  );
}

function quoted(value: unknown): string {
  if (value === null || value === undefined) return "";
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  // What a spreadsheet would take for a formula stays text.
  const safe = /^[=+@\t\r]|^-(?![\d.])/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Names of datasets and, as they are needed, of their columns. */
function useCompletions(): Completions {
  const names = useRef<string[]>([]);
  const columns = useRef(new Map<string, string[]>());
  const who = session.value.name;
  useEffect(() => {
    columns.current.clear();
    get<Dataset[]>("datasets?limit=1000")
      .then((found) => {
        names.current = found.map((dataset) => dataset.name);
      })
      .catch(() => undefined); // nothing is completed then
  }, [who]);
  return {
    datasets: () => names.current,
    columns: async (name) => {
      const known = columns.current.get(name);
      if (known) return known;
      const path = ofDataset(name, "metadata?include=schema&schemaFormat=OdfJson");
      const answer = await get<{ output: { schema?: { fields: Field[] } } }>(path);
      const found = (answer.output.schema?.fields ?? []).map((field) => field.name);
      columns.current.set(name, found);
      return found;
    },
  };
}

