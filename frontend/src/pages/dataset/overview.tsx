/** A dataset in short: how much, how fresh, who vouches for it, what it says of itself. */
import { micromark } from "micromark";
import { gfmTable, gfmTableHtml } from "micromark-extension-gfm-table";
import { get, ofDataset } from "../../api";
import { Ago, Badge, Copy, Fact, Facts, Moment, Problem } from "../../components/basics";
import { Chart } from "../../components/chart";
import { count, duration, moment, shortHash, signers, size } from "../../format";
import { useLoad } from "../../hooks";
import { datasetPath, href } from "../../router";
import type { Day, Graph } from "../../types";
import { Verified } from "../home";
import type { TabProperties } from "./page";

interface Metadata {
  output: {
    attachments?: { attachments: { kind: string; items?: { path: string; content: string }[] } };
    license?: { shortName: string; name: string; websiteUrl: string };
  };
}

export function Overview({ dataset }: TabProperties) {
  const days = useLoad((signal) => get<Day[]>(ofDataset(dataset.name, "activity"), { signal }), [dataset.head]);
  const graph = useLoad((signal) => get<Graph>(ofDataset(dataset.name, "lineage"), { signal }), [dataset.head]);
  const metadata = useLoad(
    (signal) => get<Metadata>(ofDataset(dataset.name, "metadata?include=attachments,license"), { signal }),
    [dataset.head],
  );
  const license = metadata.value?.output.license;
  return (
    <>
      {dataset.failure && (
        <div class="problem" role="status">
          <p>
            <strong>
              The last pull failed <Ago time={dataset.failure.time} />
            </strong>{" "}
            <code class="code">{dataset.failure.code}</code>
          </p>
          {dataset.failure.message && <p>{dataset.failure.message}</p>}
        </div>
      )}
      <Facts>
        <Fact name="Rows">{count(dataset.numRecords)}</Fact>
        <Fact name="Size">{size(dataset.dataSize)}</Fact>
        <Fact name="Blocks">{count(dataset.numBlocks)}</Fact>
        <Fact name="Updated">
          <Ago time={dataset.updatedAt} />
        </Fact>
        <Fact name="Watermark">
          <Moment time={dataset.watermark} none="none yet" />
        </Fact>
        <Fact name="Verified here">
          <Verified dataset={dataset} />
        </Fact>
        <Fact name="Last block signed by">{signers(dataset.signedBy) || <span class="dim">nobody</span>}</Fact>
        {license && (
          <Fact name="License">
            {/^https?:/.test(license.websiteUrl) ? <a href={license.websiteUrl} rel="noreferrer">{license.shortName}</a> : license.shortName}
          </Fact>
        )}
        <Fact name="Head">
          <code title={dataset.head}>{shortHash(dataset.head)}</code> <Copy text={dataset.head} />
        </Fact>
      </Facts>
      {dataset.keywords.length > 0 && (
        <p>
          {dataset.keywords.map((word) => (
            <Badge key={word}>{word}</Badge>
          ))}
        </p>
      )}
      {graph.value && <Neighbours dataset={dataset} graph={graph.value} />}
      {days.error && <Problem error={days.error} retry={days.reload} />}
      {days.value && <Days days={days.value} />}
      <Readme metadata={metadata.value} />
    </>
  );
}

/** What the dataset is derived from, what is derived from it, and who holds its watermark back. */
function Neighbours({ dataset, graph }: TabProperties & { graph: Graph }) {
  const names = new Map(graph.nodes.map((node) => [node.id, node]));
  const inputs = graph.edges.filter((edge) => edge.output === dataset.id).map((edge) => edge.input);
  const outputs = graph.edges.filter((edge) => edge.input === dataset.id).map((edge) => edge.output);
  const held = names.get(dataset.id)?.heldBackBy ?? [];
  if (!inputs.length && !outputs.length) return null;
  const links = (ids: string[]) =>
    ids.map((id) => {
      const name = names.get(id)?.name;
      return <li key={id}>{name ? <a href={href(datasetPath(name))}>{name}</a> : <code class="dim">{id.slice(0, 20)}…</code>}</li>;
    });
  return (
    <section class="columns">
      {inputs.length > 0 && (
        <div>
          <h2>Derived from</h2>
          <ul>{links(inputs)}</ul>
        </div>
      )}
      {outputs.length > 0 && (
        <div>
          <h2>What is derived from it</h2>
          <ul>{links(outputs)}</ul>
        </div>
      )}
      {held.length > 0 && (
        <div>
          <h2>Its watermark waits for</h2>
          <ul>{links(held)}</ul>
        </div>
      )}
      <p>
        <a href={href("lineage", { dataset: dataset.name })}>Show it in the lineage</a>
      </p>
    </section>
  );
}

const DAY = 86_400;

/** The days in between, too, at least a week, so that a chart shows when nothing came. */
function everyDay(days: Day[]): [number, Day | undefined][] {
  const known = new Map(days.map((day) => [Date.parse(day.day) / 1000, day]));
  const last = Math.max(...known.keys());
  const found: [number, Day | undefined][] = [];
  for (let time = Math.min(...known.keys(), last - 6 * DAY); time <= last; time += DAY) found.push([time, known.get(time)]);
  return found;
}

function Days({ days }: { days: Day[] }) {
  if (!days.length) return null;
  const every = everyDay(days);
  const times = every.map(([time]) => time);
  return (
    <section>
      <div class="columns">
        <Chart title="Rows per day" times={times} values={every.map(([, day]) => day?.numRecords ?? 0)} asBars />
        {days.some((day) => day.lagSeconds !== null) && (
          <Chart title="Watermark behind the clock" times={times} values={every.map(([, day]) => day?.lagSeconds ?? null)} format={duration} />
        )}
      </div>
      <details>
        <summary>The days as a table</summary>
        <div class="scroll" tabIndex={0} role="region" aria-label="Days">
          <table class="list">
            <thead>
              <tr>
                <th scope="col">Day</th>
                <th scope="col" class="number">
                  Commits
                </th>
                <th scope="col" class="number">
                  Rows
                </th>
                <th scope="col">Watermark</th>
                <th scope="col" class="number">
                  Behind
                </th>
              </tr>
            </thead>
            <tbody>
              {[...days].reverse().map((day) => (
                <tr key={day.day}>
                  <th scope="row">{day.day}</th>
                  <td class="number">{count(day.numCommits)}</td>
                  <td class="number">{count(day.numRecords)}</td>
                  <td>{day.watermark ? moment(day.watermark) : ""}</td>
                  <td class="number">{day.lagSeconds === null ? "" : duration(day.lagSeconds)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </section>
  );
}

/** The attached documents, README first. Markdown becomes elements without any HTML that stands in it. */
function Readme({ metadata }: { metadata: Metadata | undefined }) {
  const items = metadata?.output.attachments?.attachments.items ?? [];
  const readme = items.find((item) => /^readme(\.md)?$/i.test(item.path)) ?? items[0];
  if (!readme) return null;
  const html = micromark(readme.content, { extensions: [gfmTable()], htmlExtensions: [gfmTableHtml()] });
  return (
    <section>
      <h2>{readme.path}</h2>
      <div class="markdown" dangerouslySetInnerHTML={{ __html: html }} />
    </section>
  );
}
