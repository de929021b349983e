/** The verification of a dataset: run it, watch it, read the report. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, get, mayWrite, ofDataset, session } from "../../api";
import { Ago, Badge, Empty, ErrorCode, Fact, Facts, Loading, Problem, Words } from "../../components/basics";
import { count, counted, cut, duration, shortHash, signer } from "../../format";
import { useLoad } from "../../hooks";
import { datasetPath, href } from "../../router";
import type { Explanation, Finding, VerificationReport, VerificationStatus } from "../../types";
import type { TabProperties } from "./page";

const SOON = 500; // milliseconds between two looks at a verification that is under way

export function VerifyTab({ dataset, reload: reloadDataset }: TabProperties) {
  const path = ofDataset(dataset.name, "verification");
  const { value, error, isLoading, reload } = useLoad((signal) => get<VerificationStatus>(path, { signal }), [path, session.value.name]);
  const [refusal, refuse] = useState<ApiError>();
  const isUnderWay = Boolean(value?.underWay);
  useEffect(() => {
    if (!isUnderWay || isLoading || error) return;
    const timer = setTimeout(reload, SOON);
    return () => clearTimeout(timer);
  }, [isUnderWay, isLoading, error, reload]);
  const reported = value?.report?.time;
  useEffect(() => {
    if (reported && reported !== dataset.verification?.time) reloadDataset?.();
  }, [reported]);
  const send = async (method: "POST" | "DELETE", body?: object) => {
    refuse(undefined);
    try {
      await get<VerificationStatus>(path, { method, ...(body ? { body } : {}) });
    } catch (problem) {
      refuse(problem instanceof ApiError ? problem : new ApiError(0, String(problem)));
    }
    reload();
  };
  if (error && !value) return <Problem error={error} retry={reload} />;
  if (!value) return <Loading />;
  return (
    <section>
      {error && <Problem error={error} retry={reload} />}
      {value.underWay ? (
        <UnderWay underWay={value.underWay} stop={() => void send("DELETE")} />
      ) : (
        <Start isDerivative={dataset.kind === "Derivative"} start={(wanted) => void send("POST", wanted)} />
      )}
      {refusal && <Problem error={refusal} />}
      {value.stopped && !value.underWay && <Stopped stopped={value.stopped} />}
      {value.report ? (
        <Report report={value.report} dataset={dataset} />
      ) : (
        !value.underWay && <Empty title="Not verified here yet">Verification checks every hash and every rule, and recomputes every derived row.</Empty>
      )}
    </section>
  );
}

function Start({ isDerivative, start }: { isDerivative: boolean; start: (wanted: object) => void }) {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    start({ integrityOnly: fields.has("integrityOnly"), recursive: fields.has("recursive") });
  };
  if (!mayWrite()) {
    return (
      <p class="dim">
        To start a verification on this server, you need a token with the scope <code>write</code>. You can verify your own copy with <code>odf verify</code>.
      </p>
    );
  }
  return (
    <form class="bar" onSubmit={submit}>
      <button type="submit" class="primary">
        Verify
      </button>
      {isDerivative && (
        <>
          <label>
            <input type="checkbox" name="integrityOnly" /> only files and rules, without recomputing rows
          </label>
          <label>
            <input type="checkbox" name="recursive" /> also its inputs
          </label>
        </>
      )}
    </form>
  );
}

function UnderWay({ underWay, stop }: { underWay: NonNullable<VerificationStatus["underWay"]>; stop: () => void }) {
  const { action, dataset, done, total, unit, verified, startedBy, startedAt } = underWay;
  const far = total ? `${count(done)} of ${counted(total, unit.replace(/s$/, ""))}` : "";
  return (
    <div class="panel">
      <p role="status">
        <strong>
          {action.charAt(0).toUpperCase() + action.slice(1)}
          {far && `: ${far}`}
        </strong>
      </p>
      <progress max={total ?? undefined} value={total ? done : undefined} aria-label="Progress of the verification" />
      <p class="dim">
        {dataset && `${dataset}. `}
        {verified > 0 && `${counted(verified, "dataset")} done. `}
        Begun {startedBy && `by ${startedBy} `}
        <Ago time={startedAt} />. You may leave this page; the verification goes on.
      </p>
      <button type="button" onClick={stop}>
        Stop
      </button>
    </div>
  );
}

function Stopped({ stopped }: { stopped: NonNullable<VerificationStatus["stopped"]> }) {
  return (
    <div class="problem" role="status">
      <p>
        <strong>{stopped.message || "The last verification ended without a report"}</strong> <Ago time={stopped.time} />
        {stopped.code && <ErrorCode code={stopped.code} />}
      </p>
      {stopped.hint && (
        <p>
          <Words>{stopped.hint}</Words>
        </p>
      )}
    </div>
  );
}

function Report({ report, dataset }: { report: VerificationReport } & TabProperties) {
  const { name } = dataset;
  const { ok, integrityOnly, isCurrent, signatures, errors, warnings, findings } = report;
  const what = integrityOnly || dataset.kind === "Root" ? "All files are intact and all rules hold." : "All files are intact, all rules hold, and recomputing the derived rows gives the same rows.";
  return (
    <>
      <div class={`verdict ${ok ? "good" : "bad"}`} role="status">
        <h2>{ok ? "✓ Verified" : "✗ Not valid"}</h2>
        <p>
          {ok ? what : `${counted(errors, "error")}.`}
          {warnings > 0 && ` ${counted(warnings, "warning")}.`}
          {!isCurrent && " Later blocks are not verified."}
        </p>
      </div>
      <h2>What was checked</h2>
      <Facts>
        <Fact name="When">
          <Ago time={report.time} />
        </Fact>
        {report.seconds !== null && <Fact name="Duration">{duration(report.seconds)}</Fact>}
        <Fact name="Up to block">
          <a href={href(datasetPath(name, "history"), { from: report.head })}>
            <code title={report.head}>{shortHash(report.head)}</code>
          </a>
        </Fact>
        {report.blocks !== null && <Fact name="Blocks">{count(report.blocks)}</Fact>}
        {report.slices !== null && <Fact name="Data slices">{count(report.slices)}</Fact>}
        {report.checkpoints !== null && <Fact name="Checkpoints">{count(report.checkpoints)}</Fact>}
        {dataset.kind === "Derivative" && <Fact name="Replayed transforms">{integrityOnly ? "not checked" : count(report.transformsReplayed)}</Fact>}
        {signatures && (
          <Fact name="Signed by">
            {signatures.signers.length
              ? signatures.signers.map((one, index) => (
                  <span key={one.id} title={one.id}>
                    {index > 0 && ", "}
                    {signer(one.name)}
                  </span>
                ))
              : "nobody"}
            {signatures.unsigned > 0 && signatures.signed > 0 && <span class="dim"> ({counted(signatures.unsigned, "block")} not signed)</span>}
          </Fact>
        )}
      </Facts>
      {findings.length > 0 && (
        <>
          <h2>Findings</h2>
          <ol class="findings">
            {findings.map((finding, index) => (
              <li key={index}>
                <Found finding={finding} name={name} explanation={finding.code ? report.explanations[finding.code] : undefined} />
              </li>
            ))}
          </ol>
          {errors + warnings > findings.length && (
            <p class="dim">
              These are the first {count(findings.length)} of {count(errors + warnings)}; <code>odf verify {name}</code> shows all of them.
            </p>
          )}
        </>
      )}
    </>
  );
}

/** What a check is about, in words. */
const CHECKS: Record<string, string> = {
  block: "A block of the history cannot be read, so later blocks cannot be checked either.",
  chain: "The history breaks a rule of the metadata chain.",
  clock: "A block has a time in the future.",
  slice: "A data slice is missing, or does not match the history.",
  checkpoint: "A checkpoint is missing or damaged. Rows do not depend on it: it is recreated when it is needed.",
  replay: "The same query over the same rows gives other rows than those recorded, or could not be run.",
  batch: "The query, run once over all rows in batch, gives other rows.",
  signature: "A signature is not valid, or a required one is missing.",
  reference: "A branch or tag refers to a block that is missing or damaged.",
  file: "A file beside the history is not as expected.",
  lineage: "The dataset is derived from itself.",
  repair: "Missing or damaged files could not be fetched again.",
};

function Found({ finding, name, explanation }: { finding: Finding; name: string; explanation: Explanation | undefined }) {
  const { severity, check, message, block, sequenceNumber, file, hint, code } = finding;
  return (
    <>
      <p>
        <Badge tone={severity === "error" ? "bad" : "warn"}>{severity}</Badge> <strong>{message ? <Words>{cut(message, 2000)}</Words> : (explanation?.title ?? check)}</strong>{" "}
        {code && <ErrorCode code={code} />}
      </p>
      {CHECKS[check] && <p class="dim">{CHECKS[check]}</p>}
      {hint && (
        <p>
          <Words>{cut(hint, 2000)}</Words>
        </p>
      )}
      {block && (
        <p>
          In <a href={href(datasetPath(name, "history"), { from: block })}>block {sequenceNumber ?? shortHash(block)}</a>
        </p>
      )}
      {file && (
        <p>
          File <code>{file}</code>
        </p>
      )}
    </>
  );
}
