/** Numbers, sizes and times, for people. */

const numbers = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (value: number): string => numbers.format(value);
export const compact = (value: number): string => (Math.abs(value) < 10_000 ? numbers.format(value) : short.format(value));

/** `1 row`, `2 rows`. */
export const counted = (value: number, noun: string): string => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

export function size(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  let value = bytes;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}

/** `3 min`, `2 h`, `5 d`: the largest unit that fits. */
export function duration(seconds: number): string {
  const sign = seconds < 0 ? "−" : "";
  const value = Math.abs(seconds);
  const units: [number, string][] = [
    [31_557_600, "y"],
    [86_400, "d"],
    [3600, "h"],
    [60, "min"],
  ];
  for (const [length, name] of units) {
    if (value >= length) {
      const found = value / length;
      return `${sign}${found < 10 && name === "y" ? found.toFixed(1) : Math.floor(found)} ${name}`;
    }
  }
  return `${sign}${value < 10 ? value.toFixed(1) : Math.round(value)} s`;
}

export function age(time: string | null, now = Date.now()): string {
  if (!time) return "never";
  const seconds = (now - Date.parse(time)) / 1000;
  if (seconds < -60) return `in ${duration(-seconds)}`;
  return seconds < 60 ? "just now" : `${duration(seconds)} ago`;
}

/** `2024-03-15 03:00:12 UTC`, without what is zero. */
export function moment(time: string): string {
  const [day = "", clock = ""] = time.replace("Z", "").split("T");
  const short = clock.replace(/\.\d+$/, "");
  return short === "00:00:00" || !short ? day : `${day} ${short} UTC`;
}

/** The name of a signer: the server calls its own key `me`. */
export const signer = (name: string): string => name.replace(/^me\b/, "this server's key");

/** Names of signers; a key without a name is shortened. */
export const signers = (names: string[]): string =>
  names.map((name) => (name.startsWith("did:key:") ? `${name.slice(0, 18)}…` : signer(name))).join(", ");

export const shortHash = (hash: string): string => hash.slice(0, 13);

/** The first letters of a text, if it has more. */
export const cut = (value: string, longest: number): string =>
  value.length > longest ? `${value.slice(0, longest)}… (${count(value.length)} characters)` : value;

/** The meaning of “records”, where numbers of them are shown beside numbers of rows. */
export const RECORDS = "all rows of the changelog, including corrections";

/** A value of a cell as text; long ones are cut where the table shows them. */
export function text(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** The same as tables show it: a time has no more than milliseconds, and no zeros that say nothing. */
export function brief(value: unknown): string {
  return text(value).replace(/^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,3})\d*(Z?)$/, (_, time: string, zone: string) => time.replace(/\.?0+$/, "") + zone);
}
