/** What an archive has; and where that comes from, once something is chosen. */
import { ofDataset } from "../../api";
import { ListTable, useList } from "../../components/list";
import { count } from "../../format";
import type { TabProperties } from "../dataset/page";
import { addressOf, type Change, type Search } from "./search";
import type { Name } from "./types";

const SHOWN = 8;

export function NamesTable({ dataset, search }: TabProperties & { search: Search }) {
  const parameters = new URLSearchParams({ head: dataset.head });
  if (search.what) parameters.set("what", search.what);
  const list = useList<Name>(ofDataset(dataset.name, `files/names?${parameters}`), SHOWN);
  const chosen = search.what ? search.where : search.what;
  const choose = (name: string): Change => (search.what ? { where: name } : { what: name });
  return (
    <section>
      <h2>
        {search.what ? `Origins of ${search.what}` : "Contents"}
        {search.what && (
          <a class="aside" href={addressOf(dataset.name, search, { what: "", where: "" })}>
            All contents
          </a>
        )}
      </h2>
      <ListTable
        list={list}
        noun="name"
        columns={[search.what ? "Where" : "What", { name: "Files", isNumber: true }, "First", "Last"]}
        empty={null}
        row={({ name, numFiles, first, last }) => (
          <tr key={name} class={name === chosen ? "chosen" : ""}>
            <th scope="row">
              <a href={addressOf(dataset.name, search, choose(name === chosen ? "" : name))} aria-current={name === chosen ? "true" : undefined} title={name === chosen ? "Clear this filter" : undefined}>
                {name}
              </a>
            </th>
            <td class="number">{count(numFiles)}</td>
            <td class="short">{first.slice(0, 10)}</td>
            <td class="short">{last.slice(0, 10)}</td>
          </tr>
        )}
      />
    </section>
  );
}
