/** Branches beside the blocks of the head: which block is in which lane, and where lanes begin and join. */
import type { Block } from "../../types";

/** Blocks that only a branch or tag leads to, newest first; they continue the block `from`. */
export interface Branch {
  name: string;
  blocks: Block[];
  from: string | undefined;
}

export type Mark = "none" | "through" | "tip" | "join" | "across";

export interface Row {
  block: Block;
  /** Lane of the block: 0 is that of the head. */
  lane: number;
  /** What each lane shows in this row. */
  marks: Mark[];
  /** Name of the branch, undefined in the lane of the head. */
  branch: string | undefined;
}

const numberOf = (block: Block): number => block.content.sequenceNumber;

/**
 * What of a branch is beside the head, as far as that is shown; nothing, if it points to a block of the head.
 *
 * `known` are the blocks that are shown already, and `oldest` is the least of their numbers.
 */
export function branchOf(name: string, blocks: Block[], known: Set<string>, oldest: number): Branch | undefined {
  const end = blocks.findIndex((block) => known.has(block.blockHash) || numberOf(block) < oldest);
  const own = end < 0 ? blocks : blocks.slice(0, end);
  return own.length ? { name, blocks: own, from: own.at(-1)?.content.prevBlockHash } : undefined;
}

/** All blocks, newest first, each with its lane. */
export function rowsOf(head: Block[], branches: Branch[]): Row[] {
  const placed = [
    ...head.map((block) => ({ block, lane: 0 })),
    ...branches.flatMap((branch, index) => branch.blocks.map((block) => ({ block, lane: index + 1 }))),
  ].sort((one, other) => numberOf(other.block) - numberOf(one.block) || other.lane - one.lane);
  const places = new Map(placed.map(({ block }, index) => [block.blockHash, index]));
  const place = (hash: string | undefined, otherwise: number) => places.get(hash ?? "") ?? otherwise;
  const spans = [
    { top: place(head[0]?.blockHash, 0), end: placed.length },
    ...branches.map((branch) => ({ top: place(branch.blocks[0]?.blockHash, 0), end: place(branch.from, placed.length) })),
  ];
  return placed.map(({ block, lane }, index) => {
    const marks = spans.map(({ top, end }): Mark => (index === top ? "tip" : index === end ? "join" : index > top && index < end ? "through" : "none"));
    const last = marks.lastIndexOf("join");
    for (let at = lane + 1; at < last; at += 1) if (marks[at] === "none") marks[at] = "across";
    return { block, lane, marks, branch: lane ? branches[lane - 1]?.name : undefined };
  });
}
