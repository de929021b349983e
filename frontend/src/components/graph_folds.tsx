/** Parts of a graph that are folded: what is upstream or downstream of a dataset, behind a handle with their number. */
import { counted } from "../format";
import type { Graph } from "../types";

export type Way = "up" | "down";

/** A part that is folded: a way, and the id of the dataset from which on. */
export type Fold = `${Way} ${string}`;

/** Which datasets are one step away of each, on either side. */
type Steps = Record<Way, Map<string, string[]>>;

function stepsWithin(graph: Graph, shown: Set<string>): Steps {
  const found: Steps = { up: new Map(), down: new Map() };
  const put = (way: Way, from: string, to: string) => {
    const known = found[way].get(from);
    if (known) known.push(to);
    else found[way].set(from, [to]);
  };
  for (const { input, output } of graph.edges) {
    if (!shown.has(input) || !shown.has(output)) continue;
    put("up", output, input);
    put("down", input, output);
  }
  return found;
}

/** What a fold hides: all that is on one side of a dataset, without what others that are shown lead to, too. */
function foldedBy(start: string, way: Way, steps: Steps): Set<string> {
  const [forth, back] = way === "up" ? [steps.up, steps.down] : [steps.down, steps.up];
  const reached = new Set<string>();
  let edge = [start];
  while (edge.length) {
    edge = edge.flatMap((id) => forth.get(id) ?? []).filter((id) => id !== start && !reached.has(id));
    for (const id of edge) reached.add(id);
  }
  let kept = [...reached].filter((id) => (back.get(id) ?? []).some((other) => other !== start && !reached.has(other)));
  while (kept.length) {
    for (const id of kept) reached.delete(id);
    kept = kept.flatMap((id) => forth.get(id) ?? []).filter((id) => reached.has(id));
  }
  return reached;
}

/** The neighbours that nothing else leads to; where there are none, a fold hides nothing. */
function onlyBy(id: string, way: Way, steps: Steps): string[] {
  const back = steps[way === "up" ? "down" : "up"];
  return (steps[way].get(id) ?? []).filter((other) => (back.get(other) ?? []).every((one) => one === id));
}

export interface Folded {
  shown: Set<string>;
  /** How many datasets each fold hides; of what is not folded, how many neighbours it would hide. */
  counts: Map<Fold, number>;
}

/** The datasets without what is folded; folds apply one after the other, so that each counts what it hides itself. */
export function folded(graph: Graph, chosen: Set<string>, folds: Fold[]): Folded {
  const shown = new Set(chosen);
  const counts = new Map<Fold, number>();
  for (const fold of folds) {
    const [way, id] = [fold.slice(0, fold.indexOf(" ")) as Way, fold.slice(fold.indexOf(" ") + 1)];
    const hidden = foldedBy(id, way, stepsWithin(graph, shown));
    for (const one of hidden) shown.delete(one);
    counts.set(fold, hidden.size);
  }
  const steps = stepsWithin(graph, shown);
  for (const id of shown) {
    for (const way of ["up", "down"] as const) {
      if (!counts.has(`${way} ${id}`)) counts.set(`${way} ${id}`, onlyBy(id, way, steps).length);
    }
  }
  return { shown, counts };
}

interface Box {
  id: string;
  name: string | null;
  x: number;
  y: number;
}

interface Properties {
  box: Box;
  width: number;
  height: number;
  folds: Fold[];
  counts: Map<Fold, number>;
  toggle: (way: Way) => void;
}

const BEHIND_TIP = 11; // an arrow ends at a dataset, and its tip shows

/** The handles beside a dataset, on the lines that lead to it and from it, where there is something to fold. */
export function Handles({ box, width, height, folds, counts, toggle }: Properties) {
  return (
    <>
      {(["up", "down"] as const).map((way) => {
        const isFolded = folds.includes(`${way} ${box.id}`);
        const number = counts.get(`${way} ${box.id}`) ?? 0;
        const x = way === "up" ? box.x - BEHIND_TIP : box.x + width + 1;
        return (isFolded || number > 0) && <Handle key={way} box={box} number={number} way={way} x={x} y={box.y + height / 2} isFolded={isFolded} toggle={() => toggle(way)} />;
      })}
    </>
  );
}

interface HandleProperties {
  box: Box;
  number: number;
  way: Way;
  x: number;
  y: number;
  isFolded: boolean;
  toggle: () => void;
}

function Handle({ box, number, way, x, y, isFolded, toggle }: HandleProperties) {
  const side = way === "up" ? "its inputs" : "datasets derived from it";
  const text = isFolded ? `+${number}` : "−";
  const width = 13 + text.length * 7;
  const left = way === "up" ? x - width : x;
  return (
    <g
      transform={`translate(${left},${y - 10})`}
      class="handle"
      role="button"
      tabindex={0}
      aria-expanded={!isFolded}
      aria-label={`${box.name ?? box.id}: ${isFolded ? `expand ${side}, ${counted(number, "dataset")} collapsed` : `collapse ${side}`}`}
      onClick={toggle}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        event.stopPropagation();
        toggle();
      }}
    >
      <title>{isFolded ? `Expand ${side}` : `Collapse ${side}`}</title>
      <rect width={width} height="20" rx="10" />
      <text x={width / 2} y="14.5">
        {text}
      </text>
    </g>
  );
}
