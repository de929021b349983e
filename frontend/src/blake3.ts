/**
 * BLAKE3 (https://github.com/BLAKE3-team/BLAKE3-specs), which browsers do not have: the hash of bytes that come in
 * pieces, without a key. Chunks of 1024 bytes are the leaves of a binary tree, blocks of 64 bytes their parts.
 */
const IV = Uint32Array.of(0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19);
/** The words of a block are in another order in each round. */
const ORDER = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
const CHUNK = 1024;
const BLOCK = 64;
const [CHUNK_START, CHUNK_END, PARENT, ROOT] = [1, 2, 4, 8] as const;

/** The words of a block, in the order in which seven rounds take them. */
const SCHEDULE = (() => {
  const rounds: number[][] = [ORDER.map((_, at) => at)];
  for (let round = 1; round < 7; round += 1) rounds.push(ORDER.map((at) => (rounds[round - 1] as number[])[at] as number));
  return Uint8Array.from(rounds.flat());
})();

const state = new Int32Array(16);

/** Mixes two words of a block into four words of the state. */
function mix(a: number, b: number, c: number, d: number, one: number, other: number): void {
  let sb = state[b]!;
  let sa = (state[a]! + sb + one) | 0;
  let sc = state[c]!;
  let sd = state[d]!;
  sd ^= sa;
  sd = (sd >>> 16) | (sd << 16);
  sc = (sc + sd) | 0;
  sb ^= sc;
  sb = (sb >>> 12) | (sb << 20);
  sa = (sa + sb + other) | 0;
  sd ^= sa;
  sd = (sd >>> 8) | (sd << 24);
  sc = (sc + sd) | 0;
  sb ^= sc;
  state[a] = sa;
  state[b] = (sb >>> 7) | (sb << 25);
  state[c] = sc;
  state[d] = sd;
}

/** Replaces a chaining value by that after a block. */
function compress(chaining: Uint32Array, block: Uint32Array, counter: number, length: number, flags: number): void {
  state.set(chaining);
  state.set(IV.subarray(0, 4), 8);
  state[12] = counter;
  state[13] = counter / 2 ** 32;
  state[14] = length;
  state[15] = flags;
  for (let at = 0; at < SCHEDULE.length; at += 16) {
    const word = (step: number): number => block[SCHEDULE[at + step]!]!;
    mix(0, 4, 8, 12, word(0), word(1));
    mix(1, 5, 9, 13, word(2), word(3));
    mix(2, 6, 10, 14, word(4), word(5));
    mix(3, 7, 11, 15, word(6), word(7));
    mix(0, 5, 10, 15, word(8), word(9));
    mix(1, 6, 11, 12, word(10), word(11));
    mix(2, 7, 8, 13, word(12), word(13));
    mix(3, 4, 9, 14, word(14), word(15));
  }
  for (let at = 0; at < 8; at += 1) chaining[at] = state[at]! ^ state[at + 8]!;
}

export class Blake3 {
  private readonly stack: Uint32Array<ArrayBuffer>[] = [];
  private chaining = IV.slice();
  private readonly bytes = new Uint8Array(BLOCK);
  private readonly words = new Uint32Array(16);
  private filled = 0; // bytes of the block that has not been compressed
  private blocks = 0; // blocks of the chunk that have been
  private chunks = 0; // chunks that are complete

  /** Takes further bytes. */
  update(data: Uint8Array): this {
    for (let at = 0; at < data.length; ) {
      if (this.filled === BLOCK) this.endBlock(); // only now: the last block of a chunk is marked as such
      const count = Math.min(BLOCK - this.filled, data.length - at);
      this.bytes.set(data.subarray(at, at + count), this.filled);
      this.filled += count;
      at += count;
    }
    return this;
  }

  private load(): void {
    const view = new DataView(this.bytes.buffer);
    for (let at = 0; at < 16; at += 1) this.words[at] = view.getUint32(4 * at, true);
  }

  private endBlock(): void {
    this.load();
    const start = this.blocks === 0 ? CHUNK_START : 0;
    const isLast = this.blocks === CHUNK / BLOCK - 1;
    compress(this.chaining, this.words, this.chunks, BLOCK, start | (isLast ? CHUNK_END : 0));
    this.filled = 0;
    this.blocks += 1;
    if (!isLast) return;
    let node = this.chaining;
    this.chunks += 1;
    // As many trees are complete as the number of chunks ends with zeros.
    for (let left = this.chunks; left % 2 === 0; left /= 2) node = parent(this.stack.pop()!, node, 0);
    this.stack.push(node);
    this.chaining = IV.slice();
    this.blocks = 0;
  }

  /** The hash, in hexadecimal; nothing can be added after. */
  digest(): string {
    this.bytes.fill(0, this.filled);
    this.load();
    const start = this.blocks === 0 ? CHUNK_START : 0;
    const isRoot = this.stack.length === 0;
    let node = this.chaining;
    compress(node, this.words, this.chunks, this.filled, start | CHUNK_END | (isRoot ? ROOT : 0));
    while (this.stack.length) node = parent(this.stack.pop()!, node, this.stack.length ? 0 : ROOT);
    const view = new DataView(new ArrayBuffer(32));
    node.forEach((word, at) => view.setUint32(4 * at, word, true));
    return [...new Uint8Array(view.buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }
}

function parent(left: Uint32Array, right: Uint32Array, more: number): Uint32Array<ArrayBuffer> {
  const block = new Uint32Array(16);
  block.set(left);
  block.set(right, 8);
  const found = IV.slice();
  compress(found, block, 0, BLOCK, PARENT | more);
  return found;
}
