/** A dataset in a graph: what it is called, how far it is complete, how old it is. */
import { age, compact } from "../format";
import { datasetPath, href, navigate } from "../router";
import { type Box, HEIGHT, WIDTH } from "./graph_layout";

const MARGIN = 12;
const FONT = 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif';
const FONTS = { name: `600 13px ${FONT}`, small: `11.5px ${FONT}`, far: `600 30px ${FONT}` } as const;
const paper = document.createElement("canvas").getContext("2d");

/** A text as wide as a dataset at most: names differ at their ends, so it is the middle that is left out. */
function fitting(text: string, font: keyof typeof FONTS): string {
  if (!paper) return text;
  paper.font = FONTS[font];
  const room = WIDTH - 2 * MARGIN;
  if (paper.measureText(text).width <= room) return text;
  let [least, most] = [0, text.length];
  const cut = (kept: number) => `${text.slice(0, Math.ceil(kept / 2))}…${text.slice(text.length - Math.floor(kept / 2))}`;
  while (least < most) {
    const kept = Math.ceil((least + most) / 2);
    if (paper.measureText(cut(kept)).width <= room) least = kept;
    else most = kept - 1;
  }
  return cut(least);
}

/** What comes last in a name, which says the most, and what stands before it. */
function parted(name: string): [string, string] {
  const at = Math.max(name.lastIndexOf("."), name.lastIndexOf("/"));
  return [name.slice(0, Math.max(0, at)), name.slice(at + 1)];
}

export function Node({ box, isSelected }: { box: Box; isSelected: boolean }) {
  if (!box.name) {
    return (
      <g transform={`translate(${box.x},${box.y})`} class="node unknown">
        <title>{box.id}</title>
        <rect width={WIDTH} height={HEIGHT} rx="8" />
        <text x={MARGIN} y="34">
          not here, or not readable
        </text>
        <text x={MARGIN} y="54" class="small">
          {fitting(box.id, "small")}
        </text>
      </g>
    );
  }
  const [before, last] = parted(box.name);
  const classes = ["node", box.kind === "Root" ? "root" : "", isSelected ? "selected" : "", box.hasFailed ? "failed" : ""];
  return (
    <a
      data-id={box.id}
      href={href(datasetPath(box.name))}
      aria-label={`${box.name}, ${box.kind}, watermark ${box.watermark ?? "none"}, updated ${age(box.updatedAt)}${box.hasFailed ? ", last pull failed" : ""}`}
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
        <text x={MARGIN} y="18" class="small">
          {fitting(before, "small")}
        </text>
        <text x={MARGIN} y="35" class="name">
          {fitting(last, "name")}
        </text>
        <text x={MARGIN} y="52" class="small">
          {box.watermark ? `complete to ${box.watermark.slice(0, 16).replace("T", " ")}` : "no watermark"}
        </text>
        <text x={MARGIN} y="68" class="small">
          {compact(box.numRecords ?? 0)} records · {age(box.updatedAt)}
          {box.hasFailed ? " · failed" : ""}
          {box.hidden ? ` · +${box.hidden} folded` : ""}
        </text>
        <text x={MARGIN} y="50" class="far-name">
          {fitting(last, "far")}
        </text>
      </g>
    </a>
  );
}
