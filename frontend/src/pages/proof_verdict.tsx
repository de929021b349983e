/** The verdict on a proof in plain words: what is false, or cannot be told here, and what that means. */
import { session } from "../api";
import { href } from "../router";
import type { Proof } from "./proof_contents";

export interface Verdict {
  ok: boolean;
  /** Whom the proof names; null if that is not a key. */
  signer: { id: string; name: string } | null;
  error?: { kind: string; message: string; dataset_id?: string | null };
}

const CHANGED = "The file was changed or damaged after it was signed. Do not trust its content: ask the sender for the original.";

/** What is false, or not known, and what that means; by the kinds of the reference's node. */
const FINDINGS: Record<string, [string, string]> = {
  "InvalidRequest::InputHash": ["the query is not the one that was signed", CHANGED],
  "InvalidRequest::SubQueriesHash": ["its answers of other servers are not those that were signed", CHANGED],
  "InvalidRequest::OutputHash": ["the rows are not those that were signed", CHANGED],
  "InvalidRequest::BadSignature": [
    "the signature is not valid",
    "The file is not signed with the key that it names. Do not trust its content, whoever it seems to be from.",
  ],
  "VerificationFailed::EndedKey": [
    "the key that signed it is no longer valid",
    "The key was revoked, or has expired, and nothing proves that the file was signed before that. Request the answer again, signed with another key.",
  ],
  "VerificationFailed::OutputMismatch": [
    "the query gives other rows",
    "The signature is valid, but the same query over the same blocks gives other rows here. The signer signed wrong rows, or the query is not deterministic. Keep the file as evidence.",
  ],
  "VerificationFailed::DatasetNotFound": [
    "a dataset is missing, or you may not read it",
    "The signature is valid. But the query reads a dataset that this server does not have, or that you may not read, so the rows cannot be checked here.",
  ],
  "VerificationFailed::DatasetBlockNotFound": [
    "a block is missing",
    "The signature is valid. But the query reads a block that this server does not have: its copy of the dataset is older, or the history was replaced. So the rows cannot be checked here.",
  ],
};

/** Whether the file is what its signer has signed, be it so or not; the rows are looked at after the signature. */
export const isSigned = ({ ok, error }: Verdict): boolean => ok || /^VerificationFailed|::OutputHash$/.test(error?.kind ?? "");

export function Judged({ verdict, name, proof }: { verdict: Verdict; name: string; proof: Proof | undefined }) {
  if (verdict.ok) {
    return (
      <div class="verdict good" role="status">
        <h2>✓ True</h2>
        <p>{name} is what was signed, and the same rows come out of the same blocks on this server.</p>
      </div>
    );
  }
  const { error } = verdict;
  const kind = error?.kind ?? "";
  const [title, words] = FINDINGS[kind] ?? ["it is not what was signed", CHANGED];
  const isUnknown = kind.endsWith("NotFound");
  const dataset = proof?.input.datasets?.find((one) => one.id === error?.dataset_id);
  return (
    <div class={`verdict ${isUnknown ? "warn" : "bad"}`} role="status">
      <h2>
        {isUnknown ? "? Cannot be checked here" : "✗ Not valid"}: {title}
      </h2>
      <p>{words}</p>
      {dataset && (
        <p>
          It is about <code>{dataset.alias}</code>.{" "}
          {!session.value.name && (
            <>
              <a href={href("signin", { then: href("proof") })}>Sign in</a> if you may read it.
            </>
          )}
        </p>
      )}
      {error && (
        <details>
          <summary>Details from the server</summary>
          <p>
            <code>{error.kind}</code>: {error.message}
          </p>
        </details>
      )}
    </div>
  );
}
