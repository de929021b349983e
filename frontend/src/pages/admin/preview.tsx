/** The shared tables as a recipient or user sees them. */
import { get } from "../../api";
import { Badge, Loading, Problem } from "../../components/basics";
import { ListTable, useList } from "../../components/list";
import { Table } from "../../components/table";
import { count, counted, text } from "../../format";
import { useLoad, useTitle } from "../../hooks";
import { href } from "../../router";
import { of } from "./common";
import { personPath } from "./paths";
import type { Kind, Preview, SeenTable } from "./types";

interface Properties {
  kind: Kind;
  name: string;
}

export function PreviewPage({ kind, name, table }: Properties & { table: string[] }) {
  useTitle(`As ${name} · Administration`);
  return (
    <>
      <p>
        <a href={href(personPath(kind, name))}>{name}</a>
        {table.length > 0 && (
          <>
            {" · "}
            <a href={href(personPath(kind, name, "tables"))}>All their tables</a>
          </>
        )}
      </p>
      <div class="preview">
        <p>
          <Badge tone="warn">Preview</Badge> This is what <strong>{name}</strong> sees. Their token is not used, and
          the audit log records your access.
        </p>
        {table.length === 3 ? <Rows kind={kind} name={name} table={table} /> : <Tables kind={kind} name={name} />}
      </div>
    </>
  );
}

/** The parts of a path: names of shares with full stops have slashes between them. */
const partsOf = (path: string): string[] => (path.includes("/") ? path.split("/") : path.split("."));

function Tables({ kind, name }: Properties) {
  const list = useList<SeenTable>(of(kind, name, "tables"), 20);
  return (
    <>
      <h2>Tables</h2>
      <ListTable
        list={list}
        noun="table"
        columns={["Table", "Columns", "Rows", "Restrictions"]}
        empty={<p>{name} sees nothing that is shared.</p>}
        row={(table) => (
          <tr key={table.path}>
            <th scope="row">
              <a href={href(personPath(kind, name, "tables", ...partsOf(table.path)))}>{table.path}</a>
              {table.comment && <div class="dim line">{table.comment}</div>}
            </th>
            <td>
              {table.problem ? <Badge tone="bad">{table.problem}</Badge> : table.columns.map((column) => column.name).join(", ")}
            </td>
            <td class="number">{table.numRows === null ? <span class="dim">open</span> : count(table.numRows)}</td>
            <td>
              <Words of={table.words} />
            </td>
          </tr>
        )}
      />
    </>
  );
}

function Words({ of: words }: { of: string[] }) {
  return (
    <ul class="words">
      {words.map((one) => (
        <li key={one}>{one}</li>
      ))}
    </ul>
  );
}

function Rows({ kind, name, table }: Properties & { table: string[] }) {
  const path = `${of(kind, name, "tables", ...table)}?limit=50`;
  const { value, error, reload } = useLoad((signal) => get<Preview>(path, { signal }), [path]);
  if (error) return <Problem error={error} retry={reload} />;
  if (!value) return <Loading what="Loading" />;
  return (
    <>
      <h2>{value.path}</h2>
      {value.isDisabled && <p class="wrong">{name} is disabled now, and sees nothing until you enable them.</p>}
      <Words of={value.words} />
      <p role="status">
        {counted(value.numRows ?? 0, "row")} in {counted(value.columns.length, "column")}
        {value.rows.length < (value.numRows ?? 0) && `; the first ${value.rows.length}:`}
      </p>
      <Table label={`Rows of ${value.path}`} columns={value.columns.map((column) => ({ name: column.name, title: column.type }))}>
        {value.rows.map((row, at) => (
          <tr key={at}>
            {row.map((cell, column) => (
              <td key={column}>{cell === null ? <span class="null">null</span> : cut(text(cell))}</td>
            ))}
          </tr>
        ))}
      </Table>
    </>
  );
}

const cut = (value: string): string => (value.length > 300 ? `${value.slice(0, 300)}…` : value);
