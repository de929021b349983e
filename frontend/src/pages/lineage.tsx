/** The graph of all datasets: zoom, search, what holds a watermark back; what is far away is folded. */
import dagre from "@dagrejs/dagre";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, ofDataset, session } from "../api";
import { Empty, Loading, Problem } from "../components/basics";
import { type Fold, folded, Handles, type Way } from "../components/graph_folds";
import { age, compact, counted } from "../format";
import { useLoad, useTitle } from "../hooks";
import { address, datasetPath, href, navigate, setParameters } from "../router";
import type { Graph, GraphNode } from "../types";

const WIDTH = 230;
const HEIGHT = 64;
const MOST = 400; // nodes that are drawn at once; others are folded into the neighbourhood of what one looks for

interface Box extends GraphNode {
  x: number;
  y: number;
  hidden: number;
}

interface Layout {
  boxes: Box[];
  lines: { id: string; path: string; holdsBack: boolean }[];
  width: number;
  height: number;
}

/** The nodes within some steps of one, in both directions. */
function around(graph: Graph, start: string, steps: number): Set<string> {
  const next = new Map<string, string[]>();
  for (const { input, output } of graph.edges) {
    next.set(input, [...(next.get(input) ?? []), output]);
    next.set(output, [...(next.get(output) ?? []), input]);
  }
  let edge = [start];
  const found = new Set(edge);
  for (let step = 0; step < steps && edge.length; step += 1) {
    edge = edge.flatMap((id) => next.get(id) ?? []).filter((id) => !found.has(id));
    for (const id of edge) found.add(id);
  }
  return found;
}

function lay(graph: Graph, shown: Set<string>): Layout {
  const drawing = new dagre.graphlib.Graph();
  drawing.setGraph({ rankdir: "LR", nodesep: 18, ranksep: 70, marginx: 20, marginy: 20 });
  drawing.setDefaultEdgeLabel(() => ({}));
  const nodes = graph.nodes.filter((node) => shown.has(node.id));
  for (const node of nodes) drawing.setNode(node.id, { width: WIDTH, height: HEIGHT });
  const hidden = new Map<string, number>();
  for (const { input, output } of graph.edges) {
    if (shown.has(input) && shown.has(output)) drawing.setEdge(input, output);
    else if (shown.has(input)) hidden.set(input, (hidden.get(input) ?? 0) + 1);
    else if (shown.has(output)) hidden.set(output, (hidden.get(output) ?? 0) + 1);
  }
  dagre.layout(drawing);
  const back = new Map(graph.edges.map((edge) => [`${edge.input} ${edge.output}`, edge.holdsBack]));
  const lines = drawing.edges().map((edge) => {
    const { points } = drawing.edge(edge) as { points: { x: number; y: number }[] };
    const [start, ...rest] = points;
    const path = `M${start?.x ?? 0},${start?.y ?? 0}${rest.map((point) => `L${point.x},${point.y}`).join("")}`;
    return { id: `${edge.v} ${edge.w}`, path, holdsBack: back.get(`${edge.v} ${edge.w}`) ?? false };
  });
  const boxes = nodes.map((node) => {
    const { x, y } = drawing.node(node.id) as { x: number; y: number };
    return { ...node, x: x - WIDTH / 2, y: y - HEIGHT / 2, hidden: hidden.get(node.id) ?? 0 };
  });
  const { width = 0, height = 0 } = drawing.graph();
  return { boxes, lines, width, height };
}

export function LineagePage() {
  useTitle("Lineage");
  const name = address.value.searchParams.get("dataset") ?? "";
  const reach = Number(address.value.searchParams.get("steps") ?? 3);
  const path = name ? ofDataset(name, "lineage") : "lineage";
  const { value: graph, error, reload } = useLoad((signal) => get<Graph>(path, { signal }), [path, session.value.name]);
  const [folds, setFolds] = useState<Fold[]>([]);
  const parts = useMemo(() => (graph ? folded(graph, chosen(graph, name, reach), folds) : undefined), [graph, name, reach, folds]);
  const layout = useMemo(() => (graph && parts ? lay(graph, parts.shown) : undefined), [graph, parts]);
  const toggle = (fold: Fold) => setFolds(folds.includes(fold) ? folds.filter((one) => one !== fold) : [...folds, fold]);
  if (error) return <Problem error={error} retry={reload} />;
  if (!graph || !parts || !layout) return <Loading what="Finding out what is derived from what" />;
  if (!graph.nodes.length) return <Empty title="No datasets yet" />;
  const left = graph.nodes.length - layout.boxes.length;
  return (
    <section>
      <div class="bar">
        <h1>Lineage</h1>
        <Find graph={graph} name={name} />
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
        {left > 0 && `; ${left} more are folded: look for one, take more steps, or unfold some`}. A thick orange line holds a
        watermark back.{" "}
        {folds.length > 0 && (
          <button type="button" class="quiet" onClick={() => setFolds([])}>
            Unfold everything
          </button>
        )}
      </p>
      <Picture layout={layout} selected={name} folds={folds} counts={parts.counts} toggle={toggle} />
      <AsTable graph={graph} />
    </section>
  );
}

