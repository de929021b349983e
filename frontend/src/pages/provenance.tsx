/** The rows that a row was computed from, step by step down to the files of sources; each step is replayed. */
import { useState } from "preact/hooks";
import { get, ofDataset, session } from "../api";
import { Badge, Empty, Loading, Moment, Problem, Snippet, Value } from "../components/basics";
import { Table } from "../components/table";
import { count, counted, cut, text } from "../format";
import { useLoad, useTitle } from "../hooks";
import { address, datasetPath, href, navigate, setParameters } from "../router";
import type { Cell, Provenance, TracedDataset, TracedRow } from "../types";

const FIRST = 20; // rows of an input that are shown at once
const MORE = 200;
const SYSTEM = "system_time";

type Tone = "good" | "bad" | "warn" | "plain";

/** The outcomes of a replay of the query over the cited rows alone. */
const CHECKS: Record<string, [Tone, string]> = {
  checked: ["good", "recomputed from these rows: same result"],
  "not confirmed": ["bad", "recomputed from these rows: different result"],
  "could not be checked": ["warn", "could not be recomputed from these rows"],
  "not checked": ["plain", "not recomputed"],
};

export function ProvenancePage() {
  const parameters = address.value.searchParams;
  const name = parameters.get("dataset") ?? "";
  const offset = parameters.get("offset") ?? "";
  const column = parameters.get("column") ?? "";
  const isAsked = name !== "" && /^\d+$/.test(offset);
  useTitle(isAsked ? `Row ${offset} of ${name}` : "Where a row comes from");
  return (
    <article>
      <h1>Where {isAsked ? `row ${count(Number(offset))}` : "a row"} comes from</h1>
      <Question name={name} offset={offset} />
      {isAsked ? (
        <Asked key={`${name} ${offset}`} name={name} offset={Number(offset)} column={column} />
      ) : (
        <Empty title="Which row?">
          <p>Enter a dataset and the offset of a row, or click a row in the data of a dataset.</p>
        </Empty>
      )}
    </article>
  );
}

function Question({ name, offset }: { name: string; offset: string }) {
  const ask = (event: SubmitEvent) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    navigate(href("provenance", { dataset: String(fields.get("dataset")).trim(), offset: String(fields.get("offset")) }));
  };
  return (
    <form class="bar ask" onSubmit={ask} key={`${name} ${offset}`}>
      <label>
        Dataset <input name="dataset" defaultValue={name} spellcheck={false} />
      </label>
      <label>
        Offset <input name="offset" class="short" type="number" min={0} step={1} defaultValue={offset} />
      </label>
      <button type="submit">Show</button>
    </form>
  );
}

/** One hop: the row, and the rows of the inputs that it was computed from. */
function useHop(name: string, offset: number, column: string) {
  const query = new URLSearchParams({ offset: String(offset), depth: "1" });
  if (column) query.set("column", column);
  const path = ofDataset(name, `provenance?${query}`);
  return useLoad((signal) => get<Provenance>(path, { signal }), [path, session.value.name]);
}

function Asked({ name, offset, column }: { name: string; offset: number; column: string }) {
  const { value, error, reload } = useHop(name, offset, column);
  if (error) return <Problem error={error} retry={reload} />;
  if (!value) return <Loading what="Tracing the row to its inputs" />;
  const dataset = value.datasets[0];
  const row = dataset?.rows.find((one) => one.offset === offset);
  if (!dataset || !row) return <Empty title="There is no such row" />;
  return (
    <>
      <section aria-label="The row" class="panel">
        <div class="bar">
          <h2>
            <DatasetLink dataset={dataset} />, row {count(offset)}
          </h2>
          <Operation op={row.op} />
        </div>
        <Cells dataset={dataset} row={row} column={column} />
      </section>
      <section aria-label="The rows that it was computed from">
        <Step value={value} offset={offset} column={column} />
      </section>
    </>
  );
}

/** The cells of the row, and the columns that each of them comes from; one of them can be followed alone. */
function Cells({ dataset, row, column }: { dataset: TracedDataset; row: TracedRow; column: string }) {
  const names = Object.keys(row.values);
  return (
    <>
      {dataset.followed && (
        <p>
          <label for="followed">Trace</label>{" "}
          <select id="followed" value={column} onChange={(event) => setParameters({ column: event.currentTarget.value })}>
            <option value="">all columns</option>
            {names
              .filter((one) => one !== SYSTEM)
              .map((one) => (
                <option key={one} value={one}>
                  only {one}
                </option>
              ))}
          </select>
        </p>
      )}
      <Table label="Cells of the row" columns={["Column", "Value", ...(dataset.followed ? ["Comes from"] : [])]}>
        {names
          .filter((one) => !column || one === column)
          .map((one) => (
            <tr key={one}>
              <th scope="row">
                <code>{one}</code>
              </th>
              <td>
                <Value value={row.values[one]} />
              </td>
              {dataset.followed && (
                <td>
                  <Sources dataset={dataset} column={one} />
                </td>
              )}
            </tr>
          ))}
      </Table>
    </>
  );
}

