/** Answers of the calls of administration, as `/openapi.json` describes them. */

export type Kind = "recipients" | "users" | "groups";

export interface Share {
  name: string;
  comment: string;
  id: string;
  numTables: number;
}

export interface Schema {
  name: string;
  numTables: number;
}

export interface SharedTable {
  path: string;
  names: [string, string, string];
  kind: "dataset" | "parquet" | "delta" | "iceberg";
  source: string;
  datasetId: string | null;
  isThere: boolean;
  shown: "current" | "changelog" | null;
  at: string | null;
  comment: string;
  id: string;
}

export interface Grant {
  number: number;
  principal: string;
  path: string;
  columns: string[] | null;
  rows: string | null;
  words: string;
}

export interface Principal {
  name: string;
  kind: "recipient" | "user" | "group";
  attributes: Record<string, string>;
  isDisabled: boolean;
  isAdmin: boolean;
  createdAt: string | null;
  members: string[] | null;
}

export interface PrincipalToken {
  number: number;
  createdAt: string;
  expiresAt: string | null;
  revokedAt: string | null;
  isGood: boolean;
}

export interface PrincipalDetail extends Principal {
  hasPassword: boolean;
  groups: string[];
  tokens: PrincipalToken[];
  grants: Grant[];
}

export interface AccessToken {
  name: string;
  scope: "read" | "write" | "admin";
  createdAt: string;
  expiresAt: string | null;
  isGood: boolean;
}

export interface SeenTable {
  path: string;
  comment: string;
  columns: { name: string; type: string }[];
  words: string[];
  isWhole: boolean;
  numRows: number | null;
  problem: string | null;
}

export interface Preview extends SeenTable {
  seenAs: string;
  isDisabled: boolean;
  rows: unknown[][];
}

export interface Access {
  number: number;
  at: string;
  who: string | null;
  action: string | null;
  path: string | null;
  version: number | null;
  granted: boolean | null;
  status: number | null;
  files: number | null;
  bytes: number | null;
  address: string | null;
  client: string | null;
}

export interface Repository {
  name: string;
  url: string;
  hasLogin: boolean;
}

export interface Engine {
  running: boolean;
  problem: string | null;
  status: Record<string, string | number | boolean | null> | null;
}

export interface System {
  version: string;
  specification: string;
  python: string;
  platform: string;
  processors: number | null;
  workspace: string;
  numDatasets: number;
  disk: { total: number; free: number; data: number; cache: number };
  engine: Engine;
}

export interface Setting {
  key: string;
  value: string | number | boolean | null;
  from: string;
  isDefault: boolean;
  isSecret: boolean;
  meaning: string;
  values: string;
  variable: string;
}

export interface Check {
  name: string;
  ok: boolean;
  detail: string;
  hint: string | null;
}
