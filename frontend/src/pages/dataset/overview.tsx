/** A dataset in short: how much, how fresh, who vouches for it, what it says of itself. */
import { get, ofDataset } from "../../api";
import { Badge, Fact, Facts, Hash, Problem } from "../../components/basics";
import { Markdown } from "../../components/markdown";
import { count, RECORDS, size } from "../../format";
import { useLoad } from "../../hooks";
import { datasetPath, href } from "../../router";
import type { Day, Graph } from "../../types";
import { Activity } from "./activity";
import type { Summary } from "../files/types";
import { FailedPull } from "./failed_pull";
import { Glance } from "./glance";
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
      {dataset.failure && <FailedPull name={dataset.name} failure={dataset.failure} />}
      <Glance dataset={dataset} graph={graph.value} />
      <Facts>
        {dataset.isArchive && <FilesFacts dataset={dataset} />}
        <Fact name="Records" title={RECORDS}>
          {count(dataset.numRecords)}
        </Fact>
        <Fact name={dataset.isArchive ? "Size of records" : "Size"}>{size(dataset.dataSize)}</Fact>
        <Fact name="Blocks">{count(dataset.numBlocks)}</Fact>
        {license && (
          <Fact name="License">
            {/^https?:/.test(license.websiteUrl) ? <a href={license.websiteUrl} rel="noreferrer">{license.shortName}</a> : license.shortName}
          </Fact>
        )}
        <Fact name="Head">
          <Hash text={dataset.head} />
        </Fact>
        <Fact name="Id">
          <Hash text={dataset.id} />
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
      {days.value && <Activity days={days.value} />}
      <Readme metadata={metadata.value} />
    </>
  );
}

/** How many files an archive keeps, and their bytes. */
function FilesFacts({ dataset }: TabProperties) {
  const { value, error } = useLoad((signal) => get<Summary>(ofDataset(dataset.name, "files/summary"), { signal }), [dataset.head]);
  const waiting = error ? "unknown" : "…";
  return (
    <>
      <Fact name="Files" title="files that are neither withdrawn nor expired">
        <a href={href(datasetPath(dataset.name, "files"))}>{value ? count(value.numFiles) : waiting}</a>
      </Fact>
      <Fact name="Bytes of files" title={value && `${count(value.size)} bytes; equal contents count each time`}>
        {value ? size(value.size) : waiting}
      </Fact>
    </>
  );
}

/** What the dataset is derived from, and what is derived from it. */
function Neighbours({ dataset, graph }: TabProperties & { graph: Graph }) {
  const names = new Map(graph.nodes.map((node) => [node.id, node]));
  const inputs = graph.edges.filter((edge) => edge.output === dataset.id).map((edge) => edge.input);
  const outputs = graph.edges.filter((edge) => edge.input === dataset.id).map((edge) => edge.output);
  if (!inputs.length && !outputs.length) return null;
  const links = (ids: string[]) =>
    ids.map((id) => {
      const name = names.get(id)?.name;
      return <li key={id}>{name ? <a href={href(datasetPath(name))}>{name}</a> : <code class="dim">{id.slice(0, 20)}…</code>}</li>;
    });
  return (
    <section>
      <h2>
        Lineage <a class="aside" href={href("lineage", { dataset: dataset.name })}>Show as a graph</a>
      </h2>
      <div class="columns">
      {inputs.length > 0 && (
        <div>
          <h3>Derived from</h3>
          <ul>{links(inputs)}</ul>
        </div>
      )}
      {outputs.length > 0 && (
        <div>
          <h3>Datasets derived from it</h3>
          <ul>{links(outputs)}</ul>
        </div>
      )}
      </div>
    </section>
  );
}

/** The attached documents, README first. */
function Readme({ metadata }: { metadata: Metadata | undefined }) {
  const items = metadata?.output.attachments?.attachments.items ?? [];
  const readme = items.find((item) => /^readme(\.md)?$/i.test(item.path)) ?? items[0];
  if (!readme) return null;
  return (
    <section>
      <h2>{readme.path}</h2>
      <Markdown text={readme.content} />
    </section>
  );
}
