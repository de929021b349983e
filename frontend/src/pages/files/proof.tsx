/** Why a file can be relied on: the block that has its record, who has signed it, and whether its bytes have its hash. */
import { useState } from "preact/hooks";
import { ApiError, call, get } from "../../api";
import { Blake3 } from "../../blake3";
import { Copy, Fact, Facts, Hash, Problem, SignedBy } from "../../components/basics";
import { count, counted, size } from "../../format";
import { datasetPath, href } from "../../router";
import type { Dataset } from "../../types";
import type { ArchivedFile, Check, Details } from "./types";

const MOST_HERE = 64_000_000;
const BLAKE3 = "f1e20";

export function Proof({ dataset, details, path }: { dataset: Dataset; details: Details; path: string }) {
  const { file, history, head, place } = details;
  const now = history.at(-1);
  const command = `odf verify ${dataset.name}`;
  return (
    <section>
      <h2>Proof</h2>
      {now && (
        <p>
          <a href={href(datasetPath(dataset.name, "history"))}>Block {now.sequenceNumber}</a> of {counted(head.sequenceNumber + 1, "block")} contains the {history.length > 1 ? "latest " : ""}record.{" "}
          {now.signedBy.length ? (
            <>
              It is signed by{" "}
              <strong>
                <SignedBy names={now.signedBy} />
              </strong>
              .
            </>
          ) : head.signedBy.length ? (
            <>
              The block is not signed itself, but the last block is, by{" "}
              <strong>
                <SignedBy names={head.signedBy} />
              </strong>
              ; its hash covers all earlier blocks.
            </>
          ) : (
            <strong>{now.signatureProblem ? `The signature is not valid: ${now.signatureProblem}` : "It is not signed."}</strong>
          )}
        </p>
      )}
      <Facts>
        <Fact name={file.object.startsWith(BLAKE3) ? "BLAKE3 hash, also the name in the store" : "Name in the store"}>
          <Hash text={file.object} />
        </Fact>
        <Fact name="BLAKE2b hash, as in datalake">
          <Hash text={file.hash} />
        </Fact>
        <Fact name="Bytes">{count(file.size)}</Fact>
        {now && (
          <Fact name="Block">
            <Hash text={now.block} />
          </Fact>
        )}
      </Facts>
      {place === "here" && <CheckBytes file={file} path={path} />}
      <p class="whole">
        Verify the whole archive: <code>{command}</code> <Copy text={command} />
      </p>
    </section>
  );
}

interface Result {
  ok: boolean;
  words: string;
}

/** Small files are hashed by the browser, which need not believe the server; one that was withdrawn does not come here. */
function CheckBytes({ file, path }: { file: ArchivedFile; path: string }) {
  const isHere = file.size <= MOST_HERE && file.object.startsWith(BLAKE3) && file.status !== "withdrawn";
  const [result, setResult] = useState<Result>();
  const [error, setError] = useState<ApiError>();
  const [done, setDone] = useState<number>();
  const check = async () => {
    setResult(undefined);
    setError(undefined);
    setDone(0);
    try {
      setResult(await (isHere ? hashedHere(file, path, setDone) : hashedThere(file, path)));
    } catch (problem) {
      setError(problem instanceof ApiError ? problem : new ApiError(0, "The download ended early."));
    } finally {
      setDone(undefined);
    }
  };
  return (
    <div class="check">
      <p>
        <button type="button" onClick={check} disabled={done !== undefined}>
          Check the hash
        </button>{" "}
        <span class="dim">{isHere ? "This browser downloads the file and computes its hash." : "The server reads the file and computes its hashes."}</span>
      </p>
      <div role="status">
        {done !== undefined && <p>{isHere ? `${size(done)} of ${size(file.size)} …` : "The server is reading …"}</p>}
        {result && <p class={`verdict ${result.ok ? "good" : "bad"}`}>{result.words}</p>}
      </div>
      {error && <Problem error={error} />}
    </div>
  );
}

async function hashedHere(file: ArchivedFile, path: string, tell: (bytes: number) => void): Promise<Result> {
  const answer = await call(`${path}/content`);
  const reader = answer.body?.getReader();
  const hasher = new Blake3();
  let length = 0;
  for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
    hasher.update(piece.value);
    length += piece.value.length;
    tell(length);
  }
  const found = BLAKE3 + hasher.digest();
  const isRight = found === file.object && length === file.size;
  return {
    ok: isRight,
    words: isRight
      ? `Unchanged: the hash of ${counted(length, "byte")}, computed in this browser, matches the record.`
      : `Changed: ${counted(length, "byte")} with the hash ${found} do not match the record.`,
  };
}

async function hashedThere(file: ArchivedFile, path: string): Promise<Result> {
  const found = await get<Check>(`${path}/check`);
  return {
    ok: found.ok,
    words: found.ok
      ? `Unchanged: both hashes of ${counted(found.size, "byte")}, computed by the server, match the record.`
      : `Changed: ${counted(found.size, "byte")} with the hash ${found.object}, but the record has ${file.object}.`,
  };
}
