/** Forms in dialogs, with problems under the field that they are about, and confirmations that name the thing. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { ApiError } from "../api";
import { useSettled } from "../hooks";
import { Copy, Dialog, Problem } from "./basics";

export type Values = Record<string, string>;

export interface Field {
  name: string;
  label: string;
  kind?: "text" | "password" | "area" | "select";
  hint?: string;
  isOptional?: boolean;
  options?: readonly (readonly [string, string])[];
  /** Finds what could be meant, as one types. */
  suggest?: (text: string, signal: AbortSignal) => Promise<string[]>;
  /** Whether the field makes sense with the values of the others. */
  isShown?: (values: Values) => boolean;
}

interface FormProperties {
  title: string;
  fields: readonly Field[];
  initial?: Values;
  action: string;
  /** Sends the form; what it throws is shown under a field. */
  submit: (values: Values) => Promise<void>;
  close: () => void;
  /** The field that a refusal is about, if the server does not name it. */
  fieldOf?: (error: ApiError) => string | undefined;
  children?: ComponentChildren;
}

function asError(problem: unknown): ApiError {
  return problem instanceof ApiError ? problem : new ApiError(0, String(problem));
}

/** The field that the server names, and what it says of it: `body.name: String should have at most 255 characters`. */
function named(error: ApiError, fields: readonly Field[]): [string, string] | undefined {
  const found = /(?:^|; )body\.(\w+)[^:]*: ([^;]*)/.exec(error.message);
  return found?.[1] && fields.some((field) => field.name === found[1]) ? [found[1], found[2] ?? ""] : undefined;
}

export function FormDialog({ title, fields, initial = {}, action, submit, close, fieldOf, children }: FormProperties) {
  const [values, setValues] = useState<Values>(initial);
  const [problems, setProblems] = useState<Values>({});
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const shown = fields.filter((field) => field.isShown?.(values) ?? true);
  const show = (found: Values) => {
    setProblems(found);
    const [first] = Object.keys(found);
    if (first) setTimeout(() => (form.current?.elements.namedItem(first) as HTMLElement | null)?.focus());
  };
  const send = async (event: SubmitEvent) => {
    event.preventDefault();
    setError(undefined);
    const missing = shown.filter((field) => !field.isOptional && field.kind !== "select" && !values[field.name]?.trim());
    show(Object.fromEntries(missing.map((field) => [field.name, `${field.label} is missing.`])));
    if (missing.length) return;
    setBusy(true);
    try {
      await submit(Object.fromEntries(shown.map((field) => [field.name, values[field.name] ?? ""])));
    } catch (problem) {
      const refusal = asError(problem);
      const [place, text] = named(refusal, shown) ?? [fieldOf?.(refusal), refusal.message];
      if (place && shown.some((field) => field.name === place)) show({ [place]: text });
      else setError(refusal);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} close={close}>
      <form ref={form} class="stack" onSubmit={send} noValidate>
        {children}
        {shown.map((field, at) => (
          <Input
            key={field.name}
            isFirst={at === 0}
            field={field}
            value={values[field.name] ?? ""}
            problem={problems[field.name]}
            set={(value) => setValues((before) => ({ ...before, [field.name]: value }))}
          />
        ))}
        {error && <Problem error={error} />}
        <div class="bar">
          <button type="submit" class="primary" disabled={isBusy}>
            {action}
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function Input(props: { field: Field; isFirst: boolean; value: string; problem: string | undefined; set: (value: string) => void }) {
  const { field, value, problem, set } = props;
  const id = useId();
  const about = [problem && `${id}-problem`, field.hint && `${id}-hint`].filter(Boolean).join(" ") || undefined;
  const common = {
    id,
    name: field.name,
    value,
    autofocus: props.isFirst,
    "aria-describedby": about,
    "aria-invalid": problem ? ("true" as const) : undefined,
    "aria-required": field.isOptional || field.kind === "select" ? undefined : ("true" as const),
  };
  return (
    <div class="field">
      <label for={id}>
        {field.label}
        {field.isOptional && <span class="dim"> (optional)</span>}
      </label>
      {field.kind === "select" ? (
        <select {...common} onChange={(event) => set(event.currentTarget.value)}>
          {field.options?.map(([option, label]) => (
            <option key={option} value={option}>
              {label}
            </option>
          ))}
        </select>
      ) : field.kind === "area" ? (
        <textarea {...common} rows={6} spellcheck={false} onInput={(event) => set(event.currentTarget.value)} />
      ) : field.kind === "password" ? (
        <input {...common} type="password" autocomplete="new-password" onInput={(event) => set(event.currentTarget.value)} />
      ) : (
        <input
          {...common}
          type="text"
          list={field.suggest ? `${id}-list` : undefined}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => set(event.currentTarget.value)}
        />
      )}
      {field.suggest && <Suggestions id={`${id}-list`} text={value} suggest={field.suggest} />}
      {problem && (
        <p id={`${id}-problem`} class="wrong" role="alert">
          {problem}
        </p>
      )}
      {field.hint && (
        <p id={`${id}-hint`} class="dim">
          {field.hint}
        </p>
      )}
    </div>
  );
}

function Suggestions({ id, text, suggest }: { id: string; text: string; suggest: NonNullable<Field["suggest"]> }) {
  const settled = useSettled(text, 150);
  const [found, set] = useState<string[]>([]);
  useEffect(() => {
    const abort = new AbortController();
    suggest(settled, abort.signal)
      .then(set)
      .catch(() => undefined); // whoever knows the name can write it
    return () => abort.abort();
  }, [settled]);
  return (
    <datalist id={id}>
      {found.map((one) => (
        <option key={one} value={one} />
      ))}
    </datalist>
  );
}

/** Asks before something is done that cannot be undone. */
export function Confirm(props: { title: string; action: string; run: () => Promise<void>; close: () => void; children: ComponentChildren }) {
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    try {
      await props.run();
    } catch (problem) {
      setError(asError(problem));
      setBusy(false);
    }
  };
  return (
    <Dialog title={props.title} close={props.close}>
      {props.children}
      {error && <Problem error={error} />}
      <div class="bar">
        <button type="button" class="danger" onClick={run} disabled={isBusy}>
          {props.action}
        </button>
        <button type="button" onClick={props.close} autofocus>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}

/** A secret that the server tells once. */
export function ShownOnce(props: { title: string; text: string; file?: string; close: () => void; children: ComponentChildren }) {
  const { title, text, file, close, children } = props;
  const save = () => {
    const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    const link = Object.assign(document.createElement("a"), { href: url, download: file });
    link.click();
    URL.revokeObjectURL(url);
  };
  return (
    <Dialog title={title} close={close} isSticky>
      <p>{children}</p>
      <p>
        <strong>It is shown only once.</strong> Copy it now; it cannot be shown again.
      </p>
      <pre class="secret" tabIndex={0}>
        {text}
      </pre>
      <div class="bar">
        <Copy text={text} label="Copy" />
        {file && (
          <button type="button" onClick={save}>
            Save as {file}
          </button>
        )}
        <button type="button" class="primary" onClick={close}>
          Done
        </button>
      </div>
    </Dialog>
  );
}
