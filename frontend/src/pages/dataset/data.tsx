/** The rows of a dataset: its current state, or all that was ever written. */
import { useState } from "preact/hooks";
import { Choice, Copy, Dialog, Loading, Problem } from "../../components/basics";
import { Rows } from "../../components/rows";
import { count, text } from "../../format";
import { useLoad } from "../../hooks";
import { address, href, setParameters } from "../../router";
import { changelogOf, currentStateOf } from "../../rows";
import type { Cell } from "../../types";
import type { TabProperties } from "./page";

type View = "current" | "changelog";

/** The operations of a changelog, in the order of their numbers. */
const OPERATIONS = ["+A", "-R", "-C", "+C"] as const;
const CLASSES = ["op-append", "op-retract", "op-correct-from", "op-correct-to"] as const;

export function DataTab({ dataset }: TabProperties) {
  const view: View = address.value.searchParams.get("view") === "changelog" ? "changelog" : "current";
  const [opened, open] = useState<{ row: Cell[]; index: number }>();
  const load = view === "changelog" ? changelogOf : currentStateOf;
  const { value, error, reload } = useLoad((signal) => load(dataset, signal), [dataset.head, view]);
  const table = value?.identity === `${dataset.head} ${view}` ? value : undefined; // not that of the view before
  const start = Number(address.value.searchParams.get("row") ?? 0) || 0;
  const operation = table?.columns.findIndex((column) => column.name === "op") ?? -1;
  return (
    <section>
      <div class="bar">
        <Choice
          label="Which rows"
          value={view}
          options={[
            ["current", "Current state"],
            ["changelog", "Changelog"],
          ]}
          choose={(value) => setParameters({ view: value === "current" ? undefined : value, row: undefined })}
        />
        <a href={href("query", { query: view === "changelog" ? `select * from "${dataset.name}"` : `select * from odf_current('${dataset.name}')` })}>Query it</a>
        {view === "changelog" && (
          <p class="legend dim">
            <span class="op-append">+A added</span> <span class="op-retract">-R retracted</span>{" "}
            <span class="op-correct-from">-C corrected from</span> <span class="op-correct-to">+C corrected to</span>
          </p>
        )}
      </div>
      {error && <Problem error={error} retry={reload} />}
      {!table && !error && <Loading what={view === "current" ? "Computing the current state" : "Loading"} />}
      {table && !error && (
        <Rows
          label={view === "current" ? "Current state" : "Changelog"}
          identity={`${table.identity} ${start}`}
          columns={table.columns.map((column, at) => (at === operation ? { ...column, isOperation: true, isSystem: view === "current" } : column))}
          start={start}
          total={table.total}
          noun={view === "changelog" ? "records" : "rows"}
          load={async (from, to, signal) => named(await table.load(from, to, signal), operation)}
          rowClass={(row) => (view === "changelog" ? (CLASSES[OPERATIONS.indexOf(row[operation] as "+A")] ?? "") : "")}
          open={(row, index) => open({ row, index })}
          opens="Click a row to see all of it, and its provenance."
        />
      )}
      {opened && table && (
        <Dialog title={`Row ${opened.index}`} close={() => open(undefined)}>
          <table class="list">
            <tbody>
              {table.columns.map((column, at) => (
                <tr key={column.name}>
                  <th scope="row">{column.name}</th>
                  <td class="value">{opened.row[at] === null ? <span class="null">null</span> : <Value value={text(opened.row[at])} />}</td>
                </tr>
              ))}
            </tbody>
          </table>
          <Origin name={dataset.name} row={opened.row} offset={table.columns.findIndex((column) => column.name === "offset")} />
        </Dialog>
      )}
    </section>
  );
}

function Origin({ name, row, offset }: { name: string; row: Cell[]; offset: number }) {
  const value = row[offset];
  if (offset < 0 || value === null || value === undefined) return null;
  return (
    <p>
      <a href={href("provenance", { dataset: name, offset: String(value) })}>Where does this row come from?</a>
    </p>
  );
}

/** Operations by their signs instead of their numbers. */
function named(rows: Cell[][], operation: number): Cell[][] {
  if (operation < 0) return rows;
  return rows.map((row) => row.map((value, at) => (at === operation ? (OPERATIONS[Number(value)] ?? value) : value)));
}

const LONGEST = 100_000;

/** A value as a whole; of one that is too long for a page, the beginning, and a button that copies all of it. */
function Value({ value }: { value: string }) {
  if (value.length <= LONGEST) return <>{value}</>;
  return (
    <>
      {value.slice(0, LONGEST)}… ({count(value.length)} characters) <Copy text={value} label="Copy all" />
    </>
  );
}
