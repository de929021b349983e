/** Small pieces that all pages are made of. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, get } from "../api";
import { age, brief, count, cut, moment, signer, signers, text } from "../format";
import { useLoad } from "../hooks";
import type { Cell, Explanation } from "../types";
import { Markdown } from "./markdown";

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
  return time ? (
    <time dateTime={time} title={time}>
      {moment(time)}
    </time>
  ) : (
    <span class="dim">{none}</span>
  );
}

/** A sentence with code between backticks, as hints have it. */
export function Words({ children }: { children: string }) {
  return <>{children.split("`").map((part, at) => (at % 2 ? <code key={at}>{part}</code> : part))}</>;
}

/** Who has signed; keys without a name are whole in the title. */
export function SignedBy({ names }: { names: string[] }) {
  return <span title={names.map(signer).join(", ")}>{signers(names)}</span>;
}

/** The code of an error, which opens what it stands for, as `odf help` has it. */
export function ErrorCode({ code }: { code: string }) {
  const [isOpen, open] = useState(false);
  return (
    <>
      <button type="button" class="quiet code" aria-haspopup="dialog" title={`Explanation of ${code}`} onClick={() => open(true)}>
        {code}
      </button>
      {isOpen && (
        <Dialog title={code} close={() => open(false)}>
          <Explained code={code} />
        </Dialog>
      )}
    </>
  );
}

function Explained({ code }: { code: string }) {
  const { value, error, reload } = useLoad((signal) => get<Explanation>(`platform/errors/${encodeURIComponent(code)}`, { signal }), [code]);
  if (error) return <Problem error={error} retry={reload} />;
  if (!value) return <Loading />;
  return (
    <>
      <h3>{value.title}</h3>
      <Markdown text={value.text} />
    </>
  );
}

/** Whether the same request may go well another time: it has come to nothing, or the server is busy or broken. */
const mayPass = ({ status }: ApiError): boolean => status < 400 || status === 408 || status === 429 || status >= 500;

/** What went wrong, and a way to try again, where that can help. */
export function Problem({ error, retry }: { error: ApiError; retry?: () => void }) {
  const [what = "", ...more] = error.message.split("\n");
  return (
    <div class="problem" role="alert">
      <p>
        <strong>
          <Words>{what}</Words>
        </strong>
        {error.code && <ErrorCode code={error.code} />}
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
      {retry && mayPass(error) && (
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

interface CopyProperties {
  /** The text, or what makes it when somebody wants it. */
  text: string | (() => string);
  label?: string;
  title?: string;
  /** Said when it is copied, and when the browser does not let pages copy. */
  done?: string;
  refused?: string;
  style?: string;
}

/** A button that copies a text, and says so. */
export function Copy({ text, label = "Copy", title = label, done = "Copied", refused = "Select the text and press Ctrl-C", style = "quiet copy" }: CopyProperties) {
  const [state, set] = useState("");
  useEffect(() => {
    if (!state) return;
    const timer = setTimeout(() => set(""), 2000);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async () => {
    const copied = typeof text === "string" ? text : text();
    try {
      await navigator.clipboard.writeText(copied);
      set(done);
    } catch {
      set(refused);
    }
  };
  return (
    <button type="button" class={style} onClick={copy} title={title} aria-live="polite">
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

export function Fact({ name, title, children }: { name: string; title?: string | undefined; children: ComponentChildren }) {
  return (
    <div title={title}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const SHORT = 200;
const WHOLE = 100_000;

/** A value of a cell; a long one opens when one wants to read it, and the title of a time has all its digits. */
export function Value({ value, isExact = false }: { value: Cell | undefined; isExact?: boolean }) {
  const [isOpen, open] = useState(false);
  if (value === null || value === undefined) return <span class="null">null</span>;
  const whole = text(value);
  if (whole.length <= SHORT) {
    const shown = isExact ? whole : brief(whole);
    return (
      <span class={shown.length > 32 ? "value" : "value short"} title={shown === whole ? undefined : whole}>
        {shown}
      </span>
    );
  }
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
