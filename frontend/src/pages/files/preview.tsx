/** The beginning of a file. Text stays text, and a picture is a picture: nothing that somebody has uploaded runs here. */
import { useState } from "preact/hooks";
import { get, urlOf } from "../../api";
import { Loading, Problem, Value } from "../../components/basics";
import { Table } from "../../components/table";
import { count } from "../../format";
import { useLoad } from "../../hooks";
import type { ArchivedFile, Preview } from "./types";
import { baseName } from "./words";

export function PreviewOf({ path, file }: { path: string; file: ArchivedFile }) {
  const { value, error, reload } = useLoad((signal) => get<Preview>(`${path}/preview`, { signal }), [path, file.object]);
  return (
    <section>
      <h2>Preview</h2>
      {error && <Problem error={error} retry={reload} />}
      {!value && !error && <Loading />}
      {value && !error && <Shown preview={value} path={path} file={file} />}
    </section>
  );
}

function Shown({ preview, path, file }: { preview: Preview; path: string; file: ArchivedFile }) {
  const notes = [preview.packing && `Unpacked from ${preview.packing}.`, restOf(preview)].filter(Boolean).join(" ");
  return (
    <>
      {preview.problem && (
        <p class="note" role="status">
          {preview.problem}.
        </p>
      )}
      {preview.kind === "empty" && <p class="dim">The file is empty.</p>}
      {preview.kind === "table" && <Rows preview={preview} />}
      {preview.kind === "picture" && <Picture path={path} file={file} />}
      {preview.kind === "drawing" && <Drawing path={path} file={file} />}
      {preview.text !== null && (
        <pre class="file-text" tabIndex={0} role="region" aria-label={preview.kind === "bytes" ? "Bytes of the file" : "Text of the file"}>
          {visible(preview.text)}
        </pre>
      )}
      {notes && <p class="dim">{notes}</p>}
    </>
  );
}

/** What is left out. */
function restOf({ kind, isWhole, rows, columns, numColumns, text }: Preview): string {
  const found = [];
  if (kind === "bytes") found.push(`Neither text nor a picture nor a table: these are its ${isWhole ? "" : "first "}bytes.`);
  if (kind === "table" && rows && columns) {
    if (!isWhole) found.push(`The first ${count(rows.length)} rows.`);
    if (numColumns && numColumns > columns.length) found.push(`The first ${count(columns.length)} of ${count(numColumns)} columns.`);
  }
  if ((kind === "text" || kind === "drawing") && !isWhole && text) found.push("This is only the beginning. Download the file for all of it.");
  return found.join(" ");
}

function Rows({ preview }: { preview: Preview }) {
  const rows = preview.rows ?? [];
  const columns = (preview.columns ?? []).map((name, at) => ({ name, title: name, isNumber: rows.some((row) => typeof row[at] === "number") }));
  if (!columns.length) return <p class="dim">The table has no columns.</p>;
  return (
    <div class="file-table">
      <Table label="First rows of the file" columns={columns} style="values">
        {rows.map((row, at) => (
          <tr key={at}>
            {row.map((value, column) => (
              <td key={column} class={typeof value === "number" ? "number" : ""}>
                <Value value={typeof value === "string" ? visible(value) : value} isExact />
              </td>
            ))}
          </tr>
        ))}
      </Table>
    </div>
  );
}

function Picture({ path, file }: { path: string; file: ArchivedFile }) {
  const [isBroken, set] = useState(false);
  if (isBroken) return <p class="note">The picture cannot be shown: it is damaged, or too large. Download it instead.</p>;
  return <img class="file-picture" src={urlOf(`${path}/picture`)} alt={`Picture ${baseName(file.path)}`} onError={() => set(true)} />;
}

/** A drawing is shown when somebody wants it: a small one can keep a browser busy. */
function Drawing({ path, file }: { path: string; file: ArchivedFile }) {
  const [isShown, show] = useState(false);
  if (isShown) return <Picture path={path} file={file} />;
  return (
    <p>
      <button type="button" onClick={() => show(true)}>
        Show as a picture
      </button>{" "}
      <span class="dim">Scripts and links are disabled.</span>
    </p>
  );
}

/** A text whose control characters can be seen: `␛`. */
function visible(text: string): string {
  return text.replace(/\r\n/g, "\n").replace(/[\0-\x08\x0b-\x1f\x7f]/g, (sign) => (sign === "\x7f" ? "␡" : String.fromCharCode(0x2400 + sign.charCodeAt(0))));
}
