/** Answers of the REST API, as `/openapi.json` describes them. */

export interface Verification {
  time: string;
  head: string;
  ok: boolean;
  isCurrent: boolean;
  isReplayed: boolean;
}

export interface Dataset {
  id: string;
  name: string;
  kind: "Root" | "Derivative";
  visibility: "public" | "private";
  head: string;
  numBlocks: number;
  numRecords: number;
  watermark: string | null;
  description: string | null;
  keywords: string[];
  dataSize: number;
  updatedAt: string | null;
  signedBy: string[];
  verification: Verification | null;
  failure: { time: string; code: string; message: string } | null;
  maxAge: string | null;
  isLate: boolean;
  isPaused: boolean;
  isArchive: boolean;
}

export interface Block {
  blockHash: string;
  content: {
    prevBlockHash?: string;
    sequenceNumber: number;
    systemTime: string;
    event: { kind: string; [field: string]: unknown };
  };
  signatures: { name?: string; signer?: string; error?: string }[];
}

export interface Day {
  day: string;
  numCommits: number;
  numRecords: number;
  dataSize: number;
  watermark: string | null;
  lagSeconds: number | null;
}

export interface GraphNode {
  id: string;
  name: string | null;
  kind: string | null;
  numRecords: number | null;
  watermark: string | null;
  updatedAt: string | null;
  hasFailed: boolean;
  heldBackBy: string[];
}

export interface GraphEdge {
  input: string;
  output: string;
  takenIn: string | null;
  holdsBack: boolean;
}

export interface Graph {
  nodes: GraphNode[];
  edges: GraphEdge[];
}

/** Offsets by the ids of datasets. */
export type Cited = Record<string, number[]>;

export interface TracedRow {
  offset: number;
  op: string;
  values: Record<string, Cell>;
  madeOf: Cited;
  becauseOf: Cited;
  takesBack: number | null;
  ways: number;
  problem: string | null;
  origin?: {
    block: string;
    sequenceNumber: number;
    systemTime: string;
    source: string | null;
    file: string | null;
    stateKind: string | null;
    state: string | null;
  };
}

export interface TracedDataset {
  id: string;
  name: string;
  kind: "Root" | "Derivative";
  followed: boolean;
  check: string | null;
  remark: string | null;
  steps: { alias: string | null; class: string; reason: string; query: string }[];
  columns: { column: string; input: string; inputName: string; source: string | null; copied: boolean; through: string[] }[];
  hidden: string[];
  rows: TracedRow[];
}

export interface Provenance {
  dataset: { id: string; name: string };
  offset: number;
  column: string | null;
  check: string;
  datasets: TracedDataset[];
}

export interface RowChange {
  change: "added" | "removed" | "changed";
  count: number;
  key: Record<string, Cell> | null;
  old: Record<string, Cell> | null;
  new: Record<string, Cell> | null;
}

export interface Comparison {
  dataset: string;
  old: { name: string; asAt: string };
  new: { name: string; asAt: string };
  key: string[];
  columns: string[];
  columnChanges: { column: string; old: string | null; new: string | null }[];
  counts: { added: number; removed: number; changed: number };
  total: number;
  rows: RowChange[];
}

export interface Finding {
  severity: "error" | "warning";
  check: string;
  message: string;
  block: string | null;
  sequenceNumber: number | null;
  file: string | null;
  hint: string | null;
  code: string | null;
}

/** The meaning of the code of an error; the text is Markdown. */
export interface Explanation {
  title: string;
  text: string;
}

export interface VerificationReport {
  time: string;
  head: string;
  isCurrent: boolean;
  ok: boolean;
  integrityOnly: boolean;
  transformsReplayed: number;
  errors: number;
  warnings: number;
  blocks: number | null;
  slices: number | null;
  checkpoints: number | null;
  seconds: number | null;
  signatures: { signed: number; unsigned: number; signers: { id: string; name: string }[] } | null;
  findings: Finding[];
  explanations: Record<string, Explanation>;
}

export interface VerificationStatus {
  underWay: {
    startedAt: string;
    startedBy: string | null;
    integrityOnly: boolean;
    recursive: boolean;
    verified: number;
    dataset: string | null;
    action: string;
    done: number;
    total: number | null;
    unit: string;
  } | null;
  stopped: { time: string; message: string; hint: string | null; code: string | null } | null;
  report: VerificationReport | null;
}

/** A column of a schema in the form OdfJson. */
export interface Field {
  name: string;
  type: { kind: string; inner?: { kind: string }; [detail: string]: unknown };
  extra?: Record<string, unknown>;
}

export type Cell = string | number | boolean | null | object;

export interface Answer {
  input?: { query: string; datasets?: { id: string; alias: string; blockHash?: string }[] };
  output: { data: Cell[][]; dataFormat: string; schema?: { fields: Field[] }; schemaFormat?: string };
  commitment?: object;
  proof?: object;
}

/** A run of the scheduler; `outcome` is "running" while it is under way. */
export interface Run {
  id: string;
  at: string;
  dataset: string;
  job: string;
  reason: string;
  dueAt: string;
  startedAt: string;
  seconds: number | null;
  outcome: string;
  attempt: number;
  rows: number | null;
  blocks: number | null;
  watermark: string | null;
  head: string | null;
  errorCode: string | null;
  errorMessage: string | null;
  warnings: string | null;
  peakMemory: number | null;
  engineMemory: number | null;
}

/** The scheduler of a workspace, and what needs a look. */
export interface Automation {
  scheduler: string | null;
  numSchedules: number;
  running: Run[];
  late: { dataset: string; maxAge: string; updatedAt: string | null }[];
  failing: Run[];
}

export interface Upcoming {
  job: string;
  trigger: string;
  at: string | null;
  local: string | null;
}

/** The schedule of a dataset. */
export interface Schedule {
  dataset: string;
  yaml: string | null;
  isPaused: boolean;
  maxAge: string | null;
  isLate: boolean;
  upcoming: Upcoming[];
}

/** By what right somebody reads a dataset, and as which shared tables. */
export interface OwnAccess {
  name: string | null;
  visibility: "public" | "private";
  right: "token" | "grants" | "public";
  scope: string | null;
  numTables: number;
  tables: { path: string; names: [string, string, string]; shown: "current" | "changelog"; at: string | null }[];
}
