/** What can be done about a recipient, user or group: each act is a dialog. */
import { useState } from "preact/hooks";
import { Confirm, FormDialog, ShownOnce, type Values } from "../../components/forms";
import { moment } from "../../format";
import { href, navigate } from "../../router";
import { attributesOf, change, expires, isAboutTime, of, orNothing, suggestPrincipals, textOf } from "./common";
import type { Kind, PrincipalDetail } from "./types";

export interface Act {
  what:
    | "profile"
    | "link"
    | "attributes"
    | "password"
    | "no password"
    | "admin"
    | "disable"
    | "remove"
    | "revoke"
    | "add member"
    | "remove member";
  token?: number;
  member?: string;
}

interface Properties {
  act: Act;
  kind: Kind;
  person: PrincipalDetail;
  close: () => void;
  done: (text: string) => void;
  reload: () => void;
}

export function Acts(properties: Properties) {
  const { act, kind, person, close, done } = properties;
  const { name, isAdmin } = person;
  const path = of(kind, name);
  /** Asks before something is done; `run` gives what is said then. */
  const asked = (action: string, words: string, run: () => Promise<string>, title = `${action}?`) => (
    <Confirm title={title} action={action} close={close} run={async () => done(await run())}>
      <p>{words}</p>
    </Confirm>
  );
  switch (act.what) {
    case "profile":
      return <Profile {...properties} path={path} />;
    case "link":
      return <Link {...properties} path={path} />;
    case "attributes":
      return (
        <FormDialog
          title={`Attributes of ${name}`}
          action="Change the attributes"
          close={close}
          initial={{ attributes: textOf(person.attributes) }}
          fields={[{ name: "attributes", label: "Attributes", kind: "area", hint: "All attributes, one per line, such as country=DE.", isOptional: true }]}
          submit={async (values) => {
            await change("PATCH", path, { attributes: attributesOf(values["attributes"] ?? "") });
            done("The attributes are changed. They apply from the next request on.");
          }}
        />
      );
    case "password":
      return <Password name={name} path={path} close={close} done={done} />;
    case "no password": {
      const words = `${name} can no longer sign in with it, and sessions that were started with it end.`;
      const remove = async () => {
        await change("DELETE", `${path}/password`);
        return "The password is removed.";
      };
      return asked(`Remove the password of ${name}`, words, remove);
    }
    case "admin": {
      const words = isAdmin
        ? `${name} can no longer use these pages.`
        : `${name} can do everything that you can do on these pages, such as grant access to anyone. Tokens with write access, files outside of the workspace and repositories need an access token with the scope admin.`;
      const turn = async () => {
        await change("PATCH", path, { isAdmin: !isAdmin });
        return isAdmin ? `${name} is no longer an admin.` : `${name} is an admin.`;
      };
      return asked(isAdmin ? `Remove admin rights of ${name}` : `Make ${name} an admin`, words, turn);
    }
    case "disable": {
      const [off, on, consequence] =
        kind === "groups"
          ? [`Disable ${name}`, `Enable ${name}`, "Its grants do not apply from the next request on, until you enable it again."]
          : [`Disable ${name}`, `Enable ${name}`, "All of their tokens are rejected from the next request on, until you enable them again."];
      const action = person.isDisabled ? on : off;
      const turn = async () => {
        await change("PATCH", path, { isDisabled: !person.isDisabled });
        return `Done: ${action}.`;
      };
      return asked(action, person.isDisabled ? "Their earlier tokens and grants are valid again." : consequence, turn);
    }
    case "remove": {
      const goes = kind === "groups" ? "Its grants are removed; its members stay." : "All of their tokens and grants are removed.";
      const remove = async () => {
        await change("DELETE", path);
        close();
        navigate(href(`admin/${kind}`));
      };
      return (
        <Confirm title={`Remove the ${person.kind} ${name}?`} action={`Remove ${name}`} close={close} run={remove}>
          <p>{goes} This cannot be undone.</p>
        </Confirm>
      );
    }
    case "revoke": {
      const [what, below] = act.token === undefined ? ["all tokens", "tokens"] : [`token ${act.token}`, `tokens/${act.token}`];
      const revoke = async () => {
        const { revoked } = await change<{ revoked: number }>("DELETE", `${path}/${below}`);
        return `Revoked: ${revoked}.`;
      };
      const words = "Profile files with revoked tokens are rejected from the next request on. This cannot be undone.";
      return asked("Revoke", words, revoke, `Revoke ${what} of ${name}?`);
    }
    case "add member":
      return (
        <FormDialog
          title={`Add a member to ${name}`}
          action="Add the member"
          close={close}
          fieldOf={() => "member"}
          fields={[{ name: "member", label: "Recipient or user", suggest: suggestPrincipals("recipients", "users") }]}
          submit={async (values) => {
            const member = values["member"]?.trim() ?? "";
            await change("PUT", of("groups", name, "members", member));
            done(`${member} is now a member of ${name}.`);
          }}
        />
      );
    case "remove member": {
      const member = act.member ?? "";
      const take = async () => {
        await change("DELETE", of("groups", name, "members", member));
        return `${member} is no longer a member of ${name}.`;
      };
      const words = "The grants of the group no longer apply to them, from the next request on.";
      return asked(`Remove ${member}`, words, take, `Remove ${member} from ${name}?`);
    }
  }
}

