/** An editor for SQL: colours, completion of names and columns, errors under their place. */
import { autocompletion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { sql, StandardSQL } from "@codemirror/lang-sql";
import { type Diagnostic, setDiagnostics } from "@codemirror/lint";
import { EditorState, Prec } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { tags } from "@lezer/highlight";
import { basicSetup } from "codemirror";
import { useEffect, useRef } from "preact/hooks";

export interface Completions {
  datasets: () => string[];
  columns: (dataset: string) => Promise<string[]>;
}

const FUNCTIONS = ["odf_current", "odf_changelog", "odf_as_at", "odf_as_of", "odf_as_at_of"];

const highlighting = HighlightStyle.define([
  { tag: tags.keyword, class: "tok-keyword" },
  { tag: [tags.string, tags.special(tags.string)], class: "tok-string" },
  { tag: [tags.number, tags.bool, tags.null], class: "tok-number" },
  { tag: tags.comment, class: "tok-comment" },
]);

function completed({ datasets, columns }: Completions) {
  return async (context: CompletionContext): Promise<CompletionResult | null> => {
    const word = context.matchBefore(/[\w.\-/]+/);
    if (!word && !context.explicit) return null;
    const from = word?.from ?? context.pos;
    const text = context.state.doc.toString();
    const names = datasets();
    const used = names.filter((name) => text.includes(name)).slice(0, 5);
    const found = await Promise.all(used.map((name) => columns(name).catch(() => [] as string[])));
    return {
      from,
      validFor: /^[\w.\-/]*$/,
      options: [
        ...[...new Set(found.flat())].map((label) => ({ label, type: "property", boost: 2, apply: label === "offset" ? '"offset"' : label })),
        ...names.map((label) => ({ label, type: "class", boost: 1, apply: `"${label}"` })),
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

function diagnosticsOf(state: EditorState, message: string | undefined): Diagnostic[] {
  const place = placeOf(message);
  if (!message || !place || place.line > state.doc.lines) return [];
  const line = state.doc.line(Math.max(1, place.line));
  const from = Math.min(line.to, line.from + Math.max(0, place.column - 1));
  const word = state.wordAt(from);
  const to = word ? word.to : Math.min(line.to, from + 1);
  return [{ from: Math.min(from, to), to, severity: "error", message: message.split("\n")[0] ?? message }];
}

interface Properties {
  value: string;
  change: (value: string) => void;
  run: () => void;
  completions: Completions;
  error?: string | undefined;
}

export function SqlEditor(properties: Properties) {
  const place = useRef<HTMLDivElement>(null);
  const editor = useRef<EditorView>(undefined);
  const latest = useRef(properties);
  latest.current = properties;
  useEffect(() => {
    if (!place.current) return;
    const nonce = document.querySelector<HTMLMetaElement>('meta[name="style-nonce"]')?.content ?? "";
    const view = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: latest.current.value,
        extensions: [
          EditorView.cspNonce.of(nonce),
          Prec.highest(
            keymap.of([
              {
                key: "Mod-Enter",
                run: () => {
                  latest.current.run();
                  return true;
                },
              },
            ]),
          ),
          basicSetup,
          sql({ dialect: StandardSQL, upperCaseKeywords: false }),
          StandardSQL.language.data.of({ autocomplete: completed({ datasets: () => latest.current.completions.datasets(), columns: (name) => latest.current.completions.columns(name) }) }),
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
    editor.current = view;
    view.focus();
    return () => view.destroy();
  }, []);
  useEffect(() => {
    const view = editor.current;
    if (view && view.state.doc.toString() !== properties.value) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: properties.value } });
    }
  }, [properties.value]);
  useEffect(() => {
    const view = editor.current;
    if (view) view.dispatch(setDiagnostics(view.state, diagnosticsOf(view.state, properties.error)));
  }, [properties.error]);
  return <div class="editor" ref={place} />;
}
