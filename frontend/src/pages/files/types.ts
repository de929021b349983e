/** Files of archives, as the REST API tells of them. */

export interface ArchivedFile {
  id: string;
  what: string;
  where: string;
  start: string;
  end: string | null;
  workId: string | null;
  path: string;
  hash: string;
  object: string;
  size: number;
  createTime: string;
  status: "kept" | "withdrawn" | "expired";
  released: string | null;
  who: string | null;
  why: string | null;
}

export interface Name {
  name: string;
  numFiles: number;
  first: string;
  last: string;
}

/** A day (UTC), and the files that begin on it. */
export interface FileDay {
  day: string;
  numFiles: number;
}

export interface Version {
  offset: number;
  block: string;
  sequenceNumber: number;
  systemTime: string;
  signedBy: string[];
  signatureProblem: string | null;
  status: ArchivedFile["status"];
  who: string | null;
  why: string | null;
  changes: { field: string; old: string | null; new: string | null }[];
}

export interface Details {
  file: ArchivedFile;
  place: "here" | "elsewhere" | "removed";
  history: Version[];
  head: { block: string; sequenceNumber: number; signedBy: string[] };
}

export interface Preview {
  kind: "text" | "table" | "picture" | "drawing" | "bytes" | "empty" | "none";
  text: string | null;
  columns: string[] | null;
  rows: (string | number | boolean | null)[][] | null;
  numColumns: number | null;
  isWhole: boolean;
  packing: string | null;
  problem: string | null;
}

export interface Check {
  ok: boolean;
  size: number;
  object: string;
  hash: string;
}

export interface Summary {
  numFiles: number;
  size: number;
  numNames: number;
  first: string | null;
  last: string | null;
}
