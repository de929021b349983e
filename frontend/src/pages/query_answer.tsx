/** The answer of a query: rows, a chart, its blocks, a link and files that reproduce it. */
import { useState } from "preact/hooks";
import { ApiError, call, get } from "../api";
import { AnswerChart } from "../components/answer_chart";
import { Choice, Copy, Fact, Facts, Hash, Problem } from "../components/basics";
import { Rows } from "../components/rows";
import { readWhole } from "../components/sql_editor";
import { count, counted, duration } from "../format";
import { useLoad } from "../hooks";
import { address, setParameters } from "../router";
import { columnsOf, inHalves } from "../rows";
import type { Answer, Cell, Field } from "../types";

export type Dialect = "SqlDataFusion" | "SqlSpark";

export interface Result {
  query: string;
  dialect: Dialect;
  answer: Answer;
  fields: Field[];
  seconds: number;
  /** All rows that there are, or as many as were found so far. */
  isWhole: boolean;
  total: number;
}

/** The body of a request for rows. */
export function body(query: string, dialect: Dialect, more: object) {
  return { query, queryDialect: dialect, dataFormat: "JsonAoA", ...more };
}

/** An answer, and all that can be done with it. */
export function Shown({ result, toCurrent }: { result: Result; toCurrent: () => void }) {
  const { answer, fields, query, dialect, seconds, total } = result;
  const datasets = answer.input?.datasets ?? [];
  const form: "rows" | "chart" = address.value.searchParams.get("view") === "chart" ? "chart" : "rows";
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
      <Superseded key={identity} result={result} toCurrent={toCurrent} />
      <Choice
        label="How the answer is shown"
        value={form}
        options={[
          ["rows", "Rows"],
          ["chart", "Chart"],
        ]}
        choose={(value) => setParameters({ view: value === "rows" ? undefined : value })}
      />
      {form === "chart" ? (
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
        <Copy
          text={link}
          label="Copy a link to this answer"
          title="A link with the query and the blocks: it always gives the same answer"
          done="Link copied; the address bar has it, too"
          refused="The address bar has the link"
          style=""
        />
        <Proof result={result} />
        <Export result={result} />
      </div>
      <details>
        <summary>Blocks that this answer was computed from ({count(datasets.length)})</summary>
        <Facts>
          {datasets.map((dataset) => (
            <Fact key={dataset.id} name={dataset.alias}>
              <Hash text={dataset.blockHash ?? "no block"} isShort={false} />
            </Fact>
          ))}
        </Facts>
      </details>
    </section>
  );
}

const LOOKED_AT = 4; // datasets of a query

/** Says so, where rows count that others take back or correct: nobody sees it in the numbers. */
function Superseded({ result, toCurrent }: { result: Result; toCurrent: () => void }) {
  const { answer, query } = result;
  const { value } = useLoad(
    async (signal) => {
      const whole = readWhole(query);
      const datasets = (answer.input?.datasets ?? []).filter((one) => whole.includes(one.alias)).slice(0, LOOKED_AT);
      const counts = await Promise.all(
        datasets.map(async (one) => {
          const asked = body(`select count(*) as n from "${one.alias}" where op <> 0`, "SqlDataFusion", { datasets: [one] });
          return Number((await get<Answer>("query", { method: "POST", body: asked, signal })).output.data[0]?.[0]);
        }),
      );
      return datasets.map((one, at) => [one.alias, counts[at] ?? 0] as const).filter(([, number]) => number > 0);
    },
    [query],
  );
  if (!value?.length || /\bop\b/i.test(query)) return null;
  return (
    <div class="note" role="note">
      {value.map(([name, number]) => (
        <p key={name}>
          <strong>{name}</strong> is read as a changelog: it includes {counted(number, "row")} that retract or correct others.
        </p>
      ))}
      <button type="button" onClick={toCurrent}>
        Read current states instead
      </button>
    </div>
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
      // The answer as it came, letter by letter: numbers must not pass through those of JavaScript.
      const signed = await (await call("query", { method: "POST", body: asked })).text();
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

