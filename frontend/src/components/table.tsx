/** A table in a frame that scrolls by itself where it is wider than the page. */
import type { ComponentChildren } from "preact";

export interface Heading {
  name: string;
  title?: string;
  isNumber?: boolean;
  /** Whether only screen readers are told. */
  isHidden?: boolean;
}

/** Heads a column of buttons. */
export const ACTIONS: Heading = { name: "Actions", isHidden: true };

interface Properties {
  label: string;
  columns: readonly (string | Heading)[];
  style?: string;
  children: ComponentChildren;
}

export function Table({ label, columns, style = "", children }: Properties) {
  const headings: Heading[] = columns.map((one) => (typeof one === "string" ? { name: one } : one));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table class={`list ${style}`}>
        <thead>
          <tr>
            {headings.map(({ name, title, isNumber, isHidden }, at) => (
              <th key={at} scope="col" class={isNumber ? "number" : ""} title={title}>
                {isHidden ? <span class="hidden">{name}</span> : name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
