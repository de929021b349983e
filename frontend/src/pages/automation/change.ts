/** Changes of the schedule of a dataset, and runs that somebody asks for: what came of the last one. */
import { useState } from "preact/hooks";
import { ApiError, call, ofDataset } from "../../api";

export interface Changes {
  change: (path: string, options: Parameters<typeof call>[1], done: string) => Promise<void>;
  /** Asks for a run of a job now. */
  runNow: (job: string) => Promise<void>;
  said: string;
  error: ApiError | undefined;
}

export function useChanges(name: string, changed: () => void): Changes {
  const [error, setError] = useState<ApiError>();
  const [said, say] = useState("");
  const change: Changes["change"] = async (path, options, done) => {
    setError(undefined);
    say("");
    try {
      await call(ofDataset(name, path), options);
      say(done);
      changed();
    } catch (problem) {
      setError(problem instanceof ApiError ? problem : new ApiError(0, String(problem)));
    }
  };
  return { change, runNow: (job) => change(`runs?job=${job}`, { method: "POST" }, `The ${job} has started.`), said, error };
}
