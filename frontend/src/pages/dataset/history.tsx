/** The blocks of a dataset, newest first, with what points to them and who has signed them. */
import { useEffect, useState } from "preact/hooks";
import { call, get, ofDataset } from "../../api";
import { sliceOf, summaryOf, wordsOf } from "../../blocks";
import { Badge, Hash, Loading, Moment, Problem, SignedBy } from "../../components/basics";
import { shortHash } from "../../format";
import { useLoad } from "../../hooks";
import { address, datasetPath, href } from "../../router";
import { nextOf } from "../../rows";
import type { Block } from "../../types";
import { type Branch, branchOf, type Row, rowsOf } from "./history_graph";
import type { TabProperties } from "./page";

interface Page {
  blocks: Block[];
  next: string | undefined;
}

async function page(name: string, path: string, signal?: AbortSignal): Promise<Page> {
  const answer = await call(ofDataset(name, path), { signal });
  return { blocks: await answer.json(), next: nextOf(answer) };
}

const MOST_BRANCHES = 12; // lanes beside each other

/** What branches and tags have beside the blocks that are shown. */
async function branchesOf(name: string, references: Record<string, string>, shown: Block[], signal: AbortSignal): Promise<Branch[]> {
  const known = new Set(shown.map((block) => block.blockHash));
  const oldest = shown.at(-1)?.content.sequenceNumber ?? 0;
  const found: Branch[] = [];
  for (const [reference, hash] of Object.entries(references)) {
    if (known.has(hash) || found.length >= MOST_BRANCHES) continue;
    const { blocks } = await page(name, `log?limit=100&asOfBlockHash=${hash}`, signal);
    const branch = branchOf(reference, blocks, known, oldest);
    if (!branch) continue;
    found.push(branch);
    for (const block of branch.blocks) known.add(block.blockHash);
  }
  return found;
}

export function HistoryTab({ dataset }: TabProperties) {
  const from = address.value.searchParams.get("from") ?? "";
  const path = `log?limit=100${from ? `&asOfBlockHash=${encodeURIComponent(from)}` : ""}`;
  const first = useLoad((signal) => page(dataset.name, path, signal), [dataset.head, path]);
  const references = useLoad((signal) => get<Record<string, string>>(ofDataset(dataset.name, "refs"), { signal }), [dataset.head]);
  const [more, setMore] = useState<Page[]>([]);
  useEffect(() => setMore([]), [first.value]);
  const pages = first.value ? [first.value, ...more] : [];
  const shown = pages.flatMap((one) => one.blocks);
  const branches = useLoad(
    async (signal) => (from || !references.value || !shown.length ? [] : branchesOf(dataset.name, references.value, shown, signal)),
    [dataset.head, from, references.value, shown.length],
  );
  if (first.error) return <Problem error={first.error} retry={first.reload} />;
  if (!first.value) return <Loading />;
  const next = pages.at(-1)?.next;
  const pointing = new Map<string, string[]>();
  for (const [name, block] of Object.entries(references.value ?? {})) pointing.set(block, [...(pointing.get(block) ?? []), name]);
  return (
    <section>
      {from && (
        <p>
          From block <code>{shortHash(from)}…</code> on, older ones below. <a href={href(datasetPath(dataset.name, "history"))}>All blocks</a>
        </p>
      )}
      <ol class="blocks">
        {rowsOf(shown, branches.value ?? []).map((row) => (
          <BlockLine key={row.block.blockHash} dataset={dataset.name} row={row} names={pointing.get(row.block.blockHash) ?? []} />
        ))}
      </ol>
      {next && (
        <button type="button" onClick={async () => setMore([...more, await page(dataset.name, next)])}>
          Show older blocks
        </button>
      )}
    </section>
  );
}

function Lanes({ row }: { row: Row }) {
  return (
    <span class="lanes" aria-hidden="true">
      {row.marks.map((mark, lane) => (
        <span key={lane} class={`lane ${mark} ${lane === row.lane ? "dot" : ""}`} />
      ))}
    </span>
  );
}

function BlockLine({ dataset, row, names }: { dataset: string; row: Row; names: string[] }) {
  const { block, branch } = row;
  const { content, signatures } = block;
  const wrong = signatures.find((one) => one.error);
  const slice = sliceOf(content.event);
  const summary = summaryOf(content.event);
  return (
    <li>
      <Lanes row={row} />
      <div>
      <div class="block">
        <span class="number dim">{content.sequenceNumber}</span>
        <span>
          <strong title={content.event.kind}>{wordsOf(content.event)}</strong>{" "}
          {names.map((name) => (
            <Badge key={name} tone={name === "head" ? "good" : "info"}>
              {name}
            </Badge>
          ))}
          {branch && !names.includes(branch) && <span class="dim"> on {branch}</span>}
        </span>
        <span>
          {slice && !branch ? <a href={href(datasetPath(dataset, "data"), { view: "changelog", row: String(slice.start) })}>{summary}</a> : summary}{" "}
          {slice && content.prevBlockHash && (
            <a href={href(datasetPath(dataset, "changes"), { old: content.prevBlockHash, new: block.blockHash })} aria-label={`Changes (block ${content.sequenceNumber})`}>
              Changes
            </a>
          )}
        </span>
        {wrong ? (
          <Badge tone="bad" title={wrong.error ?? ""}>
            signature not valid
          </Badge>
        ) : (
          <span class="dim cut">
            {signatures.length > 0 ? (
              <>
                signed by <SignedBy names={signatures.map((one) => one.name ?? one.signer ?? "an unknown key")} />
              </>
            ) : (
              "not signed"
            )}
          </span>
        )}
        <span class="dim">
          <Moment time={content.systemTime} />
        </span>
      </div>
      <details>
        <summary>
          Block <code>{shortHash(block.blockHash)}…</code>
        </summary>
        <p>
          <Hash text={block.blockHash} isShort={false} />
        </p>
        <pre tabIndex={0}>{JSON.stringify(content, null, 2)}</pre>
      </details>
      </div>
    </li>
  );
}
