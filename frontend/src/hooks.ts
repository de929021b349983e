/** Loading, waiting and watching, for pages. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, isOnline } from "./api";

export interface Loaded<T> {
  value: T | undefined;
  error: ApiError | undefined;
  isLoading: boolean;
  reload: () => void;
}

/**
 * Loads something, and again when one of the inputs changes, or when the server has come back; an answer that comes too
 * late is dropped.
 */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, inputs: unknown[]): Loaded<T> {
  const [state, set] = useState<{ value: T | undefined; error: ApiError | undefined; isLoading: boolean }>({
    value: undefined,
    error: undefined,
    isLoading: true,
  });
  const [turn, again] = useState(0);
  const isBack = isOnline.value;
  useEffect(() => {
    if (isBack && state.error?.status === 0) again((one) => one + 1);
  }, [isBack]);
  useEffect(() => {
    const abort = new AbortController();
    set((before) => ({ ...before, isLoading: true }));
    load(abort.signal)
      .then((value) => !abort.signal.aborted && set({ value, error: undefined, isLoading: false }))
      .catch((error: unknown) => {
        if (abort.signal.aborted) return;
        const problem = error instanceof ApiError ? error : new ApiError(0, String(error));
        set((before) => ({ ...before, error: problem, isLoading: false }));
      });
    return () => abort.abort();
  }, [...inputs, turn]);
  return { ...state, reload: useCallback(() => again((one) => one + 1), []) };
}

/** The same value, once it has not changed for a moment. */
export function useSettled<T>(value: T, milliseconds = 200): T {
  const [settled, set] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => set(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}

/** The size of an element, as it changes. */
export function useSize<E extends Element>(): [{ current: E | null }, { width: number; height: number }] {
  const element = useRef<E>(null);
  const [found, set] = useState({ width: 0, height: 0 });
  useEffect(() => {
    if (!element.current) return;
    const observer = new ResizeObserver(([entry]) => {
      if (entry) set({ width: entry.contentRect.width, height: entry.contentRect.height });
    });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return [element, found];
}

/** A value that the browser keeps on this machine. */
export function useKept<T>(key: string, initial: T): [T, (value: T) => void] {
  const [value, set] = useState<T>(() => kept(key, initial));
  return [
    value,
    (next: T) => {
      set(next);
      keep(key, next);
    },
  ];
}

export function kept<T>(key: string, initial: T): T {
  try {
    const text = localStorage.getItem(`odf.${key}`);
    return text === null ? initial : (JSON.parse(text) as T);
  } catch {
    return initial;
  }
}

export function keep(key: string, value: unknown): void {
  try {
    localStorage.setItem(`odf.${key}`, JSON.stringify(value));
  } catch {
    // A browser that keeps nothing shows everything all the same.
  }
}

/** The title of the window; nothing, where a part of the page sets it. */
export function useTitle(title: string): void {
  useEffect(() => {
    if (title) document.title = `${title} · Open Data Fabric`;
  }, [title]);
}
