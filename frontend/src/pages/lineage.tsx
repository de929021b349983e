/** The graph of all datasets: zoom, search, what holds a watermark back; what is far away is folded. */
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { get, ofDataset, session } from "../api";
import { Ago, Badge, Empty, Loading, Moment, Problem } from "../components/basics";
import { type Fold, folded } from "../components/graph_folds";
import { around, type Layout, lay, neighbours } from "../components/graph_layout";
import { Picture } from "../components/graph_picture";
import { counted } from "../format";
import { useLoad, useSettled, useTitle } from "../hooks";
import { address, datasetPath, href, setParameters } from "../router";
import type { Dataset, Graph, GraphNode } from "../types";

const MOST = 1000; // nodes that are drawn at once; others are folded into the neighbourhood of what one looks for
const LISTED = 2000;

/** Whether a picture would be too small to read, and words come first. */
const narrow = (): boolean => matchMedia("(max-width: 40rem)").matches;

export function LineagePage() {
  useTitle("Lineage");
  const name = address.value.searchParams.get("dataset") ?? "";
  const reach = Number(address.value.searchParams.get("steps") ?? 3);
  const path = name ? ofDataset(name, "lineage") : "lineage";
  const { value: graph, error, reload } = useLoad((signal) => get<Graph>(path, { signal }), [path, session.value.name]);
  const [isNarrow] = useState(narrow);
  const [folds, setFolds] = useState<Fold[]>([]);
  const parts = useMemo(() => (graph ? folded(graph, chosen(graph, name, reach), folds) : undefined), [graph, name, reach, folds]);
  const layout = useMemo(() => (graph && parts ? lay(graph, parts.shown) : undefined), [graph, parts]);
  const toggle = useCallback((fold: Fold) => setFolds((now) => (now.includes(fold) ? now.filter((one) => one !== fold) : [...now, fold])), []);
  if (error) {
    return (
      <>
        <Problem error={error} retry={reload} />
        {name && <a href={href("lineage")}>Lineage of the whole workspace</a>}
      </>
    );
  }
  if (!graph || !parts || !layout) return <Loading what="Loading the lineage" />;
  if (!graph.nodes.length) {
    return (
      <Empty title="No datasets yet">
        {session.value.name ? (
          <p>
            Create one with <code>odf new</code> and <code>odf add</code>; datasets derived from it appear here.
          </p>
        ) : (
          <p>
            This server has no public datasets. <a href={href("signin", { then: href("lineage") })}>Sign in</a> to see others.
          </p>
        )}
      </Empty>
    );
  }
  const left = graph.nodes.length - layout.boxes.length;
  const picture = <Picture layout={layout} selected={name} folds={folds} counts={parts.counts} toggle={toggle} />;
  return (
    <section>
      <div class="bar">
        <h1>Lineage</h1>
        <Find name={name} />
        {name && (
          <>
            <label>
              Steps{" "}
              <input type="number" class="short" min={1} max={50} value={reach} onChange={(event) => setParameters({ steps: event.currentTarget.value })} />
            </label>
            <a href={href("lineage")}>Whole workspace</a>
          </>
        )}
      </div>
      <p class="dim" role="status">
        {counted(layout.boxes.length, "dataset")}
        {left > 0 && `; ${left} more are collapsed: search for one, use more steps, or expand some`}. A thick orange line marks an
        input that holds a watermark back.{" "}
        {folds.length > 0 && (
          <button type="button" class="quiet" onClick={() => setFolds([])}>
            Expand all
          </button>
        )}
      </p>
      {isNarrow ? (
        <>
          <Nearby graph={graph} layout={layout} name={name} />
          <Part title="The lineage as a table" isOpenFirst>
            <Table graph={graph} />
          </Part>
          <Part title="The lineage as a picture">{picture}</Part>
        </>
      ) : (
        <>
          {picture}
          <Part title="The lineage as a table">
            <Table graph={graph} />
          </Part>
        </>
      )}
    </section>
  );
}

/** The datasets to draw: all, where these are few, else those around the chosen one, or those that others depend on. */
function chosen(graph: Graph, name: string, reach: number): Set<string> {
  const start = graph.nodes.find((node) => node.name === name);
  if (start) return around(graph, start.id, reach);
  if (graph.nodes.length <= MOST) return new Set(graph.nodes.map((node) => node.id));
  const near = neighbours(graph);
  const degree = (id: string) => near.get(id)?.length ?? 0;
  const ordered = [...graph.nodes].sort((one, other) => degree(other.id) - degree(one.id));
  return new Set(ordered.slice(0, MOST).map((node) => node.id));
}

