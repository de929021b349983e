/** Blocks in a few words. */
import { counted, moment, size } from "./format";
import type { Block } from "./types";

type Event = Block["content"]["event"];

export interface Slice {
  start: number;
  end: number;
  size: number;
}

/** The rows that a block adds; undefined if it adds none. */
export function sliceOf(event: Event): Slice | undefined {
  const data = event["newData"] as { offsetInterval: { start: number; end: number }; size: number } | undefined;
  return data ? { ...data.offsetInterval, size: data.size } : undefined;
}

const WORDS: Record<string, string> = {
  Seed: "Created",
  AddData: "Data added",
  ExecuteTransform: "Transform executed",
  SetDataSchema: "Schema set",
  SetInfo: "Description set",
  SetAttachments: "Attachments set",
  SetLicense: "License set",
  SetVocab: "Names of system columns set",
  SetTransform: "Transform set",
  SetPollingSource: "Polling source set",
  DisablePollingSource: "Polling source disabled",
  AddPushSource: "Push source added",
  DisablePushSource: "Push source disabled",
};

/** The kind of an event in words. */
export const wordsOf = (event: Event): string => WORDS[event.kind] ?? event.kind;

/** The essence of an event; empty if its kind says it all. */
export function summaryOf(event: Event): string {
  const slice = sliceOf(event);
  if (slice) return `${counted(slice.end - slice.start + 1, "record")}, ${size(slice.size)}`;
  if (event["newWatermark"]) return `watermark ${moment(String(event["newWatermark"]))}`;
  for (const field of ["description", "shortName", "sourceName"]) {
    if (typeof event[field] === "string") return event[field];
  }
  return "";
}