/** The datasets to draw: all, where these are few, else those around the chosen one, or those that others depend on. */
function chosen(graph: Graph, name: string, reach: number): Set<string> {
  const start = graph.nodes.find((node) => node.name === name);
  if (start) return around(graph, start.id, reach);
  if (graph.nodes.length <= MOST) return new Set(graph.nodes.map((node) => node.id));
  const degrees = new Map<string, number>();
  for (const { input, output } of graph.edges) {
    degrees.set(input, (degrees.get(input) ?? 0) + 1);
    degrees.set(output, (degrees.get(output) ?? 0) + 1);
  }
  const ordered = [...graph.nodes].sort((one, other) => (degrees.get(other.id) ?? 0) - (degrees.get(one.id) ?? 0));
  return new Set(ordered.slice(0, MOST).map((node) => node.id));
}

function Find({ graph, name }: { graph: Graph; name: string }) {
  const [typed, type] = useState(name);
  useEffect(() => type(name), [name]);
  const choose = (value: string) => {
    type(value);
    if (value === "" || graph.nodes.some((node) => node.name === value)) setParameters({ dataset: value });
  };
  const fitting = graph.nodes.filter((node) => node.name?.toLowerCase().includes(typed.toLowerCase())).slice(0, 50);
  return (
    <label class="search">
      <span class="hidden">Find a dataset</span>
      <input type="search" list="lineage-names" placeholder="Find a dataset" value={typed} onInput={(event) => choose(event.currentTarget.value)} />
      <datalist id="lineage-names">
        {fitting.map((node) => (
          <option key={node.id} value={node.name ?? ""} />
        ))}
      </datalist>
    </label>
  );
}

interface View {
  x: number;
  y: number;
  scale: number;
}

/** The picture: the wheel zooms, the mouse and the arrow keys move, + and - zoom, 0 shows all. */
interface PictureProperties {
  layout: Layout;
  selected: string;
  folds: Fold[];
  counts: Map<Fold, number>;
  toggle: (fold: Fold) => void;
}