/** Looks for datasets of the whole server, also while the lineage of one is shown. */
function Find({ name }: { name: string }) {
  const [typed, type] = useState(name);
  useEffect(() => type(name), [name]);
  const settled = useSettled(typed, 150);
  const { value } = useLoad((signal) => get<Dataset[]>(`datasets?${new URLSearchParams({ search: settled, limit: "50" })}`, { signal }), [settled, session.value.name]);
  const names = (value ?? []).map((dataset) => dataset.name);
  useEffect(() => {
    if (typed !== name && names.includes(typed)) setParameters({ dataset: typed }); // written before names came
  }, [value]);
  const choose = (wanted: string) => {
    type(wanted);
    if (wanted === "" || names.includes(wanted)) setParameters({ dataset: wanted });
  };
  return (
    <form
      class="search"
      onSubmit={(event) => {
        event.preventDefault();
        const fitting = names.find((one) => one.toLowerCase().includes(typed.toLowerCase()));
        if (fitting) choose(fitting);
      }}
    >
      <label>
        <span class="hidden">Find a dataset</span>
        <input type="search" list="lineage-names" placeholder="Find a dataset" value={typed} onInput={(event) => choose(event.currentTarget.value)} />
      </label>
      <datalist id="lineage-names">
        {names.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
    </form>
  );
}

/** A part of the page that is made when somebody opens it. */
function Part({ title, isOpenFirst = false, children }: { title: string; isOpenFirst?: boolean; children: ComponentChildren }) {
  const [isOpen, open] = useState(isOpenFirst);
  return (
    <details open={isOpenFirst} onToggle={(event) => open(event.currentTarget.open)}>
      <summary>{title}</summary>
      {isOpen && children}
    </details>
  );
}

/** What the chosen dataset is derived from, and what is derived from it, one below the other: for narrow screens. */
function Nearby({ graph, layout, name }: { graph: Graph; layout: Layout; name: string }) {
  const chosen = graph.nodes.find((node) => node.name === name);
  if (!chosen) return null;
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]));
  const waits = new Set(layout.lines.filter((line) => line.holdsBack).map((line) => line.id));
  const list = (title: string, ids: string[]) => (
    <>
      <h2>{title}</h2>
      {ids.length === 0 && <p class="dim">nothing</p>}
      <ul class="plain">
        {ids.map((id) => (
          <li key={id}>
            <Neighbour node={nodes.get(id)} holdsBack={waits.has(`${id} ${chosen.id}`)} />
          </li>
        ))}
      </ul>
    </>
  );
  return (
    <section class="nearby">
      {list("Derived from", graph.edges.filter((edge) => edge.output === chosen.id).map((edge) => edge.input))}
      <p class="panel">
        <a href={href(datasetPath(name))}>{name}</a>
        <br />
        <span class="dim">
          complete to <Moment time={chosen.watermark} none="no time" />, <Ago time={chosen.updatedAt} />
        </span>
      </p>
      {list("Datasets derived from it", graph.edges.filter((edge) => edge.input === chosen.id).map((edge) => edge.output))}
    </section>
  );
}

function Neighbour({ node, holdsBack }: { node: GraphNode | undefined; holdsBack: boolean }) {
  if (!node?.name) return <span class="dim">not on this server, or not readable for you</span>;
  return (
    <>
      <a href={href("lineage", { dataset: node.name })}>{node.name}</a>{" "}
      <span class="dim">
        complete to <Moment time={node.watermark} none="no time" />
      </span>{" "}
      {holdsBack && <Badge tone="warn">holds the watermark back</Badge>}
    </>
  );
}

function Table({ graph }: { graph: Graph }) {
  const names = new Map(graph.nodes.map((node) => [node.id, node.name ?? node.id]));
  const inputs = new Map<string, string[]>();
  for (const { input, output } of graph.edges) inputs.set(output, [...(inputs.get(output) ?? []), names.get(input) ?? input]);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Lineage">
      <table class="list lineage">
        <thead>
          <tr>
            <th scope="col">Dataset</th>
            <th scope="col">Derived from</th>
            <th scope="col">Watermark</th>
            <th scope="col">Watermark waits for</th>
            <th scope="col">Updated</th>
          </tr>
        </thead>
        <tbody>
          {graph.nodes.slice(0, LISTED).map((node) => (
            <tr key={node.id}>
              <th scope="row">{node.name ? <a href={href("lineage", { dataset: node.name })}>{node.name}</a> : node.id}</th>
              <td>{(inputs.get(node.id) ?? []).join(", ")}</td>
              <td>
                <Moment time={node.watermark} />
              </td>
              <td>{node.heldBackBy.map((id) => names.get(id)).join(", ")}</td>
              <td>
                <Ago time={node.updatedAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {graph.nodes.length > LISTED && <p class="dim">{counted(graph.nodes.length - LISTED, "dataset")} more: search for one above.</p>}
    </div>
  );
}