const url = { name: "url", label: "URL of the server for clients", isOptional: true, hint: "If empty: the setting sharing.url, or else the address of this page." };

function fieldOfTimes(error: Parameters<typeof isAboutTime>[0]): string | undefined {
  return isAboutTime(error) ? "expires" : /URL/.test(error.message) ? "url" : undefined;
}

function Profile({ person, path, close, reload }: Properties & { path: string }) {
  const [made, show] = useState<string>();
  const submit = async (values: Values) => {
    const { profile } = await change<{ profile: object }>("POST", `${path}/profile`, {
      expires: orNothing(values["expires"]),
      overlap: orNothing(values["overlap"]),
      url: orNothing(values["url"]),
      version: Number(values["version"]),
    });
    show(`${JSON.stringify(profile, null, 2)}\n`);
    reload();
  };
  if (made) {
    return (
      <ShownOnce title={`The profile file of ${person.name}`} text={made} file={`${person.name}.share`} close={close}>
        Anyone who has this file can read what is granted to {person.name}. Send it over a secure channel.
      </ShownOnce>
    );
  }
  return (
    <FormDialog
      title={`A new profile file for ${person.name}`}
      action="Create the file"
      close={close}
      submit={submit}
      fieldOf={fieldOfTimes}
      initial={{ version: "1" }}
      fields={[
        expires,
        { name: "overlap", label: "Older files are valid for", hint: "Such as 7d; unchanged if empty.", isOptional: true },
        url,
        {
          name: "version",
          label: "Version of the file",
          kind: "select",
          options: [
            ["1", "1, which all clients support"],
            ["2", "2"],
          ],
        },
      ]}
    />
  );
}

function Link({ person, path, close }: Properties & { path: string }) {
  const [made, show] = useState<{ url: string; expiresAt: string }>();
  const submit = async (values: Values) => {
    const body = { goodFor: values["goodFor"], expires: orNothing(values["expires"]), url: orNothing(values["url"]) };
    show(await change("POST", `${path}/link`, body));
  };
  if (made) {
    return (
      <ShownOnce title={`An activation link for ${person.name}`} text={made.url} close={close}>
        The first person who opens it gets the profile file of {person.name}. It works once, until {moment(made.expiresAt)}.
      </ShownOnce>
    );
  }
  return (
    <FormDialog
      title={`An activation link for ${person.name}`}
      action="Create the link"
      close={close}
      submit={submit}
      fieldOf={fieldOfTimes}
      initial={{ goodFor: "3d" }}
      fields={[{ name: "goodFor", label: "The link is valid for", hint: "Such as 3d." }, { ...expires, label: "The token is valid for" }, url]}
    />
  );
}

function Password({ name, path, close, done }: { name: string; path: string; close: () => void; done: (text: string) => void }) {
  return (
    <FormDialog
      title={`A password for ${name}`}
      action="Set the password"
      close={close}
      fieldOf={() => "password"}
      fields={[{ name: "password", label: "Password", kind: "password", hint: "At least 8 characters; a few words are easier to remember than symbols. Sessions that were started with the old password end." }]}
      submit={async ({ password }) => {
        await change("PUT", `${path}/password`, { password });
        done(`${name} has a new password.`);
      }}
    />
  );
}
