/** Calls of the server's REST API, the public one: see `/docs`. */
import { signal } from "@preact/signals";

/** What went wrong with a call. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code: string | null = null,
    /** All that the server has said. */
    readonly answer: unknown = undefined,
  ) {
    super(message);
  }
}

export interface Session {
  name: string | null;
  scope: string | null;
  isAdmin: boolean;
  expiresAt: string | null;
  csrfToken: string | null;
}

const nobody: Session = { name: null, scope: null, isAdmin: false, expiresAt: null, csrfToken: null };

/** Whose session it is. */
export const session = signal<Session>(nobody);

/** Whether they may change datasets. */
export const mayWrite = (): boolean => session.value.scope === "write" || session.value.scope === "admin";

/** Whether the server answers; pages say so, and try again. */
export const isOnline = signal(true);

/** Whether a session has ended under an open page. */
export const hasEnded = signal(false);

const root = new URL("..", document.baseURI);

/** The address of a call, also for people who copy it. */
export function urlOf(path: string): string {
  return new URL(path, root).href;
}

/** The path of a call about a dataset. */
export function ofDataset(name: string, call = ""): string {
  const path = name.split("/").map(encodeURIComponent).join("/");
  return call ? `${path}/${call}` : path;
}

type Method = "GET" | "POST" | "PUT" | "DELETE" | "PATCH";

interface Options {
  method?: Method;
  body?: unknown;
  signal?: AbortSignal | undefined;
  /** Whether the call is sent to the end after its page has been left. */
  keepalive?: boolean;
}

/** Makes a call, and gives the whole answer. */
export async function call(path: string, { method = "GET", body, signal: abort, keepalive = false }: Options = {}): Promise<Response> {
  const headers: Record<string, string> = {};
  const init: RequestInit = { method, headers, credentials: "same-origin", keepalive };
  if (abort) init.signal = abort;
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    init.body = typeof body === "string" ? body : JSON.stringify(body);
  }
  if (session.value.csrfToken) headers["X-CSRF-Token"] = session.value.csrfToken;
  let answer: Response;
  try {
    answer = await fetch(urlOf(path), init);
  } catch (error) {
    if (abort?.aborted) throw error;
    isOnline.value = false;
    throw new ApiError(0, "The server does not answer. It may have been stopped, or the network is down.");
  }
  isOnline.value = true;
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  if (answer.status === 401 && session.value.name !== null) hasEnded.value = true;
  throw new ApiError(answer.status, problem.message ?? `The server says ${answer.status}`, problem.code ?? null, problem);
}

/** Makes a call, and reads JSON. */
export async function get<T>(path: string, options: Options = {}): Promise<T> {
  return parsed(await (await call(path, options)).text()) as T;
}

/** Reads JSON; whole numbers that JavaScript's own cannot hold stay texts, digit by digit. */
export function parsed(text: string): unknown {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  const exactly = (_: string, value: unknown, context?: { source?: string }): unknown =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "") ? context?.source : value;
  return JSON.parse(text, exactly);
}

/** Finds out whose session it is; a cookie that is not good any more is taken back. */
export async function loadSession(): Promise<void> {
  try {
    session.value = await get<Session>("platform/session");
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) {
      await signOut();
      hasEnded.value = true;
    } else throw error;
  }
}

/** Begins a session. */
export async function signIn(credentials: { accessToken: string } | { login: string; password: string }): Promise<void> {
  session.value = await get<Session>("platform/session", { method: "POST", body: credentials });
  hasEnded.value = false;
}

/** Finds out whether the session is still good; if not, the page says so. */
export async function checkSession(): Promise<void> {
  await call("platform/session").catch(() => undefined); // the banners say what is wrong
}

/** Ends the session. */
export async function signOut(): Promise<void> {
  // It is sent to the end even if another page is opened at once.
  await call("platform/session", { method: "DELETE", keepalive: true });
  session.value = nobody;
}

/** Finds out whether the server answers, and says so. */
export async function ping(): Promise<void> {
  try {
    await fetch(urlOf("health"), { cache: "no-store" });
    isOnline.value = true;
  } catch {
    isOnline.value = false;
  }
}
