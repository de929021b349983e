/** Where rows come from: the source of a root dataset, the query of a derivative one, and the whole manifest. */
import { get, ofDataset } from "../../api";
import { Loading, Problem, Snippet } from "../../components/basics";
import { useLoad } from "../../hooks";
import { datasetPath, href } from "../../router";
import type { Graph } from "../../types";
import type { TabProperties } from "./page";

interface Event {
  kind: string;
  [field: string]: unknown;
}

interface Manifest {
  manifest: { content: { name: string; kind: string; metadata: Event[] } };
  yaml: string;
}

interface Transform {
  kind: string;
  engine: string;
  query?: string;
  queries?: { alias?: string; query: string }[];
}

export function SourceTab({ dataset }: TabProperties) {
  const { value, error, reload } = useLoad(
    (signal) => get<Manifest>(ofDataset(dataset.name, "manifest"), { signal }),
    [dataset.head],
  );
  const graph = useLoad((signal) => get<Graph>(ofDataset(dataset.name, "lineage?downstream=false"), { signal }), [dataset.head]);
  if (error) return <Problem error={error} retry={reload} />;
  if (!value) return <Loading />;
  const events = value.manifest.content.metadata;
  const names = new Map(graph.value?.nodes.map((node) => [node.id, node.name]));
  const transform = events.find((event) => /^SetTransform$/i.test(event.kind));
  const sources = events.filter((event) => /^(SetPollingSource|AddPushSource)$/i.test(event.kind));
  return (
    <>
      {transform && <Query event={transform} names={names} />}
      {sources.map((event, index) => (
        <Source key={index} event={event} />
      ))}
      <details open={!transform && !sources.length}>
        <summary>The whole manifest</summary>
        <Snippet label="A manifest that makes a dataset like this one" text={value.yaml} />
      </details>
    </>
  );
}

function Query({ event, names }: { event: Event; names: Map<string, string | null> }) {
  const inputs = (event["inputs"] ?? []) as { datasetRef: string; alias?: string }[];
  const transform = event["transform"] as Transform;
  const queries = transform.queries ?? [{ query: transform.query ?? "" }];
  return (
    <section>
      <h2>Query</h2>
      <p>
        Runs in the engine <code>{transform.engine}</code>, over{" "}
        {inputs.map((input, index) => {
          const name = input.datasetRef.startsWith("did:") ? names.get(input.datasetRef) : input.datasetRef;
          const alias = input.alias ?? name ?? input.datasetRef;
          return (
            <span key={input.datasetRef}>
              {index > 0 && ", "}
              {name ? <a href={href(datasetPath(name))}>{name}</a> : <span title={input.datasetRef}>a dataset that you may not read</span>}
              {alias !== name && (
                <>
                  {" "}
                  as <code>{alias}</code>
                </>
              )}
            </span>
          );
        })}
        .
      </p>
      {queries.map((query, index) => (
        <Snippet key={index} label={query.alias ?? "SQL"} text={query.query.trim()} />
      ))}
    </section>
  );
}

function Source({ event }: { event: Event }) {
  const { kind, ...parts } = event;
  return (
    <section>
      <h2>{/push/i.test(kind) ? `Push source ${String(event["sourceName"] ?? "")}` : "Polling source"}</h2>
      {Object.entries(parts)
        .filter(([, value]) => value !== null && typeof value === "object")
        .map(([name, value]) => (
          <Snippet key={name} label={name} text={JSON.stringify(value, null, 2)} />
        ))}
    </section>
  );
}
