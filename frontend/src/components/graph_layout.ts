/** Places for the datasets of a graph: each connected part by itself, in layers, and the parts packed side by side. */
import dagre from "@dagrejs/dagre";
import type { Graph, GraphNode } from "../types";

export const WIDTH = 250;
export const HEIGHT = 80;
const GAP = 40;
const ROW = HEIGHT + 18;
const STEP = 74; // between layers: room for a handle on either side of a line
const COLUMN = WIDTH + STEP;
const LARGE = 150; // nodes of a part, from which on the best places would take seconds
const TALL = 12; // nodes of a layer, from which on one column of them would be too tall to read anything
const SWEEPS = 6;

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

/**
 * Whether an input really holds its output back: another input is further, or the output has not taken in all of it.
 * The only input of a dataset that is up to date always has the same watermark as it, and nothing waits.
 */
function waits(graph: Graph): (edge: Graph["edges"][number]) => boolean {
  const marks = new Map(graph.nodes.map((node) => [node.id, node.watermark ?? ""]));
  const best = new Map<string, string>();
  for (const { input, output } of graph.edges) {
    const mark = marks.get(input) ?? "";
    if (mark > (best.get(output) ?? "")) best.set(output, mark);
  }
  return (edge) => edge.holdsBack && ((best.get(edge.output) ?? "") > (marks.get(edge.input) ?? "") || (edge.takenIn ?? "") < (marks.get(edge.input) ?? ""));
}

/** Places for the nodes that are shown. */
export function lay(graph: Graph, shown: Set<string>): Layout {
  const all = neighbours(graph);
  const nodes = new Map(graph.nodes.filter((node) => shown.has(node.id)).map((node) => [node.id, node]));
  const isWaiting = waits(graph);
  const edges = graph.edges
    .filter(({ input, output }) => nodes.has(input) && nodes.has(output))
    .map((edge) => ({ ...edge, holdsBack: isWaiting(edge) }));
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
    else {
      const own = members.flatMap((member) => byInput.get(member) ?? []);
      const isLarge = members.length > LARGE || layersOf(members, own).some((layer) => layer.length > TALL);
      parts.push(isLarge ? layLarge(members, own, boxOf) : layPart(members, own, boxOf));
    }
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
  drawing.setGraph({ rankdir: "LR", nodesep: 18, ranksep: STEP });
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

/** The datasets in layers: each behind all that it is derived from. */
function layersOf(ids: string[], edges: Graph["edges"]): string[][] {
  const layer = new Map(ids.map((id) => [id, 0]));
  const missing = new Map(ids.map((id) => [id, 0]));
  const outputs = new Map<string, string[]>();
  for (const { input, output } of edges) {
    missing.set(output, (missing.get(output) ?? 0) + 1);
    outputs.set(input, [...(outputs.get(input) ?? []), output]);
  }
  const ready = ids.filter((id) => !missing.get(id));
  for (const id of ready) {
    for (const output of outputs.get(id) ?? []) {
      layer.set(output, Math.max(layer.get(output) ?? 0, (layer.get(id) ?? 0) + 1));
      const left = (missing.get(output) ?? 0) - 1;
      missing.set(output, left);
      if (!left) ready.push(output);
    }
  }
  const found: string[][] = [];
  for (const [id, at] of layer) (found[at] ??= []).push(id);
  return found;
}

/** A large part, in milliseconds: layers, each ordered by where its neighbours are, in columns of the same height. */
function layLarge(ids: string[], edges: Graph["edges"], boxOf: (id: string, x: number, y: number) => Box): Layout {
  const layers = layersOf(ids, edges);
  const near = neighbours({ nodes: [], edges });
  const place = new Map<string, number>();
  const remember = (layer: string[]) => layer.forEach((id, at) => place.set(id, at / layer.length));
  layers.forEach(remember);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (const layer of sweep % 2 ? [...layers].reverse() : layers) {
      const middle = new Map(layer.map((id) => [id, mean((near.get(id) ?? []).map((other) => place.get(other) ?? 0))]));
      layer.sort((one, other) => (middle.get(one) ?? 0) - (middle.get(other) ?? 0));
      remember(layer);
    }
  }
  const most = Math.max(8, Math.ceil(Math.sqrt(ids.length * 2)));
  const boxes: Box[] = [];
  let column = 0;
  for (const layer of layers) {
    const columns = Math.ceil(layer.length / most);
    layer.forEach((id, at) => {
      boxes.push(boxOf(id, (column + (at % columns)) * COLUMN + WIDTH / 2, Math.floor(at / columns) * ROW + HEIGHT / 2));
    });
    column += columns;
  }
  const found = new Map(boxes.map((box) => [box.id, box]));
  const lines = edges.map(({ input, output, holdsBack }) => {
    const [from, to] = [found.get(input), found.get(output)];
    const [x, y] = [(from?.x ?? 0) + WIDTH, (from?.y ?? 0) + HEIGHT / 2];
    const [toX, toY] = [to?.x ?? 0, (to?.y ?? 0) + HEIGHT / 2];
    return { id: `${input} ${output}`, path: `M${x},${y}C${x + 40},${y} ${toX - 40},${toY} ${toX},${toY}`, holdsBack };
  });
  return { boxes, lines, width: column * COLUMN, height: most * ROW };
}

const mean = (numbers: number[]): number => numbers.reduce((sum, one) => sum + one, 0) / Math.max(1, numbers.length);

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
