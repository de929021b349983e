/** What a proof holds: the question, who has signed it, the blocks that were read, and the first rows of the answer. */
import { get, session } from "../api";
import { Fact, Facts, Hash, Snippet, Value } from "../components/basics";
import { Table } from "../components/table";
import { count, counted, shortHash, signer } from "../format";
import { useLoad } from "../hooks";
import { datasetPath, href } from "../router";
import type { Cell, Dataset } from "../types";
import { isSigned, type Verdict } from "./proof_verdict";

export interface Proof {
  input: { query: string; datasets?: { alias: string; id: string; blockHash?: string }[] };
  commitment: object;
  proof: { verificationMethod: string };
  output?: { data?: unknown; schema?: unknown };
}

const FIRST = 10; // rows that are shown
const MOST = 100; // datasets that are looked for

export function Contents({ proof, verdict }: { proof: Proof; verdict: Verdict | undefined }) {
  return (
    <>
      <h2>Query</h2>
      <Snippet label="Query" text={proof.input.query} />
      <Facts>
        <Signer named={proof.proof.verificationMethod} verdict={verdict} />
      </Facts>
      <Datasets datasets={proof.input.datasets ?? []} />
      <Answered output={proof.output} />
    </>
  );
}

function Signer({ named, verdict }: { named: string; verdict: Verdict | undefined }) {
  const known = verdict?.signer;
  const name = known && known.name !== known.id ? signer(known.name) : "a key unknown to this server";
  return (
    <Fact name={verdict && isSigned(verdict) ? "Signed by" : "Claims to be signed by"}>
      {known && <strong>{name}</strong>} <Hash text={named} />
    </Fact>
  );
}

/** The datasets as the file calls them, with links to those that are here. */
function Datasets({ datasets }: { datasets: NonNullable<Proof["input"]["datasets"]> }) {
  const query = new URLSearchParams(datasets.slice(0, MOST).map(({ id }) => ["id", id]));
  const { value } = useLoad(
    async (signal) => (datasets.length ? get<Dataset[]>(`datasets?limit=${MOST}&${query}`, { signal }) : []),
    [String(query), session.value.name],
  );
  if (!datasets.length) return null;
  const names = new Map(value?.map((one) => [one.id, one.name]));
  return (
    <>
      <h2>Datasets read</h2>
      <ul class="words">
        {datasets.map(({ id, alias, blockHash }) => {
          const name = names.get(id);
          return (
            <li key={id}>
              {name ? <a href={href(datasetPath(name))}>{name}</a> : <span title={id}>{alias}</span>}
              {name && name !== alias && ` (there ${alias})`}
              {value && !name && <span class="dim"> (not on this server, or not readable for you)</span>}
              {blockHash && (
                <>
                  {" "}
                  as of block{" "}
                  <code title={blockHash}>{name ? <a href={href(datasetPath(name, "history"), { from: blockHash })}>{shortHash(blockHash)}…</a> : `${shortHash(blockHash)}…`}</code>
                </>
              )}
            </li>
          );
        })}
      </ul>
    </>
  );
}

interface Table {
  names: string[];
  rows: Cell[][];
}

/** Rows in any of the layouts that answers have: lists, objects, or an object of lists. */
function tableOf({ data, schema }: NonNullable<Proof["output"]>): Table {
  if (!Array.isArray(data)) {
    const columns = Object.entries((data ?? {}) as Record<string, Cell[]>);
    const length = columns[0]?.[1].length ?? 0;
    return { names: columns.map(([name]) => name), rows: Array.from({ length }, (_, at) => columns.map(([, cells]) => cells[at] ?? null)) };
  }
  const [first] = data as (Cell[] | Record<string, Cell>)[];
  if (first && !Array.isArray(first)) {
    const names = Object.keys(first);
    return { names, rows: (data as Record<string, Cell>[]).map((row) => names.map((name) => row[name] ?? null)) };
  }
  const { fields } = (typeof schema === "object" && schema ? schema : {}) as { fields?: { name: string }[] };
  return { names: (first ?? []).map((_, at) => fields?.[at]?.name ?? `column ${at + 1}`), rows: (data as Cell[][]).map((row) => [...row]) };
}

/** The same of a file that somebody may have written by hand. */
function tableIn(output: NonNullable<Proof["output"]>): Table | undefined {
  try {
    return tableOf(output);
  } catch {
    return undefined;
  }
}

function Answered({ output }: { output: Proof["output"] }) {
  if (!output) return <p class="dim">The file does not contain the rows, only their hash.</p>;
  const table = tableIn(output);
  if (!table) return <p class="dim">The rows in the file are not in a known format.</p>;
  const { names, rows } = table;
  return (
    <>
      <h2>Answer</h2>
      <p class="dim">
        {counted(rows.length, "row")}
        {rows.length > FIRST && `, of which these are the first ${count(FIRST)}`}
      </p>
      {rows.length > 0 && (
        <Table label="First rows of the answer" columns={names}>
          {rows.slice(0, FIRST).map((row, index) => (
            <tr key={index}>
              {row.map((cell, at) => (
                <td key={at}>
                  <Value value={cell} isExact />
                </td>
              ))}
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}
