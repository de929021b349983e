/** Signing in, by a token or by name and password. */
import { useState } from "preact/hooks";
import { ApiError, session, signIn } from "../api";
import { Choice, Problem } from "../components/basics";
import { useTitle } from "../hooks";
import { address, href, navigate } from "../router";

/** The page to go to afterwards: one of these pages, whatever the address says. */
function next(): string {
  const wanted = address.value.searchParams.get("then") ?? "";
  const front = href("");
  return wanted.startsWith(front) && !wanted.startsWith("//") ? wanted : front;
}

export function SignIn() {
  useTitle("Sign in");
  const [way, setWay] = useState<"token" | "password">("token");
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    const value = (name: string) => String(fields.get(name) ?? "");
    setBusy(true);
    setError(undefined);
    try {
      await signIn(
        way === "token" ? { accessToken: value("token") } : { login: value("login"), password: value("password") },
      );
      navigate(next(), true);
    } catch (problem) {
      setError(problem instanceof ApiError ? problem : new ApiError(0, String(problem)));
    } finally {
      setBusy(false);
    }
  };
  return (
    <section class="narrow">
      <h1>Sign in</h1>
      {session.value.name && <p>You are signed in as {session.value.name}.</p>}
      <Choice
        label="How to sign in"
        value={way}
        options={[
          ["token", "Access token"],
          ["password", "Name and password"],
        ]}
        choose={setWay}
      />
      <form onSubmit={submit} onInput={() => setError(undefined)} class="stack">
        {way === "token" ? (
          <label>
            Access token
            <input name="token" type="password" autocomplete="off" required spellcheck={false} />
          </label>
        ) : (
          <>
            <label>
              Name
              <input name="login" autocomplete="username" required />
            </label>
            <label>
              Password
              <input name="password" type="password" autocomplete="current-password" required />
            </label>
          </>
        )}
        {error && <Problem error={error} />}
        <button type="submit" class="primary" disabled={isBusy}>
          Sign in
        </button>
      </form>
      <p class="dim">
        Public datasets need no sign-in. The operator of this server creates tokens with <code>odf token new NAME</code>; on
        your own machine, <code>odf ui</code> opens the pages signed in.
      </p>
    </section>
  );
}