function Picture({ layout, selected, folds, counts, toggle }: PictureProperties) {
  const frame = useRef<HTMLDivElement>(null);
  const [view, set] = useState<View>({ x: 0, y: 0, scale: 1 });
  const drag = useRef<{ x: number; y: number } | undefined>(undefined);
  const fit = () => {
    const { clientWidth = 1, clientHeight = 1 } = frame.current ?? {};
    const scale = Math.min(1.2, clientWidth / Math.max(1, layout.width), clientHeight / Math.max(1, layout.height));
    const box = layout.boxes.find((one) => one.name === selected);
    if (box && scale < 0.6) set({ scale: 0.8, x: clientWidth / 2 - box.x * 0.8, y: clientHeight / 2 - box.y * 0.8 });
    else set({ scale, x: Math.max(0, (clientWidth - layout.width * scale) / 2), y: Math.max(0, (clientHeight - layout.height * scale) / 2) });
  };
  const kept = useRef<{ id: string; x: number; y: number } | undefined>(undefined);
  useEffect(() => {
    const anchor = kept.current;
    const box = anchor && layout.boxes.find((one) => one.id === anchor.id);
    kept.current = undefined;
    // A dataset whose handle was clicked stays where it is.
    if (anchor && box) set((now) => ({ ...now, x: now.x + (anchor.x - box.x) * now.scale, y: now.y + (anchor.y - box.y) * now.scale }));
    else fit();
  }, [layout]);
  const fold = (box: Box, way: Way) => {
    kept.current = { id: box.id, x: box.x, y: box.y };
    toggle(`${way} ${box.id}`);
  };
  const zoom = (factor: number, x = (frame.current?.clientWidth ?? 0) / 2, y = (frame.current?.clientHeight ?? 0) / 2) =>
    set((now) => {
      const scale = Math.min(3, Math.max(0.02, now.scale * factor));
      const ratio = scale / now.scale;
      return { scale, x: x - (x - now.x) * ratio, y: y - (y - now.y) * ratio };
    });
  useEffect(() => {
    const element = frame.current;
    const turned = (event: WheelEvent) => {
      event.preventDefault();
      const place = element?.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY / 400), event.clientX - (place?.left ?? 0), event.clientY - (place?.top ?? 0));
    };
    element?.addEventListener("wheel", turned, { passive: false });
    return () => element?.removeEventListener("wheel", turned);
  }, []);
  const move = (x: number, y: number) => set((now) => ({ ...now, x: now.x + x, y: now.y + y }));
  const keys: Record<string, () => void> = {
    ArrowLeft: () => move(60, 0),
    ArrowRight: () => move(-60, 0),
    ArrowUp: () => move(0, 60),
    ArrowDown: () => move(0, -60),
    "+": () => zoom(1.25),
    "=": () => zoom(1.25),
    "-": () => zoom(0.8),
    "0": fit,
  };
  return (
    <div class="picture">
      <div class="tools">
        <button type="button" onClick={() => zoom(1.25)} aria-label="Zoom in">
          +
        </button>
        <button type="button" onClick={() => zoom(0.8)} aria-label="Zoom out">
          −
        </button>
        <button type="button" onClick={fit}>
          Fit
        </button>
      </div>
      <div
        class="frame"
        ref={frame}
        tabIndex={0}
        role="group"
        aria-label="Lineage; arrow keys move, plus and minus zoom, zero shows all. The table below has the same."
        onKeyDown={(event) => {
          const act = keys[event.key];
          if (act && event.target === frame.current) {
            event.preventDefault();
            act();
          }
        }}
        onPointerDown={(event) => {
          if ((event.target as Element).closest("a, [role=button]")) return;
          drag.current = { x: event.clientX, y: event.clientY };
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove={(event) => {
          if (!drag.current) return;
          move(event.clientX - drag.current.x, event.clientY - drag.current.y);
          drag.current = { x: event.clientX, y: event.clientY };
        }}
        onPointerUp={() => {
          drag.current = undefined;
        }}
      >
        <svg width={layout.width} height={layout.height} style={{ transform: `translate(${view.x}px, ${view.y}px) scale(${view.scale})` }}>
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
              <path d="M0,0L8,4L0,8z" class="tip" />
            </marker>
          </defs>
          {layout.lines.map((line) => (
            <path key={line.id} d={line.path} class={line.holdsBack ? "line back" : "line"} marker-end="url(#arrow)" />
          ))}
          {layout.boxes.map((box) => (
            <g key={box.id}>
              <Node box={box} isSelected={box.name === selected && selected !== ""} />
              <Handles box={box} width={WIDTH} height={HEIGHT} folds={folds} counts={counts} toggle={(way) => fold(box, way)} />
            </g>
          ))}
        </svg>
      </div>
    </div>
  );
}

function Node({ box, isSelected }: { box: Box; isSelected: boolean }) {
  if (!box.name) {
    return (
      <g transform={`translate(${box.x},${box.y})`} class="node unknown">
        <rect width={WIDTH} height={HEIGHT} rx="8" />
        <text x="12" y="26">not here, or not for you</text>
        <text x="12" y="46" class="small">{box.id.slice(0, 26)}…</text>
      </g>
    );
  }
  const name = box.name.length > 28 ? `…${box.name.slice(-27)}` : box.name;
  const classes = ["node", box.kind === "Root" ? "root" : "", isSelected ? "selected" : "", box.hasFailed ? "failed" : ""];
  return (
    <a
      href={href(datasetPath(box.name))}
      aria-label={`${box.name}, ${box.kind}, watermark ${box.watermark ?? "none"}, updated ${age(box.updatedAt)}`}
      onKeyDown={(event) => {
        if (event.key === " ") {
          event.preventDefault();
          navigate(href("lineage", { dataset: box.name ?? "" }));
        }
      }}
    >
      <g transform={`translate(${box.x},${box.y})`} class={classes.join(" ")}>
        <title>{box.name}</title>
        <rect width={WIDTH} height={HEIGHT} rx="8" />
        <text x="12" y="21" class="name">
          {name}
        </text>
        <text x="12" y="38" class="small">
          {box.watermark ? `watermark ${box.watermark.slice(0, 16).replace("T", " ")}` : "no watermark"}
        </text>
        <text x="12" y="54" class="small">
          {compact(box.numRecords ?? 0)} rows · {age(box.updatedAt)}
          {box.hasFailed ? " · failed" : ""}
          {box.hidden ? ` · +${box.hidden}` : ""}
        </text>
      </g>
    </a>
  );
}

function AsTable({ graph }: { graph: Graph }) {
  const names = new Map(graph.nodes.map((node) => [node.id, node.name ?? node.id]));
  return (
    <details>
      <summary>The lineage as a table</summary>
      <div class="scroll" tabIndex={0} role="region" aria-label="Lineage">
        <table class="list">
          <thead>
            <tr>
              <th scope="col">Dataset</th>
              <th scope="col">Derived from</th>
              <th scope="col">Watermark waits for</th>
            </tr>
          </thead>
          <tbody>
            {graph.nodes.slice(0, 2000).map((node) => (
              <tr key={node.id}>
                <th scope="row">{node.name ? <a href={href("lineage", { dataset: node.name })}>{node.name}</a> : node.id}</th>
                <td>
                  {graph.edges
                    .filter((edge) => edge.output === node.id)
                    .map((edge) => names.get(edge.input))
                    .join(", ")}
                </td>
                <td>{node.heldBackBy.map((id) => names.get(id)).join(", ")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
