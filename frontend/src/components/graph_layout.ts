/** Places for the datasets of a graph: each connected part by itself, in layers, and the parts packed side by side. */
import dagre from "@dagrejs/dagre";
import type { Graph, GraphNode } from "../types";

export const WIDTH = 230;
export const HEIGHT = 64;
const GAP = 40;
const LARGE = 200; // nodes of a part, from which on the best ranks would take seconds

export interface Box extends GraphNode {
  x: number;
  y: number;
  /** How many neighbours are not drawn. */
  hidden: number;
}

export interface Line {
  id: string;
  path: string;
  holdsBack: boolean;
}

export interface Layout {
  boxes: Box[];
  lines: Line[];
  width: number;
  height: number;
}

/** The neighbours of each dataset, in both directions. */
export function neighbours(graph: Graph): Map<string, string[]> {
  const found = new Map<string, string[]>();
  const add = (from: string, to: string) => {
    const known = found.get(from);
    if (known) known.push(to);
    else found.set(from, [to]);
  };
  for (const { input, output } of graph.edges) {
    add(input, output);
    add(output, input);
  }
  return found;
}

/** The nodes within some steps of one, in both directions. */
export function around(graph: Graph, start: string, steps: number): Set<string> {
  const next = neighbours(graph);
  const found = new Set([start]);
  let edge = [start];
  for (let step = 0; step < steps && edge.length; step += 1) {
    edge = edge.flatMap((id) => next.get(id) ?? []).filter((id) => !found.has(id) && found.add(id));
  }
  return found;
}

/** Places for the nodes that are shown. */
export function lay(graph: Graph, shown: Set<string>): Layout {
  const all = neighbours(graph);
  const nodes = new Map(graph.nodes.filter((node) => shown.has(node.id)).map((node) => [node.id, node]));
  const edges = graph.edges.filter(({ input, output }) => nodes.has(input) && nodes.has(output));
  const near = neighbours({ nodes: [], edges });
  const left = new Set(nodes.keys());
  const parts: Layout[] = [];
  const alone: Box[] = [];
  const boxOf = (id: string, x: number, y: number): Box => ({
    ...(nodes.get(id) as GraphNode),
    x: x - WIDTH / 2,
    y: y - HEIGHT / 2,
    hidden: (all.get(id) ?? []).filter((other) => !nodes.has(other)).length,
  });
  const byInput = new Map<string, Graph["edges"]>();
  for (const edge of edges) byInput.set(edge.input, [...(byInput.get(edge.input) ?? []), edge]);
  for (const id of nodes.keys()) {
    if (!left.has(id)) continue;
    const members = connected(id, near);
    for (const member of members) left.delete(member);
    if (members.length === 1) alone.push(boxOf(id, WIDTH / 2, HEIGHT / 2));
    else parts.push(layPart(members, members.flatMap((member) => byInput.get(member) ?? []), boxOf));
  }
  return packed(parts, alone);
}

function connected(start: string, near: Map<string, string[]>): string[] {
  const found = new Set([start]);
  for (const id of found) for (const other of near.get(id) ?? []) found.add(other);
  return [...found];
}

function layPart(ids: string[], edges: Graph["edges"], boxOf: (id: string, x: number, y: number) => Box): Layout {
  const drawing = new dagre.graphlib.Graph();
  const ranker = ids.length > LARGE ? "tight-tree" : "network-simplex";
  drawing.setGraph({ rankdir: "LR", nodesep: 18, ranksep: 70, ranker });
  drawing.setDefaultEdgeLabel(() => ({}));
  for (const id of ids) drawing.setNode(id, { width: WIDTH, height: HEIGHT });
  for (const { input, output } of edges) drawing.setEdge(input, output);
  dagre.layout(drawing);
  const lines = edges.map(({ input, output, holdsBack }) => {
    const { points } = drawing.edge(input, output) as { points: { x: number; y: number }[] };
    return { id: `${input} ${output}`, path: `M${points.map((point) => `${Math.round(point.x)},${Math.round(point.y)}`).join("L")}`, holdsBack };
  });
  const boxes = ids.map((id) => {
    const { x, y } = drawing.node(id) as { x: number; y: number };
    return boxOf(id, x, y);
  });
  const { width = 0, height = 0 } = drawing.graph();
  return { boxes, lines, width, height };
}

/** All parts in rows, the tallest first, and below them those that are alone; about as wide as a screen. */
function packed(parts: Layout[], alone: Box[]): Layout {
  const area = parts.reduce((sum, part) => sum + (part.width + GAP) * (part.height + GAP), 0);
  const own = alone.length * (WIDTH + GAP / 2) * (HEIGHT + GAP / 2);
  const most = Math.max(...parts.map((part) => part.width), WIDTH, Math.sqrt((area + own) * 1.8));
  const whole: Layout = { boxes: [], lines: [], width: 0, height: 0 };
  let x = GAP / 2;
  let y = GAP / 2;
  let row = 0;
  const place = (part: Layout, gap: number) => {
    if (x > GAP && x + part.width > most) {
      x = GAP / 2;
      y += row + gap;
      row = 0;
    }
    for (const box of part.boxes) whole.boxes.push({ ...box, x: box.x + x, y: box.y + y });
    for (const line of part.lines) whole.lines.push({ ...line, path: moved(line.path, x, y) });
    x += part.width + gap;
    row = Math.max(row, part.height);
    whole.width = Math.max(whole.width, x);
    whole.height = y + row + GAP / 2;
  };
  for (const part of parts.sort((one, other) => other.height - one.height)) place(part, GAP);
  if (parts.length) {
    x = GAP / 2;
    y += row + GAP;
    row = 0;
  }
  for (const box of alone) place({ boxes: [box], lines: [], width: WIDTH, height: HEIGHT }, GAP / 2);
  return whole;
}

function moved(path: string, x: number, y: number): string {
  return path.replace(/(-?\d+),(-?\d+)/g, (_, one: string, other: string) => `${Math.round(Number(one) + x)},${Math.round(Number(other) + y)}`);
}
