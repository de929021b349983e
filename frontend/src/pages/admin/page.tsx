/** Administration: its parts are tabs, for admins only. */
import type { FunctionComponent } from "preact";
import { session } from "../../api";
import { Empty } from "../../components/basics";
import { NoSuchPage } from "../../components/no_such_page";
import { useTitle } from "../../hooks";
import { address, href, pathOf } from "../../router";
import { AuditTab } from "./audit";
import { GrantsTab } from "./grants";
import { PeopleTab } from "./people";
import { RepositoriesTab } from "./repositories";
import { SharesTab } from "./shares";
import { SystemTab } from "./system";
import { TokensTab } from "./tokens";

export interface PartProperties {
  /** What is behind the tab in the address: `acme` in `admin/recipients/acme`. */
  rest: string[];
}

const parts: readonly (readonly [string, string, FunctionComponent<PartProperties>])[] = [
  ["shares", "Shares and tables", SharesTab],
  ["recipients", "Recipients", PeopleTab],
  ["users", "Users", PeopleTab],
  ["groups", "Groups", PeopleTab],
  ["grants", "Grants", GrantsTab],
  ["tokens", "Access tokens", TokensTab],
  ["audit", "Audit log", AuditTab],
  ["repositories", "Repositories", RepositoriesTab],
  ["system", "System", SystemTab],
];

export function AdminPage() {
  const { name, isAdmin } = session.value;
  const [, part = "shares", ...rest] = pathOf(address.value).split("/");
  useTitle(rest.length ? "" : `${parts.find(([path]) => path === part)?.[1] ?? ""} · Administration`);
  if (!isAdmin) {
    return (
      <Empty title="Administration needs an admin">
        {name ? (
          <p>
            You are signed in as {name}, who is not an admin. The operator of this server can change that:{" "}
            <code>odf user admin NAME on</code>, or <code>odf token new NAME --scope admin</code>.
          </p>
        ) : (
          <p>
            <a href={href("signin", { then: location.pathname })}>Sign in</a> as an admin to continue.
          </p>
        )}
        <p>
          <a href={href("")}>All datasets</a>
        </p>
      </Empty>
    );
  }
  const known = parts.find(([path]) => path === part);
  if (!known) return <NoSuchPage near={[["admin", "Administration"]]} />;
  const [path, , Part] = known;
  return (
    <section>
      <h1>Administration</h1>
      <nav class="tabs" aria-label="Parts of the administration">
        {parts.map(([one, label]) => (
          <a key={one} href={href(one === "shares" ? "admin" : `admin/${one}`)} aria-current={one === path ? "page" : undefined}>
            {label}
          </a>
        ))}
      </nav>
      <Part key={`${path}/${rest.join("/")}`} rest={rest.map(decodeURIComponent)} />
    </section>
  );
}
