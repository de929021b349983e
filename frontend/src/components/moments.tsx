/** Choosing a moment of a dataset: now, a tag or branch, a time such as last Friday, or a block of the log. */
import { useId, useState } from "preact/hooks";
import { wordsOf } from "../blocks";
import { moment, shortHash } from "../format";
import type { Block } from "../types";

const DAY = 86_400_000;
const OTHER = "\0other";

export interface Choice {
  value: string;
  label: string;
}

/** Times that people ask for, at midnight of UTC, with the day that they are. */
export function times(now = new Date()): Choice[] {
  const today = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate());
  const sinceFriday = (now.getUTCDay() + 2) % 7 || 7; // days to the last one before today
  const found: [string, number][] = [
    ["An hour ago", Math.floor(now.getTime() / 60_000) * 60_000 - 3_600_000],
    ["Today, 00:00", today],
    ["Yesterday", today - DAY],
    ["Last Friday", today - sinceFriday * DAY],
    ["A week ago", today - 7 * DAY],
    ["30 days ago", today - 30 * DAY],
    ["A year ago", today - 365 * DAY],
  ];
  return found.map(([label, time]) => {
    const value = new Date(time).toISOString().replace(/\.\d+Z$/, "Z");
    return { value, label: `${label} (${moment(value)})` };
  });
}

/** The references of a dataset by the names that people give them: `tag.v1` is the tag v1. */
export function named(references: Record<string, string>): Choice[] {
  return Object.keys(references)
    .filter((name) => name !== "head")
    .map((name) => {
      const [, kind, rest] = /^(tag|branch)\.(.*)$/s.exec(name) ?? [];
      return kind && rest ? { value: rest, label: `${kind} ${rest}` } : { value: name, label: name };
    });
}

export function blockChoices(blocks: Block[]): Choice[] {
  return blocks.map(({ blockHash, content }) => ({
    value: blockHash,
    label: `block ${content.sequenceNumber}, ${wordsOf(content.event)}, ${moment(content.systemTime)}`,
  }));
}

interface Properties {
  label: string;
  value: string;
  choose: (value: string) => void;
  references: Choice[];
  blocks: Choice[];
}

export function MomentPicker({ label, value, choose, references, blocks }: Properties) {
  const [isWriting, write] = useState(false);
  const id = useId();
  const groups: [string, Choice[]][] = [
    ["References", [{ value: "head", label: "now" }, ...references]],
    ["Times", times()],
    ["Blocks", blocks],
  ];
  const isKnown = groups.some(([, choices]) => choices.some((one) => one.value === value));
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget as HTMLFormElement).get("moment")).trim();
    write(false);
    if (text) choose(text);
  };
  return (
    <div class="bar moment">
      <span>
        <label for={id}>{label}</label>{" "}
        <select
          id={id}
          value={isWriting ? OTHER : value}
          onChange={(event) => {
            const chosen = event.currentTarget.value;
            write(chosen === OTHER);
            if (chosen !== OTHER) choose(chosen);
          }}
        >
          {!isKnown && value && <option value={value}>{value.length > 40 ? shortHash(value) : value}</option>}
          {groups.map(([name, choices]) => (
            <optgroup key={name} label={name}>
              {choices.map((one) => (
                <option key={one.value} value={one.value}>
                  {one.label}
                </option>
              ))}
            </optgroup>
          ))}
          <option value={OTHER}>another time, block, tag or branch …</option>
        </select>
      </span>
      {isWriting && (
        <form class="bar" onSubmit={submit}>
          <label>
            <span class="hidden">{label}: a time, block, tag or branch</span>
            <input name="moment" placeholder="2024-03-01T12:00:00Z" maxLength={200} spellcheck={false} ref={(element) => element?.focus()} />
          </label>
          <button type="submit">Apply</button>
        </form>
      )}
    </div>
  );
}
