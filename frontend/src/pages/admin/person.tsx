/** A recipient, user or group: what they may read, their tokens, and what can be done about them. */
import { useState } from "preact/hooks";
import { get } from "../../api";
import { Ago, Badge, Empty, Fact, Facts, Loading, Moment, Problem } from "../../components/basics";
import { ACTIONS, Table } from "../../components/table";
import { useLoad, useTitle } from "../../hooks";
import { href } from "../../router";
import { of, Notice, useNotice } from "./common";
import { NewGrant, Withdraw, WithdrawButton } from "./grants";
import { personPath } from "./paths";
import { Acts, type Act } from "./person_acts";
import type { Grant, Kind, PrincipalDetail } from "./types";

export function PersonPage({ kind, name }: { kind: Kind; name: string }) {
  useTitle(`${name} · Administration`);
  const { value: person, error, reload } = useLoad((signal) => get<PrincipalDetail>(of(kind, name), { signal }), [kind, name]);
  const [act, begin] = useState<Act>();
  const [isGranting, grant] = useState(false);
  const [removed, remove] = useState<Grant>();
  const [notice, tell] = useNotice();
  const done = (text: string) => {
    tell(text);
    begin(undefined);
    grant(false);
    remove(undefined);
    reload();
  };
  if (error && !person) {
    if (error.status !== 404) return <Problem error={error} retry={reload} />;
    return (
      <Empty title={error.message.split("\n")[0] ?? ""}>
        <p>
          <a href={href(`admin/${kind}`)}>All {kind}</a>
        </p>
      </Empty>
    );
  }
  if (!person) return <Loading />;
  const isGroup = kind === "groups";
  return (
    <>
      <Notice text={notice} />
      <p>
        <a href={href(`admin/${kind}`)}>All {kind}</a>
      </p>
      <h2>
        {person.name} <Badge tone="info">{person.kind}</Badge>
        {person.isDisabled && <Badge tone="bad">disabled</Badge>}
        {person.isAdmin && <Badge tone="warn">admin</Badge>}
      </h2>
      <Facts>
        <Fact name="Added">
          <Ago time={person.createdAt} />
        </Fact>
        {!isGroup && (
          <>
            <Fact name="Attributes">
              {Object.entries(person.attributes).map(([key, value]) => (
                <Badge key={key}>{`${key}=${value}`}</Badge>
              ))}
              {Object.keys(person.attributes).length === 0 && <span class="dim">none</span>}
            </Fact>
            <Fact name="Groups">
              {person.groups.map((one, at) => (
                <span key={one}>
                  {at > 0 && ", "}
                  <a href={href(personPath("groups", one))}>{one}</a>
                </span>
              ))}
              {person.groups.length === 0 && <span class="dim">none</span>}
            </Fact>
          </>
        )}
        {kind === "users" && <Fact name="Password">{person.hasPassword ? "set" : <span class="dim">none</span>}</Fact>}
      </Facts>
      <div class="bar">
        {!isGroup && (
          <a class="button" href={href(personPath(kind, person.name, "tables"))}>
            See as {person.name}
          </a>
        )}
        {actsOn(kind, person).map(([what, label]) => (
          <button key={what} type="button" class={what === "remove" ? "danger" : ""} onClick={() => begin({ what })}>
            {label}
          </button>
        ))}
      </div>
      {isGroup && <Members person={person} begin={begin} />}
      <Grants person={person} add={() => grant(true)} remove={remove} />
      {!isGroup && <Tokens person={person} begin={begin} />}
      {act && <Acts act={act} kind={kind} person={person} close={() => begin(undefined)} done={done} reload={reload} />}
      {isGranting && <NewGrant initial={{ principal: person.name }} close={() => grant(false)} done={done} />}
      {removed && <Withdraw grant={removed} close={() => remove(undefined)} done={done} />}
    </>
  );
}