function Sources({ dataset, column }: { dataset: TracedDataset; column: string }) {
  const found = dataset.columns.filter((one) => one.column === column);
  if (!found.length) return <span class="dim">{column === SYSTEM ? "the time of the run" : dataset.hidden.length ? "a dataset that you may not read" : "the query"}</span>;
  return (
    <>
      {waysOf(found).map(({ inputName, sources, copied, through }, index) => (
        <div key={index}>
          {copied ? "copied" : "computed"} from{" "}
          {sources.map((source, at) => (
            <span key={source}>
              {at > 0 && ", "}
              <code>{source}</code>
            </span>
          ))}{" "}
          of <a href={href(datasetPath(inputName))}>{inputName}</a>
          {!copied && (
            <>
              {" "}
              by <code title={through.join("\n")}>{cut(through[0] ?? "the query", 200)}</code>
              {through.length > 1 && `, after ${counted(through.length - 1, "other expression")}`}
            </>
          )}
        </div>
      ))}
    </>
  );
}

interface Way {
  inputName: string;
  sources: string[];
  copied: boolean;
  through: string[];
}

/** The ways in which a column is computed: one for each expression and input. */
function waysOf(found: TracedDataset["columns"]): Way[] {
  const ways = new Map<string, Way>();
  for (const { input, inputName, source, copied, through } of found) {
    const key = JSON.stringify([input, copied, through]);
    const way = ways.get(key) ?? { inputName, sources: [], copied, through };
    way.sources = [...new Set([...way.sources, source ?? "the whole row"])]; // it may come through several branches
    ways.set(key, way);
  }
  return [...ways.values()];
}

/** What a row was computed from: the outcome of the replay, the query, and the rows of each input. */
function Step({ value, offset, column }: { value: Provenance; offset: number; column: string }) {
  const [dataset, ...inputs] = value.datasets;
  const row = dataset?.rows.find((one) => one.offset === offset);
  if (!dataset || !row) return null;
  if (!dataset.followed) return <Origin dataset={dataset} row={row} />;
  const [tone, words] = CHECKS[dataset.check ?? ""] ?? ["plain", dataset.check ?? ""];
  const cited = inputs.filter((one) => row.madeOf[one.id] || row.becauseOf[one.id]);
  return (
    <div class="step">
      <p role="status">
        <Badge tone={tone}>{words}</Badge> {dataset.remark && <span>{dataset.remark}</span>}
      </p>
      {row.problem && <p class="dim">Its inputs cannot be determined: {row.problem}.</p>}
      {row.ways > 1 && <p class="dim">The same row results in {count(row.ways)} ways; this is one of them.</p>}
      {row.takesBack !== null && (
        <p>
          It retracts <a href={href("provenance", { dataset: dataset.name, offset: String(row.takesBack) })}>row {count(row.takesBack)}</a> of the same
          dataset.
        </p>
      )}
      <How dataset={dataset} />
      {cited.map((input) => (
        <Input key={input.id} input={input} row={row} columns={followedColumns(dataset, input, column)} />
      ))}
      {dataset.hidden.map((id) => (
        <p key={id} class="dim">
          Also computed from rows of a dataset that you may not read: <code>{id}</code>
        </p>
      ))}
      {!cited.length && !dataset.hidden.length && !row.problem && <p class="dim">It does not depend on rows of its inputs.</p>}
    </div>
  );
}

/** The columns of an input that a column was computed from; none if all of them are traced. */
function followedColumns(dataset: TracedDataset, input: TracedDataset, column: string): string[] {
  if (!column) return [];
  return dataset.columns.filter((one) => one.column === column && one.input === input.id && one.source).map((one) => one.source ?? "");
}

function How({ dataset }: { dataset: TracedDataset }) {
  if (!dataset.steps.length) return null;
  return (
    <details>
      <summary>Query</summary>
      {dataset.steps.map((step, index) => (
        <Snippet key={index} label={`${step.alias ? `${step.alias}: ` : ""}${step.class}, ${step.reason}`} text={cut(step.query.trim(), 100_000)} />
      ))}
    </details>
  );
}

