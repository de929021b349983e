/** Addresses of pages of the administration. */
import type { Kind } from "./types";

/** The page of a recipient, user or group, or a part of it. */
export const personPath = (kind: Kind, name: string, ...more: string[]): string =>
  `admin/${[kind, name, ...more].map(encodeURIComponent).join("/")}`;
