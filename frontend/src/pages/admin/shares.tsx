/** Shares, their schemas and their tables. */
import { useState } from "preact/hooks";
import { type ApiError, get } from "../../api";
import { Badge, Dialog, Problem } from "../../components/basics";
import { Confirm, FormDialog, type Values } from "../../components/forms";
import { ListTable, useList } from "../../components/list";
import { ACTIONS } from "../../components/table";
import { count } from "../../format";
import { useLoad } from "../../hooks";
import { address, datasetPath, href, setParameters } from "../../router";
import { change, Notice, of, orNothing, suggestDatasets, suggestShares, useNotice } from "./common";
import { NewGrant } from "./grants";
import type { Schema, Share, SharedTable } from "./types";

type Opened =
  | { what: "add share" | "add schema" | "add table" | "apply" }
  | { what: "remove share"; share: Share }
  | { what: "remove schema"; schema: Schema }
  | { what: "remove table" | "grant"; table: SharedTable };

export function SharesTab() {
  const chosen = address.value.searchParams.get("share") ?? "";
  const shares = useList<Share>("platform/shares");
  const tables = useList<SharedTable>(chosen ? `platform/tables?share=${encodeURIComponent(chosen)}` : "platform/tables");
  const [opened, open] = useState<Opened>();
  const [notice, tell] = useNotice();
  const close = () => open(undefined);
  const [version, renew] = useState(0);
  const done = (text: string) => {
    tell(text);
    close();
    shares.reload();
    tables.reload();
    renew(version + 1);
  };
  return (
    <>
      <Notice text={notice} />
      <h2>Shares</h2>
      <ListTable
        list={shares}
        noun="share"
        columns={["Share", "Tables", "Comment", ACTIONS]}
        empty={<p>A share contains tables that recipients can read, if they have a grant.</p>}
        tools={
          <>
            <button type="button" class="primary" onClick={() => open({ what: "add share" })}>
              Add a share
            </button>
            <button type="button" onClick={() => open({ what: "apply" })}>
              Apply a file
            </button>
          </>
        }
        row={(share) => (
          <tr key={share.id}>
            <th scope="row">
              <a href={href("admin", { share: share.name })} aria-current={share.name === chosen ? "true" : undefined}>
                {share.name}
              </a>
            </th>
            <td>{count(share.numTables)}</td>
            <td>{share.comment}</td>
            <td class="actions">
              <button type="button" class="quiet" aria-label={`Remove the share ${share.name}`} onClick={() => open({ what: "remove share", share })}>
                Remove
              </button>
            </td>
          </tr>
        )}
      />
      <h2>{chosen ? `Tables of ${chosen}` : "Tables of all shares"}</h2>
      {chosen && <Schemas key={`${chosen} ${version}`} share={chosen} add={() => open({ what: "add schema" })} remove={(schema) => open({ what: "remove schema", schema })} />}
      <ListTable
        list={tables}
        noun="table"
        columns={["Table", "Source", "Comment", ACTIONS]}
        empty={<p>A table is backed by a dataset, or by files that are not a dataset.</p>}
        tools={
          <button type="button" class="primary" onClick={() => open({ what: "add table" })}>
            Add a table
          </button>
        }
        row={(table) => <TableLine key={table.id} table={table} open={open} />}
      />
      {opened?.what === "add share" && <AddShare close={close} done={done} />}
      {opened?.what === "add schema" && <AddSchema share={chosen} close={close} done={done} />}
      {opened?.what === "add table" && <AddTable share={chosen} close={close} done={done} />}
      {opened?.what === "apply" && <Apply close={close} done={done} />}
      {opened?.what === "grant" && <NewGrant initial={{ path: opened.table.path }} close={close} done={done} />}
      {opened?.what === "remove share" && (
        <Confirm
          title={`Remove the share ${opened.share.name}?`}
          action={`Remove ${opened.share.name}`}
          close={close}
          run={async () => {
            await change("DELETE", of("shares", opened.share.name));
            if (chosen === opened.share.name) setParameters({ share: undefined });
            done(`The share ${opened.share.name} is removed.`);
          }}
        >
          <p>
            Its {count(opened.share.numTables)} tables are no longer shared, from now on, and all grants on them are removed. The data
            stays. This cannot be undone.
          </p>
        </Confirm>
      )}
      {opened?.what === "remove schema" && (
        <Confirm
          title={`Remove the schema ${opened.schema.name} of ${chosen}?`}
          action={`Remove ${opened.schema.name}`}
          close={close}
          run={async () => {
            await change("DELETE", of("shares", chosen, "schemas", opened.schema.name));
            done(`The schema ${opened.schema.name} is removed.`);
          }}
        >
          <p>Its {count(opened.schema.numTables)} tables are no longer shared, and all grants on them are removed. The data stays. This cannot be undone.</p>
        </Confirm>
      )}
      {opened?.what === "remove table" && (
        <Confirm
          title={`Stop sharing ${opened.table.path}?`}
          action={`Remove ${opened.table.path}`}
          close={close}
          run={async () => {
            const [share, schema, table] = opened.table.names;
            await change("DELETE", of("shares", share, "schemas", schema, "tables", table));
            done(`${opened.table.path} is no longer shared.`);
          }}
        >
          <p>Requests for it are refused from now on, and all grants on it are removed. The data stays. This cannot be undone.</p>
        </Confirm>
      )}
    </>
  );
}

