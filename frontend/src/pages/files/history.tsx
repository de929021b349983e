/** What was said of a file, by whom and why: it came in, was corrected, withdrawn, or its retention ended. */
import { Ago, SignedBy } from "../../components/basics";
import { moment } from "../../format";
import { datasetPath, href } from "../../router";
import type { Dataset } from "../../types";
import type { Version } from "./types";

const FIELDS: Record<string, string> = { what: "what", where: "where", workId: "job", start: "start", end: "end", path: "path", status: "status", released: "released" };
const QUIET = ["status", "released"]; // the heading says so

export function History({ dataset, history }: { dataset: Dataset; history: Version[] }) {
  return (
    <section>
      <h2>History</h2>
      <ol class="versions">
        {history.map((version, at) => (
          <li key={version.offset}>
            <p>
              <strong>{wordOf(version, history[at - 1])}</strong>
              {version.who && at > 0 && (
                <>
                  {" by "}
                  <bdi>{version.who}</bdi>
                </>
              )}{" "}
              <Ago time={version.systemTime} />
              <span class="dim">
                {" "}
                · {moment(version.systemTime)} ·{" "}
                <a href={href(datasetPath(dataset.name, "data"), { view: "changelog", row: String(version.offset) })}>row {version.offset}</a>
                {version.signedBy.length > 0 && (
                  <>
                    {" "}
                    · signed by <SignedBy names={version.signedBy} />
                  </>
                )}
              </span>
            </p>
            {version.why && at > 0 && (
              <p>
                Reason: <bdi>{version.why}</bdi>
              </p>
            )}
            <Changes version={version} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function wordOf(version: Version, before: Version | undefined): string {
  if (!before) return "Archived";
  if (version.status === before.status) return "Corrected";
  return version.status === "withdrawn" ? "Withdrawn" : version.status === "expired" ? "Expired" : "Restored";
}

function Changes({ version }: { version: Version }) {
  const changes = version.changes.filter((one) => !QUIET.includes(one.field));
  if (!changes.length) return null;
  return (
    <ul class="differences">
      {changes.map(({ field, old, new: now }) => (
        <li key={field}>
          {FIELDS[field] ?? field}:{" "}
          <del>
            <span class="hidden">was </span>
            <bdi>{old ?? "none"}</bdi>
          </del>{" "}
          <ins>
            <span class="hidden">now </span>
            <bdi>{now ?? "none"}</bdi>
          </ins>
        </li>
      ))}
    </ul>
  );
}
