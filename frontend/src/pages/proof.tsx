/** Checking an answer that somebody has signed: drop its file, and see what is true. */
import { useState } from "preact/hooks";
import { ApiError, get, parsed } from "../api";
import { Loading, Problem } from "../components/basics";
import { useTitle } from "../hooks";
import { Contents, type Proof } from "./proof_contents";
import { Judged, type Verdict } from "./proof_verdict";

const LARGEST = 16 * 1024 ** 2;

interface State {
  name: string;
  proof?: Proof;
  verdict?: Verdict;
  error?: ApiError;
  isBusy?: boolean;
}

/** What a file holds; undefined if it is not an answer with a proof. */
function read(text: string): Proof | undefined {
  try {
    const tree = parsed(text) as Proof;
    const { query, datasets = [] } = tree.input;
    const texts = [query, tree.proof.verificationMethod, ...datasets.flatMap(({ id, alias, blockHash = "" }) => [id, alias, blockHash])];
    return tree.commitment && texts.every((one) => typeof one === "string") ? tree : undefined;
  } catch {
    return undefined;
  }
}

export function ProofPage() {
  useTitle("Check a proof");
  const [state, set] = useState<State>();
  const [isOver, setOver] = useState(false);
  const check = async (file: File | undefined) => {
    if (!file) return;
    const { name } = file;
    const refuse = (message: string) => set({ name, error: new ApiError(0, message) });
    if (file.size > LARGEST) return refuse("The file is larger than 16 MB. Check it with `odf verify-result FILE`.");
    const text = await file.text();
    const proof = read(text);
    if (!proof) return refuse("This is not an answer with a proof: a JSON file with input, commitment and proof.");
    set({ name, proof, isBusy: true });
    try {
      set({ name, proof, verdict: await verdictOn(text) });
    } catch (problem) {
      set({ name, proof, error: problem instanceof ApiError ? problem : new ApiError(0, String(problem)) });
    }
  };
  return (
    <section class="narrow">
      <h1>Check a proof</h1>
      <p>
        Answers of queries can be downloaded with a proof: the query, the blocks that it read, hashes, and a signature.
        This page checks the signature, and runs the query again over the same blocks to compare the rows.
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
      {state?.verdict && <Judged verdict={state.verdict} name={state.name} proof={state.proof} />}
      {state?.proof && <Contents proof={state.proof} verdict={state.verdict} />}
    </section>
  );
}

/**
 * What the server finds; a proof that is wrong is an answer, too. It gets the file letter by letter: numbers must not
 * pass through those of JavaScript.
 */
async function verdictOn(text: string): Promise<Verdict> {
  try {
    return await get<Verdict>("verify?include=Signer", { method: "POST", body: text });
  } catch (error) {
    const verdict = error instanceof ApiError ? (error.answer as Partial<Verdict>) : {};
    if (verdict.error) return verdict as Verdict;
    throw error;
  }
}
