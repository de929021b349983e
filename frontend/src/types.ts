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
