/** Grants: who may read which columns and rows of what is shared. */
import { useState } from "preact/hooks";
import type { ApiError } from "../../api";
import { Confirm, FormDialog, type Values } from "../../components/forms";
import { ListTable, useList } from "../../components/list";
import { ACTIONS } from "../../components/table";
import { change, Notice, of, orNothing, suggestPaths, suggestPrincipals, useNotice } from "./common";
import type { Grant } from "./types";

export function GrantsTab() {
  const list = useList<Grant>("platform/grants");
  const [isAdding, add] = useState(false);
  const [removed, remove] = useState<Grant>();
  const [notice, tell] = useNotice();
  const done = (text: string) => {
    tell(text);
    add(false);
    remove(undefined);
    list.reload();
  };
  return (
    <>
      <Notice text={notice} />
      <h2>Grants</h2>
      <ListTable
        list={list}
        noun="grant"
        columns={["Principal", "Object", "Restrictions", ACTIONS]}
        empty={<p>Recipients and users can only read shared tables with a grant.</p>}
        tools={
          <button type="button" class="primary" onClick={() => add(true)}>
            Add a grant
          </button>
        }
        row={(grant) => (
          <tr key={grant.number}>
            <th scope="row">{grant.principal}</th>
            <td>{grant.path}</td>
            <td>{grant.words}</td>
            <td class="actions">
              <WithdrawButton grant={grant} open={remove} />
            </td>
          </tr>
        )}
      />
      {isAdding && <NewGrant close={() => add(false)} done={done} />}
      {removed && <Withdraw grant={removed} close={() => remove(undefined)} done={done} />}
    </>
  );
}

export function WithdrawButton({ grant, open }: { grant: Grant; open: (grant: Grant) => void }) {
  const label = `Revoke grant ${grant.number}, of ${grant.principal} on ${grant.path}`;
  return (
    <button type="button" class="quiet" aria-label={label} onClick={() => open(grant)}>
      Revoke
    </button>
  );
}

export function Withdraw({ grant, close, done }: { grant: Grant; close: () => void; done: (text: string) => void }) {
  const run = async () => {
    await change("DELETE", of("grants", grant.number));
    done(`${grant.principal} no longer reads ${grant.path} by this grant.`);
  };
  return (
    <Confirm title={`Revoke grant ${grant.number}?`} action={`Revoke it from ${grant.principal}`} run={run} close={close}>
      <p>
        <strong>{grant.principal}</strong> will no longer read {grant.words} of <strong>{grant.path}</strong> by this
        grant. URLs of files that were issued for it expire, too.
      </p>
    </Confirm>
  );
}

export function NewGrant({ initial = {}, close, done }: { initial?: Values; close: () => void; done: (text: string) => void }) {
  const submit = async ({ principal, path, columns, rows }: Values) => {
    const names = orNothing(columns)?.split(",").map((one) => one.trim());
    const made = await change<Grant>("POST", "platform/grants", { principal, path, columns: names?.filter(Boolean), rows: orNothing(rows) });
    done(`${made.principal} reads ${made.words} of ${made.path}.`);
  };
  const fieldOf = ({ message, code }: ApiError): string => {
    if (code === "E761") return "rows";
    if (/has no column|columns/.test(message)) return "columns";
    return /There is no user, recipient or group/.test(message) ? "principal" : "path";
  };
  return (
    <FormDialog
      title="Add a grant"
      action="Add the grant"
      close={close}
      submit={submit}
      fieldOf={fieldOf}
      initial={initial}
      fields={[
        { name: "principal", label: "Principal", hint: "A recipient, a user or a group.", suggest: suggestPrincipals("recipients", "users", "groups") },
        { name: "path", label: "Object", hint: "SHARE, SHARE.SCHEMA or SHARE.SCHEMA.TABLE.", suggest: suggestPaths },
        { name: "columns", label: "Only these columns", hint: "Separated by commas; all if empty.", isOptional: true },
        {
          name: "rows",
          label: "Only rows that match this condition",
          kind: "area",
          hint: "SQL, such as country = recipient('country'), an attribute of the principal; all rows if empty.",
          isOptional: true,
        },
      ]}
    />
  );
}
