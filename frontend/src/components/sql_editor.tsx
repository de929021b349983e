/** An editor for SQL: colours, completion of names and columns, errors under their place. */
import { autocompletion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { sql, StandardSQL } from "@codemirror/lang-sql";
import { type Diagnostic, setDiagnostics } from "@codemirror/lint";
import { EditorState, Prec } from "@codemirror/state";
import { EditorView, keymap, placeholder } from "@codemirror/view";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { tags } from "@lezer/highlight";
import { basicSetup } from "codemirror";
import { useEffect, useRef } from "preact/hooks";

/** Names that contain some letters, and whether there are no others that do. */
export interface Found {
  names: string[];
  areAll: boolean;
}

export interface Completions {
  datasets: (part: string) => Promise<Found>;
  columns: (dataset: string) => Promise<string[]>;
}

const FUNCTIONS = ["odf_current", "odf_changelog", "odf_as_at", "odf_as_of", "odf_as_at_of"];

const highlighting = HighlightStyle.define([
  { tag: tags.keyword, class: "tok-keyword" },
  { tag: [tags.string, tags.special(tags.string)], class: "tok-string" },
  { tag: [tags.number, tags.bool, tags.null], class: "tok-number" },
  { tag: tags.comment, class: "tok-comment" },
]);

/** Names in a query that may be those of datasets: in quotes, or after a word that names follow. */
function namesIn(text: string): string[] {
  const found = [...text.matchAll(/["`]([^"`\n]+)["`]|\b(?:from|join)\s+([\w.\-/]+)|odf_\w+\('([^'\n]+)'/gi)];
  return [...new Set(found.map((one) => one[1] ?? one[2] ?? one[3] ?? ""))].filter(Boolean).slice(0, 8);
}

/** What may stand where the cursor is; inside of quotes, names come without more of them. */
function completed({ datasets, columns }: Completions) {
  return async (context: CompletionContext): Promise<CompletionResult | null> => {
    const word = context.matchBefore(/[\w.\-/]+/);
    if (!word && !context.explicit) return null;
    const from = word?.from ?? context.pos;
    const text = context.state.doc.toString();
    const before = text.slice(from - 1, from);
    const isQuoted = before === '"' || before === "`" || before === "'";
    const part = word?.text ?? "";
    const used = namesIn(text).filter((name) => name !== part);
    const [{ names, areAll }, ...found] = await Promise.all([
      datasets(part).catch(() => ({ names: [], areAll: false })),
      ...used.map((name) => columns(name).catch(() => [] as string[])),
    ]);
    const labels = [...new Set(found.flat())];
    return {
      from,
      // Names that contain more letters are among these: without asking again, no click comes while an answer is awaited.
      validFor: (typed) => areAll && typed.startsWith(part) && /^[\w.\-/]*$/.test(typed),
      options: [
        ...labels.map((label) => ({ label, type: "property", boost: 2, apply: /^[a-z_][a-z0-9_]*$/.test(label) && label !== "offset" ? label : `"${label}"` })),
        ...names.map((label) => ({ label, type: "class", boost: 1, apply: isQuoted ? label : `"${label}"` })),
        ...FUNCTIONS.map((label) => ({ label, type: "function", apply: `${label}('` })),
      ],
    };
  };
}

/** The place that a message names: `line 2, column 5`. */
export function placeOf(message: string | undefined): { line: number; column: number } | undefined {
  const found = /line:? (\d+),? (?:column|col\.?|position|char(?:acter)?):? (\d+)/i.exec(message ?? "");
  return found ? { line: Number(found[1]), column: Number(found[2]) } : undefined;
}

/**
 * Replaces a selection by what is typed without the browser's help: Chromium would give the new letters the colours of
 * the old ones as inline styles, which the policy of these pages forbids, and complain of that.
 */
const typedOverSelection = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const { from, to, empty } = view.state.selection.main;
    if (event.inputType !== "insertText" || !event.data || empty || view.composing) return false;
    const text = event.data;
    const replace = () => view.state.update(view.state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
    const isHandled = view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, text, replace));
    if (!isHandled) view.dispatch(replace());
    event.preventDefault();
    return true;
  },
});

