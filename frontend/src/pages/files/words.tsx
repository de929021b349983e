/** Files in words. */
import { Badge } from "../../components/basics";
import type { ArchivedFile } from "./types";

/** The name of a file without its folders, on whatever system it was. */
export const baseName = (path: string): string => path.split(/[/\\]/).filter(Boolean).pop() ?? path;

/** `2024-03-01 12:00:05`, or only the time of day where the day is that of another time. */
export function clock(time: string, beside = ""): string {
  const [day = "", hours = ""] = time.replace("Z", "").split("T");
  const short = hours.replace(/\.0+$/, "");
  return beside.startsWith(`${day}T`) ? short : `${day} ${short}`;
}

const TONES = { kept: "good", withdrawn: "bad", expired: "warn" } as const;

/** The status of a file, if it is not the usual one. */
export function StatusBadge({ status }: { status: ArchivedFile["status"] }) {
  return status === "kept" ? null : <Badge tone={TONES[status]}>{status}</Badge>;
}