/** What can be done about them, with the words of its button. */
function actsOn(kind: Kind, { isDisabled, isAdmin, hasPassword }: PrincipalDetail): [Act["what"], string][] {
  const [isGroup, isUser] = [kind === "groups", kind === "users"];
  const acts: [boolean, Act["what"], string][] = [
    [!isGroup, "profile", "New profile file"],
    [!isGroup, "link", "Activation link"],
    [!isGroup, "attributes", "Change attributes"],
    [isUser, "password", hasPassword ? "Change password" : "Set a password"],
    [isUser && hasPassword, "no password", "Remove password"],
    [isUser, "admin", isAdmin ? "Remove admin rights" : "Make admin"],
    [isGroup, "disable", isDisabled ? "Enable" : "Disable"],
    [!isGroup, "disable", isDisabled ? "Enable" : "Disable"],
    [true, "remove", "Remove"],
  ];
  return acts.filter(([isPossible]) => isPossible).map(([, what, label]) => [what, label]);
}

function Grants({ person, add, remove }: { person: PrincipalDetail; add: () => void; remove: (grant: Grant) => void }) {
  return (
    <section>
      <h2>Grants</h2>
      {person.groups.length > 0 && <p class="dim">Their own; those of their groups are theirs, too.</p>}
      {person.grants.length === 0 && <p>None.</p>}
      {person.grants.length > 0 && (
        <Table label="Grants" columns={["Object", "Restrictions", ACTIONS]}>
          {person.grants.map((grant) => (
            <tr key={grant.number}>
              <th scope="row">{grant.path}</th>
              <td>{grant.words}</td>
              <td class="actions">
                <WithdrawButton grant={grant} open={remove} />
              </td>
            </tr>
          ))}
        </Table>
      )}
      <p>
        <button type="button" onClick={add}>
          Add a grant
        </button>
      </p>
    </section>
  );
}

function Tokens({ person, begin }: { person: PrincipalDetail; begin: (act: Act) => void }) {
  const good = person.tokens.filter((token) => token.isGood);
  return (
    <section>
      <h2>Tokens</h2>
      {person.tokens.length === 0 && <p>None: without a profile file, they cannot read anything.</p>}
      {person.tokens.length > 0 && (
        <Table label="Tokens" columns={["#", "Created", "Expires", "State", ACTIONS]}>
          {person.tokens.map((token) => (
            <tr key={token.number}>
              <th scope="row">{token.number}</th>
              <td>
                <Moment time={token.createdAt} />
              </td>
              <td>
                <Moment time={token.revokedAt ?? token.expiresAt} none="never" />
              </td>
              <td>
                <Badge tone={token.isGood ? "good" : "plain"}>{token.isGood ? "valid" : token.revokedAt ? "revoked" : "expired"}</Badge>
              </td>
              <td class="actions">
                {token.isGood && (
                  <button type="button" class="quiet" aria-label={`Revoke token ${token.number}`} onClick={() => begin({ what: "revoke", token: token.number })}>
                    Revoke
                  </button>
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
      {good.length > 1 && (
        <p>
          <button type="button" onClick={() => begin({ what: "revoke" })}>
            Revoke all {good.length}
          </button>
        </p>
      )}
    </section>
  );
}

const MOST = 200;

function Members({ person, begin }: { person: PrincipalDetail; begin: (act: Act) => void }) {
  const [search, type] = useState("");
  const members = (person.members ?? []).filter((name) => name.toLowerCase().includes(search.toLowerCase()));
  return (
    <section>
      <h2>Members</h2>
      <div class="bar">
        {(person.members?.length ?? 0) > 10 && (
          <label class="search">
            <span class="hidden">Search members</span>
            <input type="search" placeholder="Search members" value={search} onInput={(event) => type(event.currentTarget.value)} />
          </label>
        )}
        <button type="button" onClick={() => begin({ what: "add member" })}>
          Add a member
        </button>
      </div>
      {members.length === 0 && <p>{search ? `No match for “${search}”.` : "No members yet."}</p>}
      <ul class="words">
        {members.slice(0, MOST).map((name) => (
          <li key={name}>
            {name}{" "}
            <button type="button" class="quiet" aria-label={`Remove ${name} from ${person.name}`} onClick={() => begin({ what: "remove member", member: name })}>
              Remove
            </button>
          </li>
        ))}
      </ul>
      {members.length > MOST && <p class="dim">and {members.length - MOST} more: search for them</p>}
    </section>
  );
}
