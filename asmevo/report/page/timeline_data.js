"use strict";
// The timeline as asmevo/report/timeline.py packs it, as spans of which each ends before the next
// one of its wave starts: code 0 issues, others are causes from 1. Resolves to `spans`, columns of
// equal length, and `waves`, of which each has the spans `first` to `last` (exclusive).
const unpackTimeline = async ({causes, turn, waves: rows, events}) => {
  const bytes = Uint8Array.from(atob(events), c => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const packed = new Int32Array(await new Response(stream).arrayBuffer());
  const count = packed.length / 6;
  const [instructions, readies, helds, issues, resumes, codes] =
    [0, 1, 2, 3, 4, 5].map(n => packed.subarray(n * count, (n + 1) * count));
  const spans = {
    start: new Int32Array(4 * count), end: new Int32Array(4 * count),
    code: new Uint8Array(4 * count), of: new Int32Array(4 * count), count: 0,
  };
  const add = (start, end, code, instruction) => {
    if (end <= start) return;
    const at = spans.count++;
    spans.start[at] = start; spans.end[at] = end; spans.code[at] = code; spans.of[at] = instruction;
  };
  const busy = 1 + causes.indexOf("unit-busy");
  const waves = [];
  let at = 0;
  for (const [unit, simd, slot, workgroup, wave, start, end, length] of rows) {
    const first = spans.count;
    let instruction = 0, clk = start;
    for (const stop = at + length; at < stop; at++) {
      instruction += instructions[at];
      const ready = clk + readies[at], held = ready + helds[at], issue = held + issues[at];
      const resume = issue + resumes[at], cause = codes[at] & 15, after = codes[at] >> 4;
      const done = after ? Math.min(issue + turn, resume) : resume;
      add(ready, held, cause, instruction);
      add(held, issue, busy, instruction);
      add(issue, done, 0, instruction);
      add(done, resume, after, instruction);
      clk = resume;
    }
    waves.push({unit, simd, slot, workgroup, wave, start, end: Math.max(end, clk),
                first, last: spans.count});
  }
  return {spans, waves};
};
