/** The rows that have come, gone or changed between two moments. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { ApiError, get, ofDataset, session } from "../../api";
import { Badge, Empty, Loading, Problem, Value } from "../../components/basics";
import { Table } from "../../components/table";
import { blockChoices, MomentPicker, named } from "../../components/moments";
import { count, counted, moment, shortHash } from "../../format";
import { useLoad } from "../../hooks";
import { address, setParameters } from "../../router";
import type { Block, Comparison, RowChange } from "../../types";
import type { TabProperties } from "./page";

const PAGE = 100;
const SIGNS = { added: "+", removed: "−", changed: "~" } as const;
const TONES = { added: "good", removed: "bad", changed: "warn" } as const;

export function Changes({ dataset }: TabProperties) {
  const parameters = address.value.searchParams;
  const blocks = useLoad((signal) => get<Block[]>(ofDataset(dataset.name, "log?limit=200"), { signal }), [dataset.head]);
  const references = useLoad((signal) => get<Record<string, string>>(ofDataset(dataset.name, "refs"), { signal }), [dataset.head]);
  const choices = useMemo(() => blockChoices(blocks.value ?? []), [blocks.value]);
  const names = useMemo(() => named(references.value ?? {}), [references.value]);
  const old = parameters.get("old") ?? before(blocks.value);
  const now = parameters.get("new") ?? "head";
  const key = parameters.get("key") ?? "";
  if (blocks.error) return <Problem error={blocks.error} retry={blocks.reload} />;
  if (!blocks.value || old === undefined) return <Loading />;
  return (
    <section>
      <div class="bar">
        <MomentPicker label="What changed since" value={old} choose={(value) => setParameters({ old: value })} references={names} blocks={choices} />
        <MomentPicker label="until" value={now} choose={(value) => setParameters({ new: value === "head" ? undefined : value })} references={names} blocks={choices} />
        <Key key={key} value={key} />
      </div>
      <Compared
        key={JSON.stringify([old, now, key, dataset.head])}
        name={dataset.name}
        old={old}
        now={now}
        columns={key}
        words={(text) => wordsOf(text, blocks.value ?? [])}
      />
    </section>
  );
}

/** The block before the last one with rows, so that what came last is shown first; the first block, if there are none. */
function before(blocks: Block[] | undefined): string | undefined {
  const last = blocks?.find((block) => block.content.event["newData"]);
  return blocks && (last?.content.prevBlockHash ?? blocks.at(-1)?.blockHash ?? "0");
}

function Key({ value }: { value: string }) {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    setParameters({ key: String(new FormData(event.currentTarget as HTMLFormElement).get("key")).trim() });
  };
  return (
    <details class="menu">
      <summary>Key{value && `: ${value}`}</summary>
      <form class="stack" onSubmit={submit}>
        <label>
          Key columns, separated by commas
          <input name="key" defaultValue={value} placeholder="the primary key" maxLength={10_000} spellcheck={false} />
        </label>
        <button type="submit">Compare</button>
      </form>
    </details>
  );
}

/** One page; where rows are too large for one answer, pages have fewer of them. */
async function page(name: string, asked: Record<string, string>, skip: number, limit: number, signal: AbortSignal): Promise<Comparison> {
  for (let most = limit; ; most = Math.floor(most / 2)) {
    try {
      const query = new URLSearchParams({ ...asked, skip: String(skip), limit: String(most) });
      return await get<Comparison>(ofDataset(name, `compare?${query}`), { signal });
    } catch (error) {
      const isTooLarge = error instanceof ApiError && error.status === 400 && error.message.includes("MiB") && most > 1;
      if (!isTooLarge) throw error;
    }
  }
}

interface ComparedProperties {
  name: string;
  old: string;
  now: string;
  columns: string;
  words: (moment: string) => string;
}