function TableLine({ table, open }: { table: SharedTable; open: (what: Opened) => void }) {
  return (
    <tr>
      <th scope="row">{table.path}</th>
      <td>
        {table.datasetId && table.isThere ? <a href={href(datasetPath(table.source, "access"))}>{table.source}</a> : table.source}{" "}
        {!table.isThere && <Badge tone="bad">source is missing</Badge>}
        <Badge>{table.shown === "changelog" ? "all changes" : (table.shown ?? table.kind)}</Badge>
        {table.at && <Badge tone="info">at {table.at}</Badge>}
      </td>
      <td>{table.comment}</td>
      <td class="actions">
        <button type="button" class="quiet" aria-label={`Grant access to ${table.path}`} onClick={() => open({ what: "grant", table })}>
          Grant
        </button>
        <button type="button" class="quiet" aria-label={`Remove the table ${table.path}`} onClick={() => open({ what: "remove table", table })}>
          Remove
        </button>
      </td>
    </tr>
  );
}

function Schemas({ share, add, remove }: { share: string; add: () => void; remove: (schema: Schema) => void }) {
  const { value, error, reload } = useLoad((signal) => get<Schema[]>(`${of("shares", share, "schemas")}?limit=1000`, { signal }), [share]);
  if (error) return <Problem error={error} retry={reload} />;
  return (
    <div class="bar">
      <a href={href("admin")}>Tables of all shares</a>
      <span>Schemas:</span>
      {value?.map((schema) => (
        <span key={schema.name} class="badge">
          {schema.name} ({count(schema.numTables)}){" "}
          <button type="button" class="quiet" aria-label={`Remove the schema ${schema.name}`} onClick={() => remove(schema)}>
            ✕
          </button>
        </span>
      ))}
      {value?.length === 0 && <span class="dim">none</span>}
      <button type="button" onClick={add}>
        Add a schema
      </button>
    </div>
  );
}

interface FormProperties {
  close: () => void;
  done: (text: string) => void;
}

function AddShare({ close, done }: FormProperties) {
  const submit = async ({ name, comment }: Values) => {
    const made = await change<Share>("POST", "platform/shares", { name, comment });
    done(`The share ${made.name} is created. It has no tables yet.`);
  };
  return (
    <FormDialog
      title="Add a share"
      action="Add the share"
      close={close}
      submit={submit}
      fieldOf={() => "name"}
      fields={[
        { name: "name", label: "Name", hint: "As recipients see it: sales, or sales.2024." },
        { name: "comment", label: "Comment", hint: "A sentence for recipients.", isOptional: true },
      ]}
    />
  );
}

function AddSchema({ share, close, done }: FormProperties & { share: string }) {
  const submit = async ({ name }: Values) => {
    await change("POST", of("shares", share, "schemas"), { name });
    done(`The schema ${name} is created.`);
  };
  return (
    <FormDialog title={`Add a schema to ${share}`} action="Add the schema" close={close} submit={submit} fieldOf={() => "name"} fields={[{ name: "name", label: "Name" }]} />
  );
}

