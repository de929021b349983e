/** Small pieces that all pages are made of. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "../api";
import { age, count, cut, moment, text } from "../format";
import type { Cell } from "../types";

type Tone = "plain" | "good" | "bad" | "warn" | "info";

/** A word in a colour; the word alone says what the colour says. */
export function Badge({ tone = "plain", title, children }: { tone?: Tone; title?: string; children: ComponentChildren }) {
  return (
    <span class={`badge ${tone}`} title={title}>
      {children}
    </span>
  );
}

/** How long ago something was; the exact time is in its title. */
export function Ago({ time }: { time: string | null }) {
  if (!time) return <span class="dim">never</span>;
  return (
    <time dateTime={time} title={moment(time)}>
      {age(time)}
    </time>
  );
}

/** A time as it is, or a word where there is none. */
export function Moment({ time, none = "none" }: { time: string | null | undefined; none?: string }) {
  return time ? <time dateTime={time}>{moment(time)}</time> : <span class="dim">{none}</span>;
}

/** A sentence with code between backticks, as hints have it. */
export function Words({ children }: { children: string }) {
  return <>{children.split("`").map((part, at) => (at % 2 ? <code key={at}>{part}</code> : part))}</>;
}

/** What went wrong, and a way to try again. */
export function Problem({ error, retry }: { error: ApiError; retry?: () => void }) {
  const [what, ...more] = error.message.split("\n");
  return (
    <div class="problem" role="alert">
      <p>
        <strong>{what}</strong>
        {error.code && <code class="code">{error.code}</code>}
      </p>
      {more.some((line) => /^\s*\^+\s*$/.test(line)) ? (
        <pre tabIndex={0}>{more.join("\n")}</pre>
      ) : (
        more.map((line) => (
          <p key={line}>
            <Words>{line}</Words>
          </p>
        ))
      )}
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Loading({ what = "Loading" }: { what?: string }) {
  return (
    <p class="loading" role="status">
      <span class="spinner" aria-hidden="true" /> {what} …
    </p>
  );
}

/** Nothing is there, and what to do about it. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** A button that copies a text, and says so. */
export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const [state, set] = useState("");
  useEffect(() => {
    if (!state) return;
    const timer = setTimeout(() => set(""), 2000);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      set("Copied");
    } catch {
      set("Select the text and press Ctrl-C");
    }
  };
  return (
    <button type="button" class="quiet copy" onClick={copy} title={label} aria-live="polite">
      {state || label}
    </button>
  );
}

/** A hash or an id: shown in part, but selected and copied as a whole. */
export function Hash({ text, isShort = true }: { text: string; isShort?: boolean }) {
  return (
    <span class="whole">
      <code class={isShort ? "hash" : ""} title={text}>
        {text}
      </code>{" "}
      <Copy text={text} />
    </span>
  );
}

/** A piece of code that can be copied. */
export function Snippet({ text, label }: { text: string; label: string }) {
  return (
    <figure class="snippet">
      <figcaption>
        <span>{label}</span>
        <Copy text={text} />
      </figcaption>
      <pre tabIndex={0}>{text}</pre>
    </figure>
  );
}

/** A dialog that the keyboard stays in, and that Escape closes, unless it is sticky: what it shows would be lost. */
export function Dialog(properties: { title: string; close: () => void; isSticky?: boolean; children: ComponentChildren }) {
  const { title, close, isSticky = false, children } = properties;
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => {
      // Whoever opened the dialog goes on where they were, or in front of what took its place.
      const there = before instanceof HTMLElement && before.isConnected ? before : document.getElementById("content");
      setTimeout(() => (there?.isConnected ? there : document.getElementById("content"))?.focus({ preventScroll: true }));
    };
  }, []);
  return (
    <dialog ref={element} aria-label={title} onClose={close} onCancel={(event) => isSticky && event.preventDefault()} onKeyDown={(event) => isSticky && event.key === "Escape" && event.preventDefault()} onClick={(event) => !isSticky && event.target === element.current && close()}>
      <header>
        <h2>{title}</h2>
        <button type="button" class="quiet" onClick={close} aria-label="Close">
          ✕
        </button>
      </header>
      <div class="body">{children}</div>
    </dialog>
  );
}

/** Names and values. */
export function Facts({ children }: { children: ComponentChildren }) {
  return <dl class="facts">{children}</dl>;
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const SHORT = 200;
const WHOLE = 100_000;

/** A value of a cell; a long one opens when one wants to read it. */
export function Value({ value }: { value: Cell | undefined }) {
  const [isOpen, open] = useState(false);
  if (value === null || value === undefined) return <span class="null">null</span>;
  const whole = text(value);
  if (whole.length <= SHORT) return <span class={whole.length > 32 ? "value" : "value short"}>{whole}</span>;
  return (
    <span class="value long">
      {isOpen ? cut(whole, WHOLE) : `${whole.slice(0, SHORT)}…`}{" "}
      <button type="button" class="quiet" aria-expanded={isOpen} onClick={() => open(!isOpen)}>
        {isOpen ? "less" : `more (${count(whole.length)} characters)`}
      </button>
    </span>
  );
}

/** Choices of which one is in force. */
export function Choice<T extends string>(props: {
  label: string;
  value: T;
  options: readonly (readonly [T, string])[];
  choose: (value: T) => void;
}) {
  return (
    <div class="choice" role="group" aria-label={props.label}>
      {props.options.map(([value, label]) => (
        <button key={value} type="button" aria-pressed={props.value === value} onClick={() => props.choose(value)}>
          {label}
        </button>
      ))}
    </div>
  );
}