/** Rows of one input; each can be expanded to the rows that it was computed from. */
function Input({ input, row, columns }: { input: TracedDataset; row: TracedRow; columns: string[] }) {
  const [shown, show] = useState(FIRST);
  const causes = new Set(row.becauseOf[input.id] ?? []);
  const wanted = new Set([...(row.madeOf[input.id] ?? []), ...causes]);
  const rows = input.rows.filter((one) => wanted.has(one.offset));
  const names = Object.keys(rows[0]?.values ?? {}).filter((name) => name !== SYSTEM && (!columns.length || columns.includes(name)));
  return (
    <div class="input">
      <h3>
        {counted(rows.length, "row")} of <DatasetLink dataset={input} />
      </h3>
      <Table label={`Rows of ${input.name} that row ${row.offset} was computed from`} columns={["Row", "op", "Comes from", ...names]}>
        {rows.slice(0, shown).map((one) => (
          <Line key={one.offset} input={input} row={one} names={names} isCause={causes.has(one.offset)} column={columns.length === 1 ? (columns[0] ?? "") : ""} />
        ))}
      </Table>
      {rows.length > shown && (
        <button type="button" onClick={() => show(shown + MORE)}>
          Show more rows ({count(rows.length - shown)} left)
        </button>
      )}
    </div>
  );
}

interface LineProperties {
  input: TracedDataset;
  row: TracedRow;
  names: string[];
  isCause: boolean;
  column: string;
}

function Line({ input, row, names, isCause, column }: LineProperties) {
  const [isOpen, open] = useState(false);
  const id = `from-${input.id.slice(-12)}-${row.offset}`;
  return (
    <>
      <tr>
        <th scope="row">
          <a href={href("provenance", { dataset: input.name, offset: String(row.offset) })}>{count(row.offset)}</a>
          {isCause && <Badge tone="info">trigger</Badge>}
        </th>
        <td>
          <Operation op={row.op} />
        </td>
        <td class="value">
          {input.kind === "Root" ? (
            <Origin dataset={input} row={row} />
          ) : (
            <button
              type="button"
              aria-expanded={isOpen}
              aria-controls={isOpen ? id : undefined}
              aria-label={`computed from: row ${row.offset} of ${input.name}`}
              onClick={() => open(!isOpen)}
            >
              {isOpen ? "▾" : "▸"} computed from
            </button>
          )}
        </td>
        {names.map((name) => (
          <td key={name}>
            <Value value={row.values[name] as Cell} />
          </td>
        ))}
      </tr>
      {isOpen && (
        <tr id={id} class="nested">
          <td colSpan={names.length + 3}>
            <Opened name={input.name} offset={row.offset} column={column} />
          </td>
        </tr>
      )}
    </>
  );
}

function Opened({ name, offset, column }: { name: string; offset: number; column: string }) {
  const { value, error, reload } = useHop(name, offset, column);
  if (error) return <Problem error={error} retry={reload} />;
  if (!value) return <Loading what={`Tracing row ${count(offset)}`} />;
  return <Step value={value} offset={offset} column={column} />;
}

/** How a row of a root dataset was ingested. */
function Origin({ dataset, row }: { dataset: TracedDataset; row: TracedRow }) {
  const { origin } = row;
  if (!origin) return <span class="dim">source not recorded</span>;
  const kind = (origin.stateKind ?? "").replace(/^odf\//, "");
  return (
    <span>
      {origin.file ? (
        <>
          file <strong class="value">{cut(origin.file, 500)}</strong> of <code>{origin.source}</code>
        </>
      ) : origin.source ? (
        <>
          source <strong class="value">{cut(origin.source, 500)}</strong>
          {origin.state && ` (${kind} ${cut(origin.state, 200)})`}
        </>
      ) : (
        "a source without a name"
      )}
      , with <a href={href(datasetPath(dataset.name, "history"), { from: origin.block })}>block {count(origin.sequenceNumber)}</a>,{" "}
      <Moment time={origin.systemTime} />
    </span>
  );
}

function DatasetLink({ dataset }: { dataset: { name: string } }) {
  return <a href={href(datasetPath(dataset.name))}>{dataset.name}</a>;
}

const OPERATIONS: Record<string, [string, string]> = {
  "+A": ["op-append", "added"],
  "-R": ["op-retract", "retracted"],
  "-C": ["op-correct-from", "corrected from"],
  "+C": ["op-correct-to", "corrected to"],
};

function Operation({ op }: { op: string }) {
  const [kind, words] = OPERATIONS[op] ?? ["", text(op)];
  return (
    <span class={`legend ${kind}`} title={words}>
      <span class="op">{op}</span>
      <span class="hidden"> {words}</span>
    </span>
  );
}
