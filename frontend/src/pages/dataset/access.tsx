/** Who may read the dataset: everybody of them for admins, for others their own right. */
import { get, ofDataset, session } from "../../api";
import { Badge, Loading, Problem } from "../../components/basics";
import { useLoad } from "../../hooks";
import { datasetPath, href } from "../../router";
import type { Dataset, OwnAccess } from "../../types";
import type { TabProperties } from "./page";
import { ReadersTab } from "./readers";

/** The right of whoever looks at the page. */
export function useOwnAccess(dataset: Dataset) {
  return useLoad((signal) => get<OwnAccess>(ofDataset(dataset.name, "access"), { signal }), [dataset.name, session.value.name]);
}

export function AccessTab(properties: TabProperties) {
  return session.value.isAdmin ? <ReadersTab {...properties} /> : <OwnAccessTab {...properties} />;
}

function OwnAccessTab({ dataset }: TabProperties) {
  const { value, error, reload } = useOwnAccess(dataset);
  if (error) return <Problem error={error} retry={reload} />;
  if (!value) return <Loading />;
  return (
    <section>
      <h2>Who may read this dataset?</h2>
      {value.visibility === "public" ? (
        <p class="lead">
          <Badge tone="warn">public</Badge> Anyone who can reach this server, without a token.
        </p>
      ) : (
        <p class="lead">
          <Badge tone="good">private</Badge> You, and others; only administrators can list them.
        </p>
      )}
      <h2>You</h2>
      <p>{rightOf(value)}</p>
      {value.tables.length > 0 && (
        <p>
          Over Delta Sharing, you read it as{" "}
          {value.tables.map((table, at) => (
            <span key={table.path}>
              {at > 0 && ", "}
              <code>{table.path}</code> ({table.shown === "changelog" ? "all changes" : "current state"}
              {table.at && ` at ${table.at}`})
            </span>
          ))}
          . <a href={href(datasetPath(dataset.name, "get"))}>Get it</a>
        </p>
      )}
      <p class="dim">
        Only administrators see which tokens, users and recipients may read it, and which parts.{" "}
        {session.value.name ? "Ask the operator of this server." : <a href={href("signin", { then: location.pathname })}>Sign in</a>}
      </p>
    </section>
  );
}

function rightOf({ name, right, scope }: OwnAccess): string {
  if (right === "token") return `${name} has an access token with the scope ${scope}, which can read all datasets of the workspace.`;
  if (right === "grants") return `${name} has a grant on a share that contains all of it.`;
  return name ? "Everyone can read it: it is public." : "Everyone can read it: it is public.";
}
