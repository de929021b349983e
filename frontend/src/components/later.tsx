/** A part of the pages that is loaded when it is first shown. */
import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../api";
import { Loading, Problem } from "./basics";

export function Later<P extends object>({ load, properties }: { load: () => Promise<FunctionComponent<P>>; properties: P }) {
  const [Part, set] = useState<FunctionComponent<P>>();
  const [error, setError] = useState<Error>();
  const [turn, again] = useState(0);
  useEffect(() => {
    let isThere = true;
    load()
      .then((part) => isThere && set(() => part))
      .catch((problem) => isThere && setError(problem));
    return () => {
      isThere = false;
    };
  }, [load, turn]);
  const retry = () => {
    setError(undefined);
    again(turn + 1);
  };
  if (error) return <Problem error={new ApiError(0, "This page cannot be loaded.")} retry={retry} />;
  return Part ? <Part {...properties} /> : <Loading />;
}
