/** Access tokens of the workspace. */
import { useState } from "preact/hooks";
import { Badge, Moment } from "../../components/basics";
import { Confirm, FormDialog, ShownOnce, type Values } from "../../components/forms";
import { ListTable, useList } from "../../components/list";
import { ACTIONS } from "../../components/table";
import { moment } from "../../format";
import { change, expires, isAboutTime, Notice, of, orNothing, useNotice } from "./common";
import type { AccessToken } from "./types";

export const SCOPES = {
  read: "reads all datasets",
  write: "also pushes to them",
  admin: "can do everything",
} as const;

export function TokensTab() {
  const list = useList<AccessToken>("platform/tokens");
  const [isAdding, add] = useState(false);
  const [made, show] = useState<AccessToken & { accessToken: string }>();
  const [removed, remove] = useState<AccessToken>();
  const [notice, tell] = useNotice();
  const submit = async (values: Values) => {
    const { name, scope } = values;
    show(await change("POST", "platform/tokens", { name, scope, expires: orNothing(values["expires"]) }));
    add(false);
    list.reload();
  };
  return (
    <>
      <Notice text={notice} />
      <h2>Access tokens</h2>
      <p class="dim">
        An access token is valid for the whole workspace. For single tables, columns or rows, create a recipient and a grant.
      </p>
      <ListTable
        list={list}
        noun="access token"
        columns={["Name", "Scope", "Created", "Expires", ACTIONS]}
        empty={<p>Without a token, only public datasets can be read.</p>}
        tools={
          <button type="button" class="primary" onClick={() => add(true)}>
            Create a token
          </button>
        }
        row={(token) => (
          <tr key={token.name}>
            <th scope="row">{token.name}</th>
            <td>
              <Badge tone={token.scope === "admin" ? "warn" : "plain"}>{token.scope}</Badge> <span class="dim">{SCOPES[token.scope]}</span>
            </td>
            <td>
              <Moment time={token.createdAt} />
            </td>
            <td>
              <Moment time={token.expiresAt} none="never" /> {!token.isGood && <Badge tone="bad">expired</Badge>}
            </td>
            <td class="actions">
              <button type="button" class="quiet" aria-label={`Revoke the token ${token.name}`} onClick={() => remove(token)}>
                Revoke
              </button>
            </td>
          </tr>
        )}
      />
      {isAdding && (
        <FormDialog
          title="Create an access token"
          action="Create the token"
          close={() => add(false)}
          submit={submit}
          fieldOf={(error) => (error.status === 403 ? "scope" : isAboutTime(error) ? "expires" : "name")}
          initial={{ scope: "read", expires: "90d" }}
          fields={[
            { name: "name", label: "Name", hint: "The name in logs, such as ci or alice." },
            {
              name: "scope",
              label: "Scope",
              kind: "select",
              options: Object.entries(SCOPES).map(([scope, words]) => [scope, `${scope}: ${words}`] as const),
            },
            expires,
          ]}
        />
      )}
      {made && (
        <ShownOnce title={`The access token ${made.name}`} text={made.accessToken} close={() => show(undefined)}>
          Anyone who has it {SCOPES[made.scope]}, {made.expiresAt ? `until ${moment(made.expiresAt)}` : "without an expiry"}.
        </ShownOnce>
      )}
      {removed && (
        <Confirm
          title={`Revoke the token ${removed.name}?`}
          action={`Revoke ${removed.name}`}
          close={() => remove(undefined)}
          run={async () => {
            await change("DELETE", of("tokens", removed.name));
            tell(`The token ${removed.name} is revoked.`);
            remove(undefined);
            list.reload();
          }}
        >
          <p>Requests with it are rejected from the next one on. This cannot be undone.</p>
        </Confirm>
      )}
    </>
  );
}
