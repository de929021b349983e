/** The audit log: who has read what, and what was changed here. */
import { useEffect, useState } from "preact/hooks";
import { call } from "../../api";
import { Badge, Choice, Empty, Loading, Moment, Problem } from "../../components/basics";
import { Table } from "../../components/table";
import { count, size } from "../../format";
import { useLoad, useSettled } from "../../hooks";
import { address, setParameters } from "../../router";
import { nextOf } from "../../rows";
import type { Access } from "./types";

type Granted = "" | "true" | "false";

interface Page {
  accesses: Access[];
  older: string | undefined;
}

async function page(query: string, signal: AbortSignal): Promise<Page> {
  const answer = await call(`platform/${query}`, { signal });
  return { accesses: await answer.json(), older: nextOf(answer) };
}

export function AuditTab() {
  const parameters = address.value.searchParams;
  const [who, setWho] = useState(parameters.get("who") ?? "");
  const [path, setPath] = useState(parameters.get("path") ?? "");
  const [since, setSince] = useState(parameters.get("since") ?? "");
  const [until, setUntil] = useState(parameters.get("until") ?? "");
  const granted = (parameters.get("granted") ?? "") as Granted;
  const settled = useSettled({ who, path, since, until }, 250);
  useEffect(() => setParameters(settled), [settled]);
  const wanted = Object.entries({ ...settled, granted }).filter(([, value]) => value);
  const query = `audit?${new URLSearchParams([["limit", "100"], ...wanted])}`;
  const { value, error, isLoading, reload } = useLoad((signal) => page(query, signal), [query]);
  const [more, setMore] = useState<Page>();
  useEffect(() => setMore(undefined), [value]);
  const older = more ? more.older : value?.older;
  const shown = [...(value?.accesses ?? []), ...(more?.accesses ?? [])];
  const loadMore = async () => {
    if (!older) return;
    const next = await page(older, new AbortController().signal);
    setMore({ accesses: [...(more?.accesses ?? []), ...next.accesses], older: next.older });
  };
  return (
    <>
      <h2>Audit log</h2>
      <p class="dim">Who has read shared tables, and what admins have changed or looked at; the newest first. Reads with access tokens are not listed. It is a dataset, odf.audit.</p>
      <form class="bar" role="search" onSubmit={(event) => event.preventDefault()}>
        <Filter label="Principal" value={who} set={setWho} hint="acme" />
        <Filter label="Table or name" value={path} set={setPath} hint="sales.eu" />
        <DayFilter label="Since" value={since} set={setSince} />
        <DayFilter label="Before" value={until} set={setUntil} />
        <Choice
          label="Granted or refused"
          value={granted}
          options={[
            ["", "All"],
            ["true", "Granted"],
            ["false", "Refused"],
          ]}
          choose={(choice) => setParameters({ granted: choice })}
        />
        <button type="button" onClick={reload}>
          Refresh
        </button>
      </form>
      {error && <Problem error={error} retry={reload} />}
      {!value && isLoading && <Loading />}
      {value && !error && shown.length === 0 && <Empty title={wanted.length ? "No matching accesses" : "No accesses yet"} />}
      {shown.length > 0 && (
        <>
          <Table label="Accesses" columns={["Time", "Principal", "Action", "Object", "Result", "Files", "Bytes", "Address"]}>
            {shown.map((access) => (
              <Line key={access.number} access={access} />
            ))}
          </Table>
          {older && (
            <button type="button" onClick={loadMore}>
              Show older accesses
            </button>
          )}
        </>
      )}
    </>
  );
}

interface FilterProperties {
  label: string;
  value: string;
  set: (value: string) => void;
}

function Filter({ label, value, set, hint }: FilterProperties & { hint: string }) {
  return (
    <label>
      {label} <input type="search" value={value} placeholder={hint} onInput={(event) => set(event.currentTarget.value)} />
    </label>
  );
}

function DayFilter({ label, value, set }: FilterProperties) {
  return (
    <label>
      {label} <input type="date" value={value} onInput={(event) => set(event.currentTarget.value)} />
    </label>
  );
}

function Line({ access }: { access: Access }) {
  return (
    <tr>
      <td>
        <Moment time={access.at} />
      </td>
      <th scope="row">{access.who ?? <span class="dim">not authenticated</span>}</th>
      <td>{(access.action ?? "").replaceAll("_", " ")}</td>
      <td>
        {access.path}
        {access.version !== null && <span class="dim"> version {access.version}</span>}
      </td>
      <td>
        <Badge tone={access.granted ? "good" : "bad"}>{access.granted ? "granted" : "refused"}</Badge> <span class="dim">{access.status}</span>
      </td>
      <td class="number">{access.files === null ? "" : count(access.files)}</td>
      <td class="number">{access.bytes === null ? "" : size(access.bytes)}</td>
      <td title={access.client ?? ""}>{access.address}</td>
    </tr>
  );
}
