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

const CHANGED = "The file was changed or damaged after it was signed. Rely on nothing in it: ask whoever gave it to you for the original.";

/** What is false, or not known, and what that means; by the kinds of the reference's node. */
const FINDINGS: Record<string, [string, string]> = {
  "InvalidRequest::InputHash": ["the question is not the one that was signed", CHANGED],
  "InvalidRequest::SubQueriesHash": ["answers of other servers in it are not those that were signed", CHANGED],
  "InvalidRequest::OutputHash": ["the rows are not those that were signed", CHANGED],
  "InvalidRequest::BadSignature": [
    "the signature is wrong",
    "The key that the file names has not signed it. Rely on nothing in it, whoever it seems to be from.",
  ],
  "VerificationFailed::EndedKey": [
    "the key that signed it is no longer valid",
    "The key was revoked, or has expired, and nothing shows that the file was signed before. Ask for the answer once more, signed with another key.",
  ],
  "VerificationFailed::OutputMismatch": [
    "other rows come out",
    "The file is as it was signed, but the same query over the same blocks gives other rows here. Its signer stands for rows that are not so, or the query does not always give the same ones. Keep the file: it is evidence.",
  ],
  "VerificationFailed::DatasetNotFound": [
    "a dataset is not here, or not for you",
    "The file is as it was signed. But its query reads a dataset that this server does not have, or that you may not read: so nobody can say whether the same rows come out.",
  ],
  "VerificationFailed::DatasetBlockNotFound": [
    "a block is not here",
    "The file is as it was signed. But its query reads a block that this server does not have, since its copy of the dataset is older, or its history was replaced: so nobody can say whether the same rows come out.",
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
        {isUnknown ? "? Cannot be checked here" : "✗ Not true"}: {title}
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
          <summary>In the server's words</summary>
          <p>
            <code>{error.kind}</code>: {error.message}
          </p>
        </details>
      )}
    </div>
  );
}