function AddTable({ share, close, done }: FormProperties & { share: string }) {
  const isDataset = (values: Values) => values["kind"] === "dataset";
  const submit = async (values: Values) => {
    const { kind, source, comment } = values;
    const path = [values["share"], values["schema"], values["table"]].join("/");
    const more = kind === "dataset" ? { shown: values["shown"], at: orNothing(values["at"]) } : {};
    const made = await change<SharedTable>("POST", "platform/tables", { path, kind, source, comment, ...more });
    done(`The table ${made.path} is added. It needs a grant before anyone can read it.`);
  };
  const fieldOf = (error: ApiError): string => {
    if (/There is no share|name of a share/.test(error.message)) return "share";
    if (/name of a schema/.test(error.message)) return "schema";
    if (error.status === 409 || /name of a table/.test(error.message)) return "table";
    return /branch|tag/.test(error.message) ? "at" : "source";
  };
  return (
    <FormDialog
      title="Add a table"
      action="Add the table"
      close={close}
      submit={submit}
      fieldOf={fieldOf}
      initial={{ share, kind: "dataset", shown: "current" }}
      fields={[
        { name: "share", label: "Share", suggest: suggestShares },
        { name: "schema", label: "Schema", hint: "It is created if it does not exist." },
        { name: "table", label: "Name of the table" },
        {
          name: "kind",
          label: "Kind of source",
          kind: "select",
          options: [
            ["dataset", "A dataset"],
            ["parquet", "A folder of Parquet files"],
            ["delta", "A Delta table"],
            ["iceberg", "An Iceberg table"],
          ],
        },
        { name: "source", label: "Dataset", suggest: suggestDatasets, isShown: isDataset },
        {
          name: "source",
          label: "Location",
          hint: "A folder on the server, or a URL such as s3://lake/clicks; for Iceberg also catalog:namespace.table.",
          isShown: (values) => !isDataset(values),
        },
        {
          name: "shown",
          label: "Rows",
          kind: "select",
          isShown: isDataset,
          options: [
            ["current", "Current state"],
            ["changelog", "All changes"],
          ],
        },
        { name: "at", label: "Tag or branch", isOptional: true, isShown: isDataset },
        { name: "comment", label: "Comment", hint: "A sentence for recipients.", isOptional: true },
      ]}
    />
  );
}

interface Step {
  sign: string;
  text: string;
}

/** A file that declares shares: the difference first, then the change. */
function Apply({ close, done }: FormProperties) {
  const [yaml, setYaml] = useState("");
  const [isPruning, setPruning] = useState(false);
  const [plan, setPlan] = useState<Step[]>();
  const [error, setError] = useState<ApiError>();
  const send = async (dryRun: boolean) => {
    setError(undefined);
    try {
      const steps = await change<Step[]>("PUT", "platform/sharing", { yaml, prune: isPruning, dryRun });
      if (dryRun) setPlan(steps);
      else done(`The file is applied: ${steps.length} changes.`);
    } catch (problem) {
      setError(problem as ApiError);
    }
  };
  return (
    <Dialog title="Apply a file that declares shares" close={close}>
      <div class="stack">
        <label>
          The file, as for odf share apply
          <textarea
            class="secret"
            rows={12}
            spellcheck={false}
            value={yaml}
            onInput={(event) => {
              setYaml(event.currentTarget.value);
              setPlan(undefined);
            }}
          />
        </label>
        <div>
          <input
            id="prune"
            type="checkbox"
            checked={isPruning}
            onChange={(event) => {
              setPruning(event.currentTarget.checked);
              setPlan(undefined);
            }}
          />{" "}
          <label for="prune">Also remove everything that the file does not declare</label>
        </div>
        {error && <Problem error={error} />}
        {plan && (plan.length === 0 ? <p role="status">No changes: everything is as the file declares it.</p> : <pre tabIndex={0}>{plan.map((step) => `${step.sign} ${step.text}\n`).join("")}</pre>)}
        <div class="bar">
          <button type="button" onClick={() => send(true)} disabled={!yaml.trim()}>
            Show the changes
          </button>
          <button type="button" class={plan?.some((step) => step.sign === "-") ? "danger" : "primary"} onClick={() => send(false)} disabled={!plan?.length}>
            {plan?.length ? `Make these ${plan.length} changes` : "Apply"}
          </button>
        </div>
      </div>
    </Dialog>
  );
}
