/** What is looked for in an archive: it stands in the address, so that a link shows the same. */
import { datasetPath, href } from "../../router";
import type { FileDay } from "./types";

export interface Search {
  what: string;
  where: string;
  work: string;
  /** Days, both included; empty for no bound. */
  from: string;
  to: string;
  /** Whether all times are meant, and not the last days. */
  always: boolean;
  /** The place of the page among all. */
  cursor: string;
}

export type Change = Partial<Search>;

const ENOUGH = 50;
const DAY = /^\d{4}-\d\d-\d\d$/;

/** What an address looks for. */
export function searchOf({ searchParams }: URL): Search {
  const text = (name: string) => searchParams.get(name)?.trim() ?? "";
  return {
    what: text("what"),
    where: text("where"),
    work: text("work"),
    from: text("from"),
    to: text("to"),
    always: text("when") === "always",
    cursor: text("cursor"),
  };
}

/** The address of another search: it begins with its first page, and times and jobs leave each other out. */
export function addressOf(name: string, search: Search, change: Change): string {
  const changed = { ...search, cursor: "", ...change };
  if (change.work) Object.assign(changed, { from: "", to: "", always: false });
  if (change.from || change.to) Object.assign(changed, { work: "", always: false });
  if (change.always) Object.assign(changed, { work: "", from: "", to: "" });
  const { always, ...texts } = changed;
  return href(datasetPath(name, "files"), { ...texts, when: always ? "always" : "" });
}

/** The address of a file's page. */
export const fileAddress = (name: string, id: string): string => href(datasetPath(name, `files/${encodeURIComponent(id)}`));

/** The first and the last day that are shown: those that were chosen, or the last ones that have a few files. */
export function daysShown(search: Search, days: FileDay[]): { from: string; to: string } {
  if (search.from || search.to || search.work || search.always) return { from: search.from, to: search.to };
  let count = 0;
  let first = days.length;
  while (first > 0 && count < ENOUGH) {
    first -= 1;
    count += days[first]?.numFiles ?? 0;
  }
  return { from: days[first]?.day ?? "", to: days.at(-1)?.day ?? "" };
}

/** The parameters of the call that lists files. */
export function parametersOf(search: Search, shown: { from: string; to: string }): string {
  const found = new URLSearchParams();
  const set = (name: string, value: string) => value && found.set(name, value);
  set("what", search.what);
  set("where", search.where);
  set("work_id", search.work);
  set("start", shown.from);
  set("end", DAY.test(shown.to) ? `${shown.to}T23:59:59.999Z` : shown.to);
  set("cursor", search.cursor);
  return found.toString();
}
