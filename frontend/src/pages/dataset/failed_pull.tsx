/** Why the last pull failed, and a way to pull again for those who may. */
import { get, mayWrite, ofDataset, session } from "../../api";
import { Ago, Copy, ErrorCode, Words } from "../../components/basics";
import { useLoad } from "../../hooks";
import { datasetPath, href } from "../../router";
import type { Dataset, Schedule } from "../../types";
import { useChanges } from "../automation/change";

export function FailedPull({ name, failure }: { name: string; failure: NonNullable<Dataset["failure"]> }) {
  const { time, code, message } = failure;
  return (
    <div class="problem" role="status">
      <p>
        <strong>
          The last pull failed <Ago time={time} />
        </strong>{" "}
        <ErrorCode code={code} />
      </p>
      {message && <p>{message}</p>}
      <div class="bar">
        {mayWrite() && <Again name={name} />}
        <a href={href(datasetPath(name, "runs"))}>Runs and schedule</a>
      </div>
    </div>
  );
}

/** The scheduler pulls what has a schedule for it; else there is the command line. */
function Again({ name }: { name: string }) {
  const { value } = useLoad((signal) => get<Schedule>(ofDataset(name, "schedule"), { signal }), [name, session.value.name]);
  const { runNow, said, error } = useChanges(name, () => undefined);
  if (!value) return null;
  if (!value.upcoming.some((one) => one.job === "pull")) {
    const command = `odf pull ${name}`;
    return (
      <span class="whole">
        Pull again: <code>{command}</code> <Copy text={command} />
      </span>
    );
  }
  return (
    <>
      <button type="button" onClick={() => void runNow("pull")}>
        Pull now
      </button>
      {said && <span>{said}</span>}
      {error && (
        <strong role="alert">
          <Words>{error.message}</Words>
        </strong>
      )}
    </>
  );
}
