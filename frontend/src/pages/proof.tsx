/** Checking an answer that somebody has signed: drop its file, and see what is true. */
import { useState } from "preact/hooks";
import { ApiError, get } from "../api";
import { Fact, Facts, Loading, Problem, Snippet } from "../components/basics";
import { useTitle } from "../hooks";

interface Verdict {
  ok: boolean;
  error?: { kind: string; message: string };
}

interface Proof {
  input: { query?: string; datasets?: { alias: string; id: string; blockHash?: string }[] };
  subQueries?: unknown[];
  commitment: object;
  proof: { verificationMethod?: string };
  output?: { data?: unknown };
  version?: number;
}

const LARGEST = 16 * 1024 ** 2;

/** The parts of a file that the server asks for; undefined if it is no answer with a proof. */
function parsed(text: string): Proof | undefined {
  try {
    const tree = JSON.parse(text) as Proof;
    return tree.input && tree.commitment && tree.proof ? tree : undefined;
  } catch {
    return undefined;
  }
}

export function ProofPage() {
  useTitle("Check a proof");
  const [state, set] = useState<{ name: string; proof?: Proof; verdict?: Verdict; error?: ApiError; isBusy?: boolean }>();
  const [isOver, setOver] = useState(false);
  const check = async (file: File | undefined) => {
    if (!file) return;
    const refuse = (message: string) => set({ name: file.name, error: new ApiError(0, message) });
    if (file.size > LARGEST) return refuse("The file is larger than 16 MB. Check it with `odf verify-result FILE`.");
    const proof = parsed(await file.text());
    if (!proof) return refuse("This is not an answer with a proof: a JSON file with input, commitment and proof.");
    set({ name: file.name, proof, isBusy: true });
    try {
      set({ name: file.name, proof, verdict: await verdictOn(proof) });
    } catch (problem) {
      set({ name: file.name, proof, error: problem instanceof ApiError ? problem : new ApiError(0, String(problem)) });
    }
  };
  return (
    <section class="narrow">
      <h1>Check a proof</h1>
      <p>
        Answers of queries can be downloaded with a proof: the query, the blocks that it read, hashes, and a signature.
        This page checks the signature, and asks the same blocks again whether the same rows come out.
      </p>
      <label
        class={`drop ${isOver ? "over" : ""}`}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          void check(event.dataTransfer?.files[0]);
        }}
      >
        <strong>Drop a proof here</strong>, or choose a file
        <input type="file" accept=".json,application/json" onChange={(event) => void check(event.currentTarget.files?.[0])} />
      </label>
      {state?.isBusy && <Loading what="Checking" />}
      {state?.error && <Problem error={state.error} />}
      {state?.verdict && <Shown verdict={state.verdict} name={state.name} />}
      {state?.proof && <Details proof={state.proof} />}
    </section>
  );
}

/** What the server finds; a proof that is wrong is an answer, too. */
async function verdictOn(proof: Proof): Promise<Verdict> {
  const { input, subQueries = [], commitment, proof: signature, output, version = 1 } = proof;
  const body = { input, subQueries, commitment, proof: signature, output, version };
  try {
    return await get<Verdict>("verify", { method: "POST", body });
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) {
      const verdict = error.answer as Partial<Verdict>;
      return { ok: false, error: verdict.error ?? { kind: "", message: error.message } };
    }
    throw error;
  }
}

function Shown({ verdict, name }: { verdict: Verdict; name: string }) {
  return (
    <div class={`verdict ${verdict.ok ? "good" : "bad"}`} role="status">
      <h2>{verdict.ok ? "✓ True" : "✗ Not true"}</h2>
      <p>
        {verdict.ok
          ? `${name} is what was signed, and the same rows come out of the same blocks on this server.`
          : (verdict.error?.message ?? "The answer is not what was signed, or does not come out again.")}
      </p>
    </div>
  );
}

function Details({ proof }: { proof: Proof }) {
  return (
    <>
      <h2>What was asked</h2>
      <Snippet label="Query" text={proof.input.query ?? ""} />
      <Facts>
        {(proof.input.datasets ?? []).map((dataset) => (
          <Fact key={dataset.id} name={dataset.alias}>
            <code>{dataset.blockHash ?? "no block"}</code>
          </Fact>
        ))}
        <Fact name="Signed with">
          <code>{proof.proof.verificationMethod}</code>
        </Fact>
      </Facts>
    </>
  );
}
