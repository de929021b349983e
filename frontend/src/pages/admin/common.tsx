/** What the parts of the administration have in common. */
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, call, get } from "../../api";
import type { Field } from "../../components/forms";
import type { Dataset } from "../../types";
import type { Kind, Principal, Share, SharedTable } from "./types";

/** Makes a change; `of` joins names into a path. */
export async function change<T>(method: "POST" | "PUT" | "PATCH" | "DELETE", path: string, body?: unknown): Promise<T> {
  const answer = await call(path, body === undefined ? { method } : { method, body });
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

/** The path of a call: each name becomes one part of it. */
export const of = (...names: (string | number)[]): string => ["platform", ...names.map((one) => encodeURIComponent(one))].join("/");

/** What was done last, told to screen readers too. */
export function useNotice(): [string, (text: string) => void] {
  return useState("");
}

/** Takes the focus, too: the button that began it all may be gone. */
export function Notice({ text }: { text: string }) {
  const element = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    if (!text) return;
    const timer = setTimeout(() => element.current?.focus(), 50); // after the dialog has given it back
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <p class="notice" role="status" tabIndex={-1} ref={element}>
      {text}
    </p>
  );
}

const first = (search: string, more = ""): string => `?${new URLSearchParams({ search, limit: "20" })}${more}`;

export const suggestDatasets = async (text: string, signal: AbortSignal): Promise<string[]> =>
  (await get<Dataset[]>(`datasets${first(text)}`, { signal })).map((one) => one.name);

export const suggestShares = async (text: string, signal: AbortSignal): Promise<string[]> =>
  (await get<Share[]>(`platform/shares${first(text)}`, { signal })).map((one) => one.name);

export async function suggestPaths(text: string, signal: AbortSignal): Promise<string[]> {
  const tables = await get<SharedTable[]>(`platform/tables${first(text)}`, { signal });
  return [...(await suggestShares(text, signal)), ...tables.map((one) => one.path)];
}

export function suggestPrincipals(...kinds: Kind[]) {
  return async (text: string, signal: AbortSignal): Promise<string[]> => {
    const found = kinds.map((kind) => get<Principal[]>(`platform/${kind}${first(text)}`, { signal }));
    return (await Promise.all(found)).flat().map((one) => one.name);
  };
}

/** `country=DE` on each line, as attributes. */
export function attributesOf(text: string): Record<string, string> {
  const lines = text.split("\n").map((line) => line.trim());
  return Object.fromEntries(
    lines.filter(Boolean).map((line) => {
      const at = line.indexOf("=");
      return at < 0 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    }),
  );
}

export const textOf = (attributes: Record<string, string>): string =>
  Object.entries(attributes)
    .map(([name, value]) => `${name}=${value}`)
    .join("\n");

export const expires: Field = {
  name: "expires",
  label: "Valid for",
  hint: "Such as 90d, 12h or 1d12h; without limit if empty.",
  isOptional: true,
};

/** A value that is left out when it is empty. */
export const orNothing = (text: string | undefined): string | undefined => text?.trim() || undefined;

export const isAboutTime = (error: ApiError): boolean => /duration|ends at once|out of range/i.test(error.message);
