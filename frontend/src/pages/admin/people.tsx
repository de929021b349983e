/** Recipients, users and groups: the list of a kind; behind each name, all there is of it. */
import { useState } from "preact/hooks";
import { Ago, Badge } from "../../components/basics";
import { FormDialog, type Values } from "../../components/forms";
import { ListTable, useList } from "../../components/list";
import { address, href, navigate, pathOf } from "../../router";
import { attributesOf, change } from "./common";
import type { PartProperties } from "./page";
import { personPath } from "./paths";
import { PersonPage } from "./person";
import { PreviewPage } from "./preview";
import type { Kind, Principal } from "./types";

export const ABOUT: Record<Kind, { one: string; words: string; columns: string[] }> = {
  recipients: { one: "recipient", words: "Principals outside of your organization, who read granted tables over Delta Sharing.", columns: ["Name", "Attributes", "Added"] },
  users: { one: "user", words: "Members of your organization, who read granted tables, and may have a password.", columns: ["Name", "Attributes", "Added"] },
  groups: { one: "group", words: "A grant to a group applies to all of its members.", columns: ["Name", "Members", "Added"] },
};

export function PeopleTab({ rest }: PartProperties) {
  const kind = pathOf(address.value).split("/")[1] as Kind;
  const [name, part, ...table] = rest;
  if (!name) return <People key={kind} kind={kind} />;
  if (part === "tables") return <PreviewPage kind={kind} name={name} table={table} />;
  return <PersonPage kind={kind} name={name} />;
}

function People({ kind }: { kind: Kind }) {
  const { one, words, columns } = ABOUT[kind];
  const list = useList<Principal>(`platform/${kind}`);
  const [isAdding, add] = useState(false);
  const submit = async (values: Values) => {
    const made = await change<Principal>("POST", `platform/${kind}`, {
      name: values["name"],
      attributes: attributesOf(values["attributes"] ?? ""),
    });
    navigate(href(personPath(kind, made.name)));
  };
  return (
    <>
      <h2>{kind[0]?.toUpperCase() + kind.slice(1)}</h2>
      <p class="dim">{words}</p>
      <ListTable
        list={list}
        noun={one}
        columns={columns}
        empty={null}
        tools={
          <button type="button" class="primary" onClick={() => add(true)}>
            Add a {one}
          </button>
        }
        row={(person) => (
          <tr key={person.name}>
            <th scope="row">
              <a href={href(personPath(kind, person.name))}>{person.name}</a> {person.isDisabled && <Badge tone="bad">{kind === "groups" ? "disabled" : "disabled"}</Badge>}
              {person.isAdmin && <Badge tone="warn">admin</Badge>}
            </th>
            <td>
              {person.members ? cut(person.members) : Object.entries(person.attributes).map(([key, value]) => <Badge key={key}>{`${key}=${value}`}</Badge>)}
            </td>
            <td>
              <Ago time={person.createdAt} />
            </td>
          </tr>
        )}
      />
      {isAdding && (
        <FormDialog
          title={`Add a ${one}`}
          action={`Add the ${one}`}
          close={() => add(false)}
          submit={submit}
          fieldOf={() => "name"}
          fields={[
            { name: "name", label: "Name" },
            {
              name: "attributes",
              label: "Attributes",
              kind: "area",
              hint: "One per line, such as country=DE. Conditions of grants can refer to them.",
              isOptional: true,
              isShown: () => kind !== "groups",
            },
          ]}
        />
      )}
    </>
  );
}

const MOST = 8;
function cut(names: string[]): string {
  const shown = names.slice(0, MOST).join(", ") || "nobody";
  return names.length > MOST ? `${shown} and ${names.length - MOST} more` : shown;
}
