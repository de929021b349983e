/** Where rows come from: the source of a root dataset, the transformation of a derivative one, and the whole manifest. */
import { useState } from "preact/hooks";
import { get, ofDataset } from "../../api";
import { Fact, Facts, Loading, Problem, Snippet } from "../../components/basics";
import { Table } from "../../components/table";
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
      {transform && <Transformation name={dataset.name} event={transform} names={names} />}
      {sources.map((event, index) => (
        <Source key={index} event={event} />
      ))}
      <details open={!transform && !sources.length}>
        <summary>Manifest</summary>
        <Snippet label="A manifest that creates a dataset like this one" text={value.yaml} />
      </details>
    </>
  );
}

function Transformation({ name, event, names }: { name: string; event: Event; names: Map<string, string | null> }) {
  const inputs = (event["inputs"] ?? []) as { datasetRef: string; alias?: string }[];
  const transform = event["transform"] as Transform;
  const queries = transform.queries ?? [{ query: transform.query ?? "" }];
  return (
    <section>
      <h2>Transformation</h2>
      <p>
        Runs in the engine <code>{transform.engine}</code>, over{" "}
        {inputs.map((input, index) => {
          const known = input.datasetRef.startsWith("did:") ? names.get(input.datasetRef) : input.datasetRef;
          const alias = input.alias ?? known ?? input.datasetRef;
          return (
            <span key={input.datasetRef}>
              {index > 0 && ", "}
              {known ? <a href={href(datasetPath(known))}>{known}</a> : <span title={input.datasetRef}>a dataset that you may not read</span>}
              {alias !== known && (
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
      <Understood name={name} />
    </section>
  );
}

interface Analysis {
  engine: string;
  steps: { alias: string | null; queryClass: string; reason: string; state: string }[];
  outputColumns: string[];
  primaryKey: string[] | null;
  watermark: string | null;
  late: string;
  notes: string[];
}

/** What the engine says of the query: asked for only when somebody wants to know, since it may have to start. */
function Understood({ name }: { name: string }) {
  const [isWanted, want] = useState(false);
  if (!isWanted) {
    return (
      <button type="button" onClick={() => want(true)}>
        Analyze the query
      </button>
    );
  }
  return <Explained name={name} />;
}

function Explained({ name }: { name: string }) {
  const { value, error, reload } = useLoad((signal) => get<Analysis>(ofDataset(name, "analysis"), { signal }), [name]);
  if (error) return <Problem error={error} retry={reload} />;
  if (!value) return <Loading what="Analyzing the query; the engine may take a while to start" />;
  return (
    <>
      <h3>Analysis of the query</h3>
      <Table label="Steps of the query" columns={["Step", "Class", "Reason", "State kept between pulls"]}>
        {value.steps.map((step, index) => (
          <tr key={index}>
            <th scope="row">{step.alias ?? "output"}</th>
            <td>{step.queryClass}</td>
            <td>{step.reason}</td>
            <td>{step.state}</td>
          </tr>
        ))}
      </Table>
      <Facts>
        <Fact name="Key">{value.primaryKey === null ? "none that can be derived from the query" : value.primaryKey.join(", ") || "no columns: at most one row"}</Fact>
        <Fact name="Watermark">{value.watermark ?? "does not advance"}</Fact>
        <Fact name="Late rows">{value.late}</Fact>
      </Facts>
      {value.notes.map((note) => (
        <p key={note}>{note}</p>
      ))}
    </>
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
