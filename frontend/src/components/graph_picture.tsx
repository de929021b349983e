/** A graph to move around in: the wheel zooms, the mouse and the arrow keys move, + and - zoom, 0 shows all. */
import { memo } from "preact/compat";
import { useCallback, useEffect, useRef } from "preact/hooks";
import { type Fold, Handles, type Way } from "./graph_folds";
import { type Box, HEIGHT, type Layout, WIDTH } from "./graph_layout";
import { Node } from "./graph_node";

const LEAST = 0.02;
const MOST = 3;
const LEGIBLE = 0.35; // below it, small letters are only grey, and cost time

interface View {
  x: number;
  y: number;
  scale: number;
}

const limited = (scale: number): number => Math.min(MOST, Math.max(LEAST, scale));

/** Where the picture stands. It moves without being made again: a thousand boxes must not be compared for each step. */
function useView(layout: Layout, selected: string) {
  const frame = useRef<HTMLDivElement>(null);
  const drawing = useRef<SVGSVGElement>(null);
  const view = useRef<View>({ x: 0, y: 0, scale: 1 });
  const planned = useRef(0);
  const show = () => {
    planned.current = 0;
    const element = drawing.current;
    if (!element) return;
    const { x, y, scale } = view.current;
    element.style.transform = `translate(${x}px, ${y}px) scale(${scale})`;
    element.classList.toggle("far", scale < LEGIBLE);
  };
  const set = (next: View) => {
    view.current = next;
    planned.current ||= requestAnimationFrame(show);
  };
  const size = () => ({ width: frame.current?.clientWidth ?? 1, height: frame.current?.clientHeight ?? 1 });
  const fit = () => {
    const { width, height } = size();
    const scale = Math.min(1.2, width / Math.max(1, layout.width), height / Math.max(1, layout.height));
    const box = layout.boxes.find((one) => one.name === selected);
    if (box && scale < 0.6) set({ scale: 0.8, x: width / 2 - box.x * 0.8, y: height / 2 - box.y * 0.8 });
    else set({ scale, x: Math.max(0, (width - layout.width * scale) / 2), y: Math.max(0, (height - layout.height * scale) / 2) });
  };
  const zoom = (factor: number, x = size().width / 2, y = size().height / 2) => {
    const now = view.current;
    const scale = limited(now.scale * factor);
    const ratio = scale / now.scale;
    set({ scale, x: x - (x - now.x) * ratio, y: y - (y - now.y) * ratio });
  };
  const move = (x: number, y: number) => set({ ...view.current, x: view.current.x + x, y: view.current.y + y });
  /** Brings what the keyboard has reached into sight. */
  const reach = (box: Box) => {
    const { x, y, scale } = view.current;
    const { width, height } = size();
    const left = box.x * scale + x;
    const top = box.y * scale + y;
    if (left < 0 || top < 0 || left + WIDTH * scale > width || top + HEIGHT * scale > height) {
      set({ scale, x: width / 2 - (box.x + WIDTH / 2) * scale, y: height / 2 - (box.y + HEIGHT / 2) * scale });
    }
  };
  const kept = useRef<Box | undefined>(undefined);
  /** A dataset whose handle is used stays where it is. */
  const keep = (box: Box) => {
    kept.current = box;
  };
  useEffect(() => {
    const before = kept.current;
    const box = before && layout.boxes.find((one) => one.id === before.id);
    kept.current = undefined;
    const { scale } = view.current;
    if (before && box) move((before.x - box.x) * scale, (before.y - box.y) * scale);
    else fit();
  }, [layout]);
  useEffect(() => () => cancelAnimationFrame(planned.current), []);
  return { frame, drawing, fit, zoom, move, reach, keep };
}

interface Properties {
  layout: Layout;
  selected: string;
  folds: Fold[];
  counts: Map<Fold, number>;
  toggle: (fold: Fold) => void;
}

export function Picture({ layout, selected, folds, counts, toggle }: Properties) {
  const { frame, drawing, fit, zoom, move, reach, keep } = useView(layout, selected);
  const fold = useCallback(
    (box: Box, way: Way) => {
      keep(box);
      toggle(`${way} ${box.id}`);
    },
    [toggle],
  );
  const drag = useRef<{ x: number; y: number } | undefined>(undefined);
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
          if (act && !event.ctrlKey && !event.metaKey) {
            event.preventDefault();
            act();
          }
        }}
        onFocusCapture={(event) => {
          event.currentTarget.scrollTo(0, 0); // the browser would scroll what only moves
          const box = layout.boxes.find((one) => one.id === (event.target as Element).getAttribute("data-id"));
          if (box) reach(box);
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
        onPointerCancel={() => {
          drag.current = undefined;
        }}
      >
        <svg ref={drawing} width={layout.width} height={layout.height}>
          <Content layout={layout} selected={selected} folds={folds} counts={counts} fold={fold} />
        </svg>
      </div>
    </div>
  );
}

interface ContentProperties extends Omit<Properties, "toggle"> {
  fold: (box: Box, way: Way) => void;
}

const Content = memo(function Content({ layout, selected, folds, counts, fold }: ContentProperties) {
  return (
    <>
      <defs>
        <Tip id="tip" />
        <Tip id="tip-back" />
      </defs>
      {layout.lines.map((line) => (
        <path key={line.id} d={line.path} class={line.holdsBack ? "line back" : "line"} marker-end={`url(#${line.holdsBack ? "tip-back" : "tip"})`} />
      ))}
      {layout.boxes.map((box) => (
        <g key={box.id}>
          <Node box={box} isSelected={box.name === selected && selected !== ""} />
          <Handles box={box} width={WIDTH} height={HEIGHT} folds={folds} counts={counts} toggle={(way) => fold(box, way)} />
        </g>
      ))}
    </>
  );
});

function Tip({ id }: { id: string }) {
  return (
    <marker id={id} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto">
      <path d="M0,0L8,4L0,8z" class={id} />
    </marker>
  );
}
