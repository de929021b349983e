/** Rows of datasets and answers of queries, asked for in pieces. */
import { ApiError, get, ofDataset } from "./api";
import type { Column } from "./components/rows";
import type { Answer, Cell, Dataset, Field } from "./types";

const NUMBERS = new Set(["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float16", "Float32", "Float64", "Decimal"]);
const SYSTEM = new Set(["offset", "op", "system_time"]);

/** The kind of a column's values, whether they may be missing or not. */
export function kindOf(field: Field): string {
  return field.type.kind === "Option" ? (field.type.inner?.kind ?? "") : field.type.kind;
}

export const isNumber = (field: Field): boolean => NUMBERS.has(kindOf(field));

export function columnsOf(fields: Field[]): Column[] {
  return fields.map((field) => ({
    name: field.name,
    isNumber: isNumber(field),
    isSystem: SYSTEM.has(field.name),
  }));
}

export interface Table {
  /** Of which rows it is. */
  identity: string;
  columns: Column[];
  fields: Field[];
  total: number;
  load: (from: number, to: number, signal: AbortSignal) => Promise<Cell[][]>;
}

/**
 * Loads rows in halves where they are too large for one answer; a row that is too large by itself becomes one cell that
 * says so.
 */
export async function inHalves(
  from: number,
  to: number,
  load: (from: number, to: number) => Promise<Cell[][]>,
): Promise<Cell[][]> {
  try {
    return await load(from, to);
  } catch (error) {
    const isTooLarge = error instanceof ApiError && error.status === 400 && /MiB|bytes|values/.test(error.message);
    if (!isTooLarge) throw error;
    if (to - from <= 1) return [["too large to show: use odf export, or select fewer columns in a query"]];
    const middle = Math.floor((from + to) / 2);
    return [...(await inHalves(from, middle, load)), ...(await inHalves(middle, to, load))];
  }
}

/** The changelog of a dataset as of its present head. */
export async function changelogOf(dataset: Dataset, signal: AbortSignal): Promise<Table> {
  const fields = await schemaOf(dataset, signal);
  const total = dataset.numRecords;
  const piece = async (from: number, to: number, abort: AbortSignal): Promise<Cell[][]> => {
    const query = new URLSearchParams({
      skip: String(total - to),
      limit: String(to - from),
      dataFormat: "JsonAoA",
      asOfBlockHash: dataset.head,
    });
    const answer = await get<{ data: Cell[][] }>(ofDataset(dataset.name, `tail?${query}`), { signal: abort });
    return answer.data;
  };
  return {
    identity: `${dataset.head} changelog`,
    fields,
    columns: columnsOf(fields),
    total,
    load: (from, to, abort) => inHalves(from, to, (one, other) => piece(one, other, abort)),
  };
}

/** The schema of a dataset, in the form OdfJson. */
export async function schemaOf(dataset: Dataset, signal: AbortSignal): Promise<Field[]> {
  const path = ofDataset(dataset.name, "metadata?include=schema&schemaFormat=OdfJson");
  const answer = await get<{ output: { schema?: { fields: Field[] } | string } }>(path, { signal });
  const { schema } = answer.output;
  if (!schema) return [];
  return (typeof schema === "string" ? (JSON.parse(schema) as { fields: Field[] }) : schema).fields;
}

/** The current state of a dataset as of its present head. */
export async function currentStateOf(dataset: Dataset, signal: AbortSignal): Promise<Table> {
  const datasets = [{ id: dataset.id, alias: "shown", blockHash: dataset.head }];
  const ask = async (query: string, more: object, abort: AbortSignal): Promise<Answer> => {
    const body = { query, datasets, dataFormat: "JsonAoA", schemaFormat: "OdfJson", ...more };
    return get<Answer>("query", { method: "POST", body, signal: abort });
  };
  const counted = await ask("select count(*) as n from odf_current('shown')", {}, signal);
  const first = await ask(`select * from odf_current('shown') order by "offset"`, { limit: 0 }, signal);
  const fields = fieldsOf(first);
  const piece = async (from: number, to: number, abort: AbortSignal): Promise<Cell[][]> => {
    const query = `select * from odf_current('shown') order by "offset"`;
    return (await ask(query, { skip: from, limit: to - from }, abort)).output.data;
  };
  return {
    identity: `${dataset.head} current`,
    fields,
    columns: columnsOf(fields),
    total: Number(counted.output.data[0]?.[0] ?? 0),
    load: (from, to, abort) => inHalves(from, to, (one, other) => piece(one, other, abort)),
  };
}

/** The schema of an answer. */
export function fieldsOf(answer: Answer): Field[] {
  const { schema } = answer.output;
  if (!schema) return [];
  return (typeof schema === "string" ? (JSON.parse(schema) as { fields: Field[] }) : schema).fields;
}

/** Follows the headers `Link` of an answer once. */
export function nextOf(answer: Response): string | undefined {
  return /<([^>]+)>;\s*rel="next"/.exec(answer.headers.get("Link") ?? "")?.[1];
}

