/** Who may read the dataset, and what of it; for admins. */
import { useEffect, useState } from "preact/hooks";
import { call } from "../../api";
import { Badge, Loading, Moment, Problem } from "../../components/basics";
import { Table } from "../../components/table";
import { count, counted } from "../../format";
import { useLoad, useSettled } from "../../hooks";
import { href } from "../../router";
import { personPath } from "../admin/paths";
import type { TabProperties } from "./page";

const PAGE = 100;
const FEW = 6;

interface SharedAs {
  path: string;
  shown: "current" | "changelog";
  at: string | null;
}

interface Reader {
  name: string;
  kind: "user" | "recipient";
  isDisabled: boolean;
  readsAll: boolean;
  numTables: number;
  tables: (SharedAs & { isWhole: boolean; grants: { number: number; principal: string; path: string; words: string }[] })[];
}

interface Readers {
  visibility: "public" | "private";
  tokens: { name: string; scope: string; expiresAt: string | null }[];
  numTables: number;
  tables: SharedAs[];
  readers: Reader[];
}

export function ReadersTab({ dataset }: TabProperties) {
  const [typed, type] = useState("");
  const search = useSettled(typed, 150);
  const [limit, setLimit] = useState(PAGE);
  useEffect(() => setLimit(PAGE), [search]);
  const load = async (signal: AbortSignal) => {
    const path = dataset.name.split("/").map(encodeURIComponent).join("/");
    const answer = await call(`${path}/readers?${new URLSearchParams({ search, limit: String(Math.min(limit, 1000)) })}`, { signal });
    return { found: (await answer.json()) as Readers, total: Number(answer.headers.get("X-Total-Count")) };
  };
  const { value, error, reload } = useLoad(load, [dataset.name, search, limit]);
  if (error) return <Problem error={error} retry={reload} />;
  if (!value) return <Loading />;
  const { found, total } = value;
  return (
    <section>
      <h2>Who may read this dataset?</h2>
      {found.visibility === "public" ? (
        <p class="lead">
          <Badge tone="warn">public</Badge> Anyone who can reach this server, without a token.
        </p>
      ) : (
        <p class="lead">
          <Badge tone="good">private</Badge> {counted(found.tokens.length, "access token")} of the workspace, and{" "}
          {counted(total, "other reader")}
          {search && " that match"}; no one else over the network.
        </p>
      )}
      <h2>Users and recipients</h2>
      {found.tables.length === 0 ? (
        <p>
          None: it is in no share. <a href={href("admin")}>Shares</a>
        </p>
      ) : (
        <p class="dim">
          It is shared as{" "}
          {found.tables.slice(0, FEW).map((one, at) => (
            <span key={one.path}>
              {at > 0 && ", "}
              <code>{one.path}</code> ({one.shown === "changelog" ? "all changes" : "current state"}
              {one.at && ` at ${one.at}`})
            </span>
          ))}
          {found.numTables > FEW && ` and ${count(found.numTables - FEW)} more tables`}.
        </p>
      )}
      {(total > 10 || search) && (
        <label class="search">
          <span class="hidden">Search users and recipients</span>
          <input type="search" placeholder="Search users and recipients" value={typed} onInput={(event) => type(event.currentTarget.value)} />
        </label>
      )}
      {found.tables.length > 0 && total === 0 && <p role="status">{search ? `No match for “${search}”.` : "There is no grant on it."}</p>}
      {total > 0 && <ReaderTable readers={found.readers} />}
      {found.readers.length < total && limit < 1000 && (
        <button type="button" onClick={() => setLimit(limit + 300)}>
          Show more ({count(total - found.readers.length)} left)
        </button>
      )}
      <h2>Access tokens</h2>
      <p class="dim">They are valid for all datasets of the workspace.</p>
      {found.tokens.length === 0 && <p>None.</p>}
      <ul class="words">
        {found.tokens.map((token) => (
          <li key={token.name}>
            <strong>{token.name}</strong> <Badge tone={token.scope === "admin" ? "warn" : "plain"}>{token.scope}</Badge> until{" "}
            <Moment time={token.expiresAt} none="revoked" />
          </li>
        ))}
      </ul>
      <p>
        <a href={href("admin/tokens")}>Manage tokens</a> · <a href={href("admin/grants")}>Manage grants</a> ·{" "}
        <a href={href("admin/audit", { path: found.tables[0]?.path })}>Who has read it?</a>
      </p>
    </section>
  );
}

function ReaderTable({ readers }: { readers: Reader[] }) {
  return (
    <Table label="Users and recipients" columns={["Principal", "May read"]}>
      {readers.map((reader) => (
        <tr key={reader.name}>
          <th scope="row">
            <a href={href(personPath(`${reader.kind}s`, reader.name))}>{reader.name}</a> <Badge tone="info">{reader.kind}</Badge>
            {reader.isDisabled && <Badge tone="bad">disabled now</Badge>}
          </th>
          <td>
            {reader.readsAll && <Badge tone="warn">all of it: may also pull and query</Badge>}
            <Reads reader={reader} tables={reader.tables.slice(0, FEW)} />
            {reader.tables.length > FEW && (
              <details>
                <summary>{count(reader.numTables - FEW)} more tables</summary>
                <Reads reader={reader} tables={reader.tables.slice(FEW)} />
                {reader.numTables > reader.tables.length && <p>and {count(reader.numTables - reader.tables.length)} others</p>}
              </details>
            )}
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Reads({ reader, tables }: { reader: Reader; tables: Reader["tables"] }) {
  return (
    <ul class="words">
      {tables.flatMap((table) =>
        table.grants.map((grant) => (
          <li key={`${table.path} ${grant.number}`}>
            <code>{table.path}</code>: {grant.words}
            {grant.principal !== reader.name && <span class="dim">, by the group {grant.principal}</span>}
          </li>
        )),
      )}
    </ul>
  );
}
