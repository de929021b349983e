/** Lists that the server pages and searches, however long they are. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call, session } from "../api";
import { count } from "../format";
import { type Loaded, useLoad, useSettled } from "../hooks";
import { Empty, Loading, Problem } from "./basics";
import { type Heading, Table } from "./table";

const PAGE = 50;

export interface List<T> extends Loaded<unknown> {
  items: T[];
  total: number;
  search: string;
  typed: string;
  type: (text: string) => void;
  more: () => void;
}

/** Asks for a list, page by page; `path` has all but search, limit and offset. */
export function useList<T>(path: string, page = PAGE): List<T> {
  const [typed, type] = useState("");
  const search = useSettled(typed, 150);
  const [shown, show] = useState(page);
  useEffect(() => show(page), [path, search, page]);
  const separator = path.includes("?") ? "&" : "?";
  const piece = async (offset: number, limit: number, signal: AbortSignal) => {
    const query = new URLSearchParams({ search, limit: String(limit), offset: String(offset) });
    const answer = await call(`${path}${separator}${query}`, { signal });
    return { items: (await answer.json()) as T[], total: Number(answer.headers.get("X-Total-Count")) };
  };
  const all = async (signal: AbortSignal) => {
    const found = await piece(0, page, signal);
    while (found.items.length < Math.min(shown, found.total)) {
      const next = await piece(found.items.length, page, signal);
      if (!next.items.length) break;
      found.items.push(...next.items);
    }
    return found;
  };
  const loaded = useLoad(all, [path, search, shown, page, session.value.name]);
  return {
    ...loaded,
    items: loaded.value?.items ?? [],
    total: loaded.value?.total ?? 0,
    search,
    typed,
    type,
    more: () => show(shown + page),
  };
}

/** The table of a list, with a field to search it. */
export function ListTable<T>(props: {
  list: List<T>;
  noun: string;
  nouns?: string;
  columns: readonly (string | Heading)[];
  row: (item: T) => ComponentChildren;
  /** What stands there when there is nothing at all. */
  empty: ComponentChildren;
  tools?: ComponentChildren;
}) {
  const { list, noun, nouns = `${noun}s`, columns, row, empty, tools } = props;
  const { items, total, search, typed, type } = list;
  return (
    <>
      <div class="bar">
        <label class="search">
          <span class="hidden">Search {nouns}</span>
          <input type="search" placeholder={`Search ${nouns}`} value={typed} onInput={(event) => type(event.currentTarget.value)} />
        </label>
        {tools}
      </div>
      {list.error && <Problem error={list.error} retry={list.reload} />}
      {!list.value && list.isLoading && <Loading />}
      {list.value && total === 0 && (search ? <Empty title={`No match for “${search}”`} /> : <Empty title={`No ${nouns} yet`}>{empty}</Empty>)}
      {total > 0 && (
        <>
          <p class="dim" role="status">
            {count(total)} {total === 1 ? noun : nouns}
            {search && ` for “${search}”`}
          </p>
          <Table label={nouns} columns={columns}>
            {items.map(row)}
          </Table>
          {items.length < total && (
            <button type="button" onClick={list.more} disabled={list.isLoading}>
              Show more ({count(total - items.length)} left)
            </button>
          )}
        </>
      )}
    </>
  );
}
