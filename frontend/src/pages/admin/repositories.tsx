/** Repositories, and servers with a login. */
import { useState } from "preact/hooks";
import { get } from "../../api";
import { Badge, Problem } from "../../components/basics";
import { Confirm, FormDialog } from "../../components/forms";
import { ListTable, useList } from "../../components/list";
import { ACTIONS } from "../../components/table";
import { useLoad } from "../../hooks";
import { change, Notice, of, useNotice } from "./common";
import type { Repository } from "./types";

export function RepositoriesTab() {
  const list = useList<Repository>("platform/repositories");
  const servers = useLoad((signal) => get<{ url: string }[]>("platform/servers", { signal }), []);
  const [isAdding, add] = useState(false);
  const [removed, remove] = useState<Repository>();
  const [notice, tell] = useNotice();
  return (
    <>
      <Notice text={notice} />
      <h2>Repositories</h2>
      <p class="dim">Named locations from which datasets are pulled, and to which they are pushed.</p>
      <ListTable
        list={list}
        noun="repository"
        nouns="repositories"
        columns={["Name", "URL", "Login", ACTIONS]}
        empty={null}
        tools={
          <button type="button" class="primary" onClick={() => add(true)}>
            Add a repository
          </button>
        }
        row={(one) => (
          <tr key={one.name}>
            <th scope="row">{one.name}</th>
            <td>{one.url}</td>
            <td>{one.hasLogin ? <Badge tone="good">token stored</Badge> : <span class="dim">none</span>}</td>
            <td class="actions">
              <button type="button" class="quiet" aria-label={`Remove the repository ${one.name}`} onClick={() => remove(one)}>
                Remove
              </button>
            </td>
          </tr>
        )}
      />
      <h2>Servers with a login</h2>
      {servers.error && <Problem error={servers.error} retry={servers.reload} />}
      {servers.value?.length === 0 && (
        <p class="dim">
          None. Add one with <code>odf login URL</code> on the machine of this server.
        </p>
      )}
      <ul>
        {servers.value?.map((one) => (
          <li key={one.url}>{one.url}</li>
        ))}
      </ul>
      {isAdding && (
        <FormDialog
          title="Add a repository"
          action="Add the repository"
          close={() => add(false)}
          fieldOf={(error) => (error.status === 409 || /name/i.test(error.message) ? "name" : "url")}
          fields={[
            { name: "name", label: "Name", hint: "As in odf pull NAME/DATASET." },
            { name: "url", label: "URL", hint: "Such as odf+https://data.example.com, s3://bucket/folder, or a path on the server." },
          ]}
          submit={async ({ name, url }) => {
            await change("POST", "platform/repositories", { name, url });
            add(false);
            tell(`The repository ${name} is added.`);
            list.reload();
          }}
        />
      )}
      {removed && (
        <Confirm
          title={`Remove the repository ${removed.name}?`}
          action={`Remove ${removed.name}`}
          close={() => remove(undefined)}
          run={async () => {
            await change("DELETE", of("repositories", removed.name));
            tell(`The repository ${removed.name} is removed.`);
            remove(undefined);
            list.reload();
          }}
        >
          <p>
            What is in {removed.url} stays. Datasets that are pulled from it or pushed to it by this name no longer find it.
          </p>
        </Confirm>
      )}
    </>
  );
}