function Compared({ name, old, now, columns, words }: ComparedProperties) {
  const [steps, setSteps] = useState([0]);
  const [pinned, pin] = useState<[string, string]>();
  const skip = steps.at(-1) ?? 0;
  const asked: Record<string, string> = { old: pinned?.[0] ?? old, new: pinned?.[1] ?? now, ...(columns ? { key: columns } : {}) };
  const { value, error, isLoading, reload } = useLoad((signal) => page(name, asked, skip, PAGE, signal), [skip, session.value.name]);
  useEffect(() => {
    if (value && !pinned) pin([value.old.asAt, value.new.asAt]); // so that all pages are of the same blocks
  }, [value]);
  if (error) {
    return (
      <>
        <Problem error={error} retry={reload} />
        {error.status === 404 && old !== "0" && (
          <button type="button" onClick={() => setParameters({ old: "0" })}>
            Compare with the first block
          </button>
        )}
      </>
    );
  }
  if (!value) return <Loading what="Comparing" />;
  const next = skip + value.rows.length;
  return (
    <div aria-busy={isLoading}>
      <Summary found={value} between={`from ${words(old)} to ${words(now)}`} />
      {value.rows.length > 0 && <Differences found={value} />}
      {(skip > 0 || next < value.total) && (
        <div class="bar">
          <button type="button" disabled={skip === 0 || isLoading} onClick={() => setSteps(steps.slice(0, -1))}>
            Previous
          </button>
          <button type="button" disabled={next >= value.total || isLoading} onClick={() => setSteps([...steps, next])}>
            Next
          </button>
          <span class="dim" role="status">
            {count(skip + 1)} to {count(next)} of {counted(value.total, "difference")}
          </span>
        </div>
      )}
    </div>
  );
}

function Summary({ found, between }: { found: Comparison; between: string }) {
  const { counts, columnChanges, key } = found;
  const kinds = key.length ? (["added", "removed", "changed"] as const) : (["added", "removed"] as const);
  return (
    <>
      <p role="status">
        {kinds.map((kind) => (
          <Badge key={kind} tone={counts[kind] ? TONES[kind] : "plain"}>
            {count(counts[kind])} {kind}
          </Badge>
        ))}{" "}
        <span class="dim">
          {between}; {key.length ? `rows are matched by ${key.join(", ")}` : "whole rows are compared"}
        </span>
      </p>
      {columnChanges.length > 0 && (
        <ul aria-label="Columns that differ">
          {columnChanges.map((one) => (
            <li key={one.column}>
              Column <code>{one.column}</code>{" "}
              {one.old === null ? (
                <>
                  added: <code>{one.new}</code>
                </>
              ) : one.new === null ? (
                <>
                  is gone; it was <code>{one.old}</code>
                </>
              ) : (
                <>
                  was <code>{one.old}</code>, now <code>{one.new}</code>
                </>
              )}
            </li>
          ))}
        </ul>
      )}
      {found.total === 0 && <Empty title="No differences" />}
    </>
  );
}

/** A moment in words. */
function wordsOf(text: string, blocks: Block[]): string {
  const block = blocks.find((one) => one.blockHash === text);
  if (block) return `block ${block.content.sequenceNumber}`;
  if (/^\d{4}-\d\d-\d\d/.test(text)) return moment(text);
  if (/^\d+$/.test(text)) return `block ${text}`;
  return text === "head" ? "now" : text.length > 40 ? `block ${shortHash(text)}…` : text;
}

function Differences({ found }: { found: Comparison }) {
  const columns = [...found.key, ...found.columns.filter((column) => !found.key.includes(column))];
  return (
    <Table label="Differences" columns={["Change", ...columns]} style="differences">
      {found.rows.map((row, index) => (
        <Line key={index} row={row} columns={columns} />
      ))}
    </Table>
  );
}

function Line({ row, columns }: { row: RowChange; columns: string[] }) {
  return (
    <tr class={row.change}>
      <th scope="row">
        <span aria-hidden="true">{SIGNS[row.change]}</span> {row.change}
        {row.count > 1 && ` ${count(row.count)} times`}
      </th>
      {columns.map((column) => (
        <td key={column}>
          <Cells row={row} column={column} />
        </td>
      ))}
    </tr>
  );
}

/** A cell, or the old one beside the new one. */
function Cells({ row, column }: { row: RowChange; column: string }) {
  if (!row.old || !row.new) return <Value value={(row.old ?? row.new)?.[column]} />;
  const [old, now] = [row.old[column], row.new[column]];
  if (JSON.stringify(old) === JSON.stringify(now)) return <Value value={now} />;
  return (
    <>
      <del>
        <span class="hidden">was </span>
        <Value value={old} isExact />
      </del>{" "}
      <ins>
        <span class="hidden">is now </span>
        <Value value={now} isExact />
      </ins>
    </>
  );
}