function diagnosticsOf(state: EditorState, message: string | undefined): Diagnostic[] {
  const place = placeOf(message);
  if (!message || !place || place.line > state.doc.lines) return [];
  const line = state.doc.line(Math.max(1, place.line));
  const from = Math.min(line.to, line.from + Math.max(0, place.column - 1));
  const word = state.wordAt(from);
  const to = word ? word.to : Math.min(line.to, from + 1);
  return [{ from: Math.min(from, to), to, severity: "error", message: message.split("\n")[0] ?? message }];
}

const NAMED = /\b(from|join)(\s+)(?:"([^"\n]+)"|`([^`\n]+)`|([a-z_][\w\-/]*(?:\.[\w\-/]+)+))(?!\s*\()/gi;

/** Names of datasets that a query reads as they are, with all changes. */
export function readWhole(text: string): string[] {
  return [...new Set([...text.matchAll(NAMED)].map((one) => one[3] ?? one[4] ?? one[5] ?? ""))];
}

/** The query with words such as `odf_current('NAME')` in the place of each dataset that it reads as it is. */
export function withDatasetsAs(text: string, words: string): string {
  return text.replace(NAMED, (_, word: string, space: string, ...names: unknown[]) => {
    const name = names.slice(0, 3).find((one) => typeof one === "string") as string;
    return `${word}${space}${words.replace("NAME", name.replaceAll("'", "''"))}`;
  });
}

/** What others than the keyboard write. */
export interface Editor {
  /** Writes words such as `odf_current('NAME')` in the place of datasets, or where the cursor is. */
  insert: (words: string) => void;
  /** Writes the name of a dataset where the cursor is. */
  name: (dataset: string) => void;
  /** Writes a text in the place of all that there is. */
  replace: (text: string) => void;
}

interface Properties {
  /** The text to begin with; from then on, the editor has it. */
  initial: string;
  editor: { current: Editor | undefined };
  change: (value: string) => void;
  run: (text: string) => void;
  completions: Completions;
  error?: string | undefined;
}

export function SqlEditor(properties: Properties) {
  const place = useRef<HTMLDivElement>(null);
  const shown = useRef<EditorView>(undefined);
  const latest = useRef(properties);
  latest.current = properties;
  useEffect(() => {
    if (!place.current) return;
    const nonce = document.querySelector<HTMLMetaElement>('meta[name="style-nonce"]')?.content ?? "";
    const view = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: latest.current.initial,
        extensions: [
          EditorView.cspNonce.of(nonce),
          Prec.highest(
            keymap.of([
              {
                key: "Mod-Enter",
                run: (view) => {
                  latest.current.run(view.state.doc.toString());
                  return true;
                },
              },
            ]),
          ),
          typedOverSelection,
          placeholder("Enter a query; names of datasets and columns are completed"),
          basicSetup,
          sql({ dialect: StandardSQL, upperCaseKeywords: false }),
          StandardSQL.language.data.of({ autocomplete: completed({ datasets: (part) => latest.current.completions.datasets(part), columns: (name) => latest.current.completions.columns(name) }) }),
          autocompletion({ activateOnTyping: true }),
          syntaxHighlighting(highlighting),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": "SQL" }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.change(update.state.doc.toString());
          }),
        ],
      }),
    });
    shown.current = view;
    const write = (words: string) => {
      const isBehindWord = /\w$/.test(view.state.sliceDoc(0, view.state.selection.main.from));
      view.dispatch(view.state.replaceSelection((isBehindWord ? " " : "") + words));
    };
    const replace = (text: string) => {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: text.length } });
      view.focus();
    };
    latest.current.editor.current = {
      insert: (words) => {
        const before = view.state.doc.toString();
        const after = withDatasetsAs(before, words);
        if (after === before) write(words);
        else replace(after);
        view.focus();
      },
      name: (dataset) => {
        write(`"${dataset}"`);
        view.focus();
      },
      replace,
    };
    view.focus();
    return () => view.destroy();
  }, []);
  useEffect(() => {
    const view = shown.current;
    if (view) view.dispatch(setDiagnostics(view.state, diagnosticsOf(view.state, properties.error)));
  }, [properties.error]);
  return <div class="editor" ref={place} />;
}
