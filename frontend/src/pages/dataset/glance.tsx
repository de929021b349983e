/** A dataset at a glance: whether it is fresh, signed and verified, what has changed recently. */
import { get, ofDataset } from "../../api";
import { sliceOf, summaryOf, wordsOf } from "../../blocks";
import { Ago, Badge, Copy, Moment, Problem, SignedBy } from "../../components/basics";
import { duration } from "../../format";
import { useLoad } from "../../hooks";
import { datasetPath, href } from "../../router";
import type { Block, Dataset, Graph } from "../../types";
import { Verified } from "../home";

const LOOKED_AT = 60; // blocks, for a rhythm
const SHOWN = 5;
const ONE_PULL = 600; // seconds: commits that are so near to each other are of one pull

export function Glance({ dataset, graph }: { dataset: Dataset; graph: Graph | undefined }) {
  const { value, error, reload } = useLoad(
    (signal) => get<Block[]>(ofDataset(dataset.name, `log?limit=${LOOKED_AT}`), { signal }),
    [dataset.head],
  );
  return (
    <div class="cards">
      <Freshness dataset={dataset} blocks={value ?? []} graph={graph} />
      <Trust dataset={dataset} />
      <section class="card">
        <h2>What changed recently?</h2>
        {error && <Problem error={error} retry={reload} />}
        <ol class="changes">
          {(value ?? []).slice(0, SHOWN).map((block) => (
            <Change key={block.blockHash} name={dataset.name} block={block} />
          ))}
        </ol>
        <a href={href(datasetPath(dataset.name, "changes"))}>Which rows changed?</a> <a href={href(datasetPath(dataset.name, "history"))}>Full history</a>
      </section>
    </div>
  );
}

function Change({ name, block }: { name: string; block: Block }) {
  const { event, systemTime } = block.content;
  const slice = sliceOf(event);
  const what = slice ? summaryOf(event) : [wordsOf(event), summaryOf(event)].filter(Boolean).join(": ");
  return (
    <li>
      <span class="dim">
        <Ago time={systemTime} />
      </span>{" "}
      {slice ? <a href={href(datasetPath(name, "data"), { view: "changelog", row: String(slice.start) })}>{what}</a> : <span class="cut" title={event.kind}>{what}</span>}
    </li>
  );
}

/** The usual time between two pulls that brought rows, in seconds; undefined if there were too few. */
export function rhythmOf(times: number[]): number | undefined {
  const pulls = [...times].sort((one, other) => one - other).filter((time, at, all) => at === 0 || time - (all[at - 1] ?? 0) > ONE_PULL);
  const gaps = pulls.slice(1).map((time, at) => time - (pulls[at] ?? 0)).sort((one, other) => one - other);
  return gaps.length >= 3 ? gaps[Math.floor(gaps.length / 2)] : undefined;
}

function Freshness({ dataset, blocks, graph }: { dataset: Dataset; blocks: Block[]; graph: Graph | undefined }) {
  const now = Date.now() / 1000;
  const rhythm = rhythmOf(blocks.filter((block) => sliceOf(block.content.event)).map((block) => Date.parse(block.content.systemTime) / 1000));
  const isLate = rhythm !== undefined && dataset.updatedAt !== null && now - Date.parse(dataset.updatedAt) / 1000 > 2 * rhythm;
  const behind = dataset.watermark ? now - Date.parse(dataset.watermark) / 1000 : undefined;
  const nodes = new Map(graph?.nodes.map((node) => [node.id, node.name]));
  const held = (nodes.size ? (graph?.nodes.find((node) => node.id === dataset.id)?.heldBackBy ?? []) : []).map((id) => nodes.get(id));
  return (
    <section class="card">
      <h2>Is it fresh?</h2>
      <p>
        {dataset.updatedAt ? (
          <>
            <strong>
              Last rows <Ago time={dataset.updatedAt} />
            </strong>{" "}
            {dataset.failure ? (
              <Badge tone="bad">pulls fail</Badge>
            ) : dataset.isPaused ? (
              <Badge tone="warn">paused</Badge>
            ) : dataset.maxAge ? (
              <Badge tone={dataset.isLate ? "bad" : "good"}>{dataset.isLate ? "late" : "on time"}</Badge>
            ) : (
              rhythm !== undefined && <Badge tone={isLate ? "warn" : "good"}>{isLate ? "later than usual" : "on time"}</Badge>
            )}
          </>
        ) : (
          <strong>No rows yet</strong>
        )}
        {dataset.isPaused ? (
          <span class="dim">
            {" "}
            <a href={href(datasetPath(dataset.name, "runs"))}>Its schedule</a> is paused, and has no maximum age meanwhile
          </span>
        ) : dataset.maxAge ? (
          <span class="dim">
            {" "}
            <a href={href(datasetPath(dataset.name, "runs"))}>Its schedule</a> promises new rows at least every {dataset.maxAge}
          </span>
        ) : (
          rhythm !== undefined && <span class="dim"> usually every {duration(rhythm)}</span>
        )}
      </p>
      {!dataset.updatedAt && (
        <p>
          {dataset.kind === "Root" ? (
            <>
              Add some with <code>odf pull {dataset.name}</code> or <code>odf ingest {dataset.name} FILE</code>.
            </>
          ) : (
            <>
              Compute them with <code>odf pull {dataset.name}</code>.
            </>
          )}
        </p>
      )}
      <p>
        {dataset.watermark ? (
          <>
            Complete up to <Moment time={dataset.watermark} /> <span class="dim">(watermark{behind !== undefined && behind > 0 && `, ${duration(behind)} behind the current time`})</span>
          </>
        ) : (
          <span class="dim">No watermark: not known up to when it is complete.</span>
        )}
      </p>
      {held.length > 0 && (
        <p>
          The watermark waits for{" "}
          {held.map((name, at) => (
            <span key={name ?? at}>
              {at > 0 && ", "}
              {name ? <a href={href(datasetPath(name))}>{name}</a> : "a dataset that you may not read"}
            </span>
          ))}
        </p>
      )}
    </section>
  );
}

function Trust({ dataset }: { dataset: Dataset }) {
  const { verification } = dataset;
  const command = `odf verify ${dataset.name}`;
  return (
    <section class="card">
      <h2>Is it signed and verified?</h2>
      <p>
        {dataset.signedBy.length ? (
          <>
            Last block signed by{" "}
            <strong>
              <SignedBy names={dataset.signedBy} />
            </strong>
          </>
        ) : (
          <strong>The last block is not signed</strong>
        )}
      </p>
      <p>
        {verification ? (
          <>
            <a href={href(datasetPath(dataset.name, "verify"))}>
              <Verified dataset={dataset} />
            </a>{" "}
            <Ago time={verification.time} />
            <span class="dim">: {verification.isReplayed ? "hashes, rules, and a replay of every transform" : "hashes and rules"}</span>
          </>
        ) : (
          <>
            <Badge tone="warn">not verified here</Badge> <a href={href(datasetPath(dataset.name, "verify"))}>Verify it</a>
          </>
        )}
      </p>
      {!(verification?.ok && verification.isCurrent) && (
        <p class="whole">
          Verify it: <code>{command}</code> <Copy text={command} />
        </p>
      )}
    </section>
  );
}
