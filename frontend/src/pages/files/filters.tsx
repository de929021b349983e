/** What is looked for, as a form. */
import { useEffect, useId, useState } from "preact/hooks";
import { get, ofDataset } from "../../api";
import { useLoad } from "../../hooks";
import { navigate } from "../../router";
import type { Dataset } from "../../types";
import type { TabProperties } from "../dataset/page";
import { addressOf, type Search } from "./search";
import type { Name } from "./types";

const SUGGESTED = 500;

export function Filters({ dataset, search }: TabProperties & { search: Search }) {
  const whats = useNames(dataset, "");
  const wheres = useNames(dataset, search.what);
  const find = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const text = (name: string) => String(form.get(name) ?? "").trim();
    const [from, to, work] = [text("from"), text("to"), text("work")];
    // Whoever writes a job means it, also where days were chosen before; and the other way round.
    const isNewJob = work !== search.work;
    const times = isNewJob && work ? { from: "", to: "", work } : { from, to, work: from || to ? "" : work };
    navigate(addressOf(dataset.name, search, { what: text("what"), where: text("where"), always: search.always && !from && !to && !work, ...times }));
  };
  return (
    <form class="filters" onSubmit={find} role="search" aria-label="Files">
      <Field name="what" label="What" value={search.what} options={whats} />
      <Field name="where" label="Where" value={search.where} options={search.what ? wheres : []} />
      <Field name="from" label="From" value={search.from} type="date" />
      <Field name="to" label="To" value={search.to} type="date" />
      <Field name="work" label="Job" value={search.work} />
      <div class="bar">
        <button type="submit" class="primary">
          Search
        </button>
        {(search.what || search.where || search.work || search.from || search.to || search.always) && (
          <a href={addressOf(dataset.name, search, { what: "", where: "", work: "", from: "", to: "", always: false })}>Clear</a>
        )}
      </div>
    </form>
  );
}

/** Names to choose from: what there is, or where something comes from. */
function useNames({ name, head }: Dataset, what: string): string[] {
  const parameters = new URLSearchParams({ limit: String(SUGGESTED), head });
  if (what) parameters.set("what", what);
  const { value } = useLoad((signal) => get<Name[]>(ofDataset(name, `files/names?${parameters}`), { signal }), [name, String(parameters)]);
  return (value ?? []).map((one) => one.name);
}

function Field({ name, label, value, type = "text", options }: { name: string; label: string; value: string; type?: "text" | "date"; options?: string[] }) {
  const id = useId();
  const [written, write] = useState(value);
  useEffect(() => write(value), [value]); // other links change what is looked for, too
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input id={id} name={name} type={type} value={written} onInput={(event) => write(event.currentTarget.value)} maxLength={1000} spellcheck={false} autocomplete="off" list={options && `${id}-list`} min={type === "date" ? "0001-01-01" : undefined} max={type === "date" ? "9999-12-31" : undefined} />
      {options && (
        <datalist id={`${id}-list`}>
          {options.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
    </div>
  );
}
