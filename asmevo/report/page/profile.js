// Behaviour of a profile's page; `unpackTimeline` is in timeline_data.js, which stands before this.
(() => {
const $ = id => document.getElementById(id);
const rowOf = index => $("i" + index);
const number = value => Math.round(value).toLocaleString("en-US");

// ---- Listing: find, show, worst ----------------------------------------------------------------
const chunks = [...document.querySelectorAll(".chunk")];
const lines = [...document.querySelectorAll("tr[id^=i]")];
const stalledOf = row => Number(row.cells[3].textContent.replaceAll(",", "")) || 0;
const worst = lines.filter(row => row.dataset.c).sort((a, b) => stalledOf(b) - stalledOf(a));
let worstAt = -1;

const matches = (row, text, show) => {
  if (show === "window" && !row.classList.contains("w")) return false;
  if (show === "memory" && !row.classList.contains("y")) return false;
  if (show === "stalled" && !row.dataset.c) return false;
  if (show && !["window", "memory", "stalled"].includes(show) &&
      !(row.dataset.c || "").split(" ").includes(show)) return false;
  return !text || row.cells[5].textContent.toLowerCase().includes(text) ||
    row.cells[0].textContent.toLowerCase().includes(text);
};

const filter = () => {
  const text = $("find").value.trim().toLowerCase(), show = $("show").value;
  const all = !text && !show;
  let count = 0;
  for (const row of lines) {
    const match = all || matches(row, text, show);
    row.hidden = !match;
    count += match;
  }
  for (const heading of document.querySelectorAll(".listing tr.a")) heading.hidden = !all;
  for (const chunk of chunks) chunk.hidden = !all && !chunk.querySelector("tr[id]:not([hidden])");
  $("found").textContent = all ? "" : `${number(count)} of ${number(lines.length)} instructions`;
};
let pending = 0;
const filterSoon = () => { clearTimeout(pending); pending = setTimeout(filter, 120); };
$("find").addEventListener("input", filterSoon);
$("show").addEventListener("change", filter);

const goTo = index => {
  const row = rowOf(index);
  if (!row) return;
  if (row.hidden) { $("find").value = ""; $("show").value = ""; filter(); }
  if (location.hash === "#i" + index) row.scrollIntoView({block: "center"});
  else location.hash = "i" + index;
};
window.addEventListener("hashchange", () => {
  const row = document.getElementById(location.hash.slice(1));
  if (row && row.matches("tr")) requestAnimationFrame(() => row.scrollIntoView({block: "center"}));
});
const goToWorst = place => {
  if (!worst.length) return;
  worstAt = (place + worst.length) % worst.length;
  goTo(worst[worstAt].id.slice(1));
  $("found").textContent = `line ${worstAt + 1} of ${number(worst.length)} that stall`;
};
$("worst").addEventListener("click", () => goToWorst(0));
$("next-worst").addEventListener("click", () => goToWorst(worstAt + 1));

// ---- Timeline ----------------------------------------------------------------------------------
const data = $("timeline-data");
if (!data) return;
const lanes = $("lanes"), overview = $("overview"), tip = $("tip"), range = $("range");
const packed = JSON.parse(data.textContent);
const clock = packed.clock, names = ["issue", ...packed.causes];
const GUTTER = 122, AXIS = 36, ROW = 18, GAP = 3, OVERVIEW = 44, TALLEST = 600;
const dark = matchMedia("(prefers-color-scheme: dark)");

const main = ({spans, waves}) => {
  const places = new Map();
  for (const wave of waves) {
    const key = `${wave.unit}/${wave.simd}/${wave.slot}`;
    if (!places.has(key)) places.set(key, {unit: wave.unit, simd: wave.simd, slot: wave.slot, waves: []});
    places.get(key).waves.push(wave);
  }
  const rows = [...places.values()].sort(
    (a, b) => a.unit - b.unit || a.simd - b.simd || a.slot - b.slot);
  for (const row of rows) row.waves.sort((a, b) => a.start - b.start);
  const first = Math.min(...rows.map(row => row.waves[0].start));
  const last = waves.reduce((end, wave) => Math.max(end, wave.end), first + 1);
  const view = {from: first, to: last, top: 0};
  const lanesHeight = () => Math.min(rows.length * ROW, TALLEST);
  let width = 0, scale = 1, colours = [], inks = [], packedColours = [], ink = "", faint = "", line = "", back = "";
  let selected = -1;

  const style = () => {
    const css = getComputedStyle(document.documentElement);
    const get = name => css.getPropertyValue("--" + name).trim();
    colours = names.map(get);
    packedColours = colours.map(text => {
      const value = parseInt(text.slice(1), 16);
      return (0xff000000 | (value & 255) << 16 | (value & 0xff00) | value >> 16) >>> 0;
    });
    // Dark text on light colours, light text on dark ones.
    inks = colours.map(text => {
      const [red, green, blue] = [1, 3, 5].map(n => parseInt(text.slice(n, n + 2), 16));
      return red * 0.299 + green * 0.587 + blue * 0.114 > 125 ? "#000000" : "#ffffff";
    });
    [ink, faint, line, back] = ["text", "dim", "line", "panel"].map(get);
  };
  const resize = () => {
    scale = window.devicePixelRatio || 1;
    width = lanes.clientWidth;
    for (const [canvas, height] of [[lanes, AXIS + lanesHeight()], [overview, OVERVIEW]]) {
      canvas.style.height = height + "px";
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
    }
  };
  const plot = () => Math.max(width - GUTTER, 10);
  const xOf = clk => GUTTER + (clk - view.from) * plot() / (view.to - view.from);
  const clkAt = x => view.from + (x - GUTTER) * (view.to - view.from) / plot();
  // First span of a wave that ends after clk.
  const seek = (wave, clk) => {
    let low = wave.first, high = wave.last;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (spans.end[middle] > clk) high = middle; else low = middle + 1;
    }
    return low;
  };

  // Share of each code in each of `cells` equal parts of [from, to), added up over `list`.
  const shares = (list, from, to, cells) => {
    const sums = new Float32Array(cells * names.length), step = (to - from) / cells;
    for (const wave of list) {
      if (wave.end <= from || wave.start >= to) continue;
      for (let at = seek(wave, from); at < wave.last && spans.start[at] < to; at++) {
        const start = Math.max((spans.start[at] - from) / step, 0);
        const end = Math.min((spans.end[at] - from) / step, cells);
        const code = spans.code[at];
        for (let cell = Math.floor(start); cell < end; cell++)
          sums[cell * names.length + code] += Math.min(end, cell + 1) - Math.max(start, cell);
      }
    }
    return sums;
  };
  const paint = (context, sums, cells, height, x, y, most, top, bottom) => {
    const image = context.createImageData(cells, height), pixels = new Uint32Array(image.data.buffer);
    for (let cell = 0; cell < cells; cell++) {
      let filled = 0, sum = 0;
      for (let code = 0; code < names.length; code++) {
        sum += sums[cell * names.length + code];
        const reached = Math.min(Math.round(sum / most * height), height);
        for (; filled < reached; filled++) pixels[(height - 1 - filled) * cells + cell] = packedColours[code];
      }
    }
    const above = Math.max(top - y, 0), below = Math.min(height, bottom - y);
    if (below > above) context.putImageData(image, x, y, 0, above, cells, below - above);
  };

  const narrow = wave => {
    const shown = Math.min(view.to, wave.end) - Math.max(view.from, wave.start);
    const count = seek(wave, view.to) - seek(wave, view.from);
    return count * 3 > shown * plot() / (view.to - view.from);
  };
  const drawWave = (context, wave, y) => {
    for (let at = seek(wave, view.from); at < wave.last && spans.start[at] < view.to; at++) {
      const x = Math.max(xOf(spans.start[at]), GUTTER), right = Math.min(xOf(spans.end[at]), width);
      const code = spans.code[at], wide = right - x;
      context.fillStyle = colours[code];
      context.fillRect(x, y, Math.max(wide - (wide > 4 ? 0.7 : 0), 0.5), ROW - GAP);
      if (spans.of[at] === selected) {
        context.fillStyle = ink;
        context.fillRect(x, y + ROW - GAP - 2, wide, 2);
      }
      if (wide > 44) {
        const row = code === 0 && rowOf(spans.of[at]);
        const text = row ? row.cells[5].textContent : code ? names[code] : "";
        context.fillStyle = inks[code];
        context.fillText(text.slice(0, Math.floor((wide - 6) / 6.3)), x + 3, y + ROW - GAP - 4);
      }
    }
  };
  const drawLane = (context, row, y) => {
    const fine = [], coarse = [];
    for (const wave of row.waves) {
      if (wave.end <= view.from || wave.start >= view.to) continue;
      (narrow(wave) ? coarse : fine).push(wave);
    }
    if (coarse.length) {
      const cells = Math.round(plot() * scale);
      paint(context, shares(coarse, view.from, view.to, cells), cells, Math.round((ROW - GAP) * scale),
            Math.round(GUTTER * scale), Math.round(y * scale), 1,
            Math.round(AXIS * scale), lanes.height);
    }
    for (const wave of fine) drawWave(context, wave, y);
    for (const wave of row.waves) {
      const x = xOf(wave.start);
      if (x >= GUTTER && x <= width) { context.fillStyle = ink; context.fillRect(x, y - 1, 1, ROW - GAP + 2); }
    }
  };
  const drawAxis = context => {
    context.fillStyle = back;
    context.fillRect(0, 0, width, AXIS);
    const rough = (view.to - view.from) / Math.max(plot() / 110, 1);
    const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
    const step = Math.max([1, 2, 5, 10].find(n => n * power >= rough) * power, 1);
    context.fillStyle = faint;
    context.fillText("clk", 8, 14);
    if (clock) context.fillText(`µs at ${clock} MHz`, 8, 29);
    for (let clk = Math.ceil(view.from / step) * step; clk <= view.to; clk += step) {
      const x = xOf(clk);
      context.fillStyle = line;
      context.fillRect(x, AXIS - 4, 1, lanesHeight() + 4);
      context.fillStyle = faint;
      if (x > width - 60) continue;
      context.fillText(number(clk), x + 3, 14);
      if (clock) context.fillText((clk / clock).toFixed(step < clock / 10 ? 3 : 2), x + 3, 29);
    }
  };
  let overviewShares = null;
  const drawOverview = () => {
    const context = overview.getContext("2d"), cells = Math.max(Math.round(plot() * scale), 1);
    context.clearRect(0, 0, width, OVERVIEW);
    if (!overviewShares || overviewShares.length !== cells * names.length)
      overviewShares = shares(waves, first, last, cells);
    paint(context, overviewShares, cells, Math.round(OVERVIEW * scale), Math.round(GUTTER * scale), 0,
          rows.length, 0, overview.height);
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = faint;
    context.fillText("whole launch", 8, OVERVIEW / 2 + 4);
    const whole = last - first, x = GUTTER + (view.from - first) / whole * plot();
    const wide = Math.max((view.to - view.from) / whole * plot(), 2);
    context.strokeStyle = ink;
    context.lineWidth = 2;
    context.strokeRect(x, 1, Math.min(wide, width - x) - 1, OVERVIEW - 2);
  };
  const draw = () => {
    const context = lanes.getContext("2d");
    context.clearRect(0, 0, width, AXIS + lanesHeight());
    context.font = "11px system-ui, sans-serif";
    drawAxis(context);
    context.save();
    context.beginPath();
    context.rect(0, AXIS, width, lanesHeight());
    context.clip();
    let unit = -1;
    rows.forEach((row, at) => {
      const y = AXIS + at * ROW - view.top;
      if (y < AXIS - ROW || y > AXIS + lanesHeight()) return;
      context.fillStyle = row.unit === unit ? faint : ink;
      context.fillText(`CU ${row.unit}  SIMD ${row.simd}  slot ${row.slot}`, 8, y + 12);
      unit = row.unit;
      drawLane(context, row, y + 1);
    });
    context.restore();
    drawOverview();
    const micro = clock ? ` (${(view.from / clock).toFixed(3)} to ${(view.to / clock).toFixed(3)} µs)` : "";
    range.textContent = `${number(view.from)} to ${number(view.to)} clk${micro}`;
  };
  let scheduled = false;
  const redraw = () => {
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(() => { scheduled = false; draw(); });
  };

  const show = (from, to) => {
    const length = Math.min(Math.max(to - from, 16), last - first);
    view.from = Math.min(Math.max(from, first), last - length);
    view.to = view.from + length;
    redraw();
  };
  const zoom = (factor, around = (view.from + view.to) / 2) =>
    show(around - (around - view.from) * factor, around + (view.to - around) * factor);
  const move = part => { const by = (view.to - view.from) * part; show(view.from + by, view.to + by); };
  const scroll = by => {
    view.top = Math.min(Math.max(view.top + by, 0), rows.length * ROW - lanesHeight());
    redraw();
  };
  const reset = () => { view.top = 0; show(first, last); };

  const under = event => {
    const box = lanes.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const row = rows[Math.floor((y - AXIS + view.top) / ROW)];
    if (!row || x < GUTTER || y < AXIS) return null;
    const clk = clkAt(x);
    const wave = row.waves.find(w => w.start <= clk && clk < w.end);
    if (!wave) return null;
    const at = seek(wave, clk);
    return at < wave.last && spans.start[at] <= clk ? {wave, at, x, y} : null;
  };
  const explain = found => {
    const {wave, at} = found, index = spans.of[at], row = rowOf(index);
    const start = spans.start[at], end = spans.end[at];
    const code = document.createElement("code");
    code.textContent = row ? row.cells[5].textContent : `instruction ${index}`;
    const micro = clock ? ` (${(start / clock).toFixed(4)} to ${(end / clock).toFixed(4)} µs)` : "";
    tip.replaceChildren(code,
      `${row ? `\nat ${row.cells[0].textContent}` : ""}\n${spans.code[at] ? `stalled for ${names[spans.code[at]]}` : "issues"}` +
      ` ${number(end - start)} clk: ${number(start)} to ${number(end)}${micro}` +
      `\nworkgroup ${wave.workgroup} wave ${wave.wave}`);
    tip.hidden = false;
    tip.style.left = Math.max(Math.min(found.x + 14, width - tip.offsetWidth - 6), 4) + "px";
    const below = found.y + 18;
    const room = AXIS + lanesHeight() + OVERVIEW;
    tip.style.top = (below + tip.offsetHeight < room ? below
                     : Math.max(found.y - tip.offsetHeight - 8, 2)) + "px";
  };

  let drag = null;
  lanes.addEventListener("pointerdown", event => {
    drag = {x: event.clientX, y: event.clientY, from: view.from, to: view.to, top: view.top, moved: false};
    lanes.setPointerCapture(event.pointerId);
  });
  lanes.addEventListener("pointermove", event => {
    if (!drag) {
      const found = under(event);
      if (found) explain(found); else tip.hidden = true;
      return;
    }
    const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
    if (!drag.moved && Math.hypot(dx, dy) < 4) return;
    drag.moved = true;
    tip.hidden = true;
    lanes.classList.add("dragging");
    const by = -dx * (drag.to - drag.from) / plot();
    show(drag.from + by, drag.to + by);
    scroll(drag.top - dy - view.top);
  });
  lanes.addEventListener("pointerup", event => {
    const click = drag && !drag.moved;
    drag = null;
    lanes.classList.remove("dragging");
    const found = click && under(event);
    if (!found) return;
    selected = spans.of[found.at];
    redraw();
    goTo(selected);
  });
  lanes.addEventListener("pointercancel", () => { drag = null; lanes.classList.remove("dragging"); });
  lanes.addEventListener("pointerleave", () => { tip.hidden = true; });
  lanes.addEventListener("wheel", event => {
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
      move((event.deltaX || event.deltaY) / plot());
    else zoom(Math.exp(Math.min(Math.max(event.deltaY, -200), 200) * 0.002),
              clkAt(Math.max(event.clientX - lanes.getBoundingClientRect().left, GUTTER)));
  }, {passive: false});
  lanes.addEventListener("keydown", event => {
    const action = {
      "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6),
      ArrowLeft: () => move(-0.15), ArrowRight: () => move(0.15),
      ArrowUp: () => scroll(-2 * ROW), ArrowDown: () => scroll(2 * ROW), Home: reset, "0": reset,
    }[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  });
  const aim = event => {
    const x = event.clientX - overview.getBoundingClientRect().left;
    const clk = first + (x - GUTTER) / plot() * (last - first), half = (view.to - view.from) / 2;
    show(clk - half, clk + half);
  };
  let picked = null;  // where a drag over the strip began, in clk
  const clkOf = event => first + (last - first) *
    (event.clientX - overview.getBoundingClientRect().left - GUTTER) / plot();
  overview.addEventListener("pointerdown", event => {
    picked = {clk: clkOf(event), x: event.clientX};
    overview.setPointerCapture(event.pointerId);
  });
  overview.addEventListener("pointermove", event => {
    if (!picked || Math.abs(event.clientX - picked.x) < 4) return;
    const clk = clkOf(event);
    show(Math.min(picked.clk, clk), Math.max(picked.clk, clk));
  });
  overview.addEventListener("pointerup", event => {
    if (picked && Math.abs(event.clientX - picked.x) < 4) aim(event);
    picked = null;
  });
  $("zoom-in").addEventListener("click", () => zoom(0.6));
  $("zoom-out").addEventListener("click", () => zoom(1 / 0.6));
  $("earlier").addEventListener("click", () => move(-0.25));
  $("later").addEventListener("click", () => move(0.25));
  $("reset").addEventListener("click", reset);
  dark.addEventListener("change", () => { style(); redraw(); });
  new ResizeObserver(() => { resize(); draw(); }).observe(lanes.parentElement);
  style();
  resize();
  draw();
};

unpackTimeline(packed).then(main).catch(error => {
  range.textContent = `The timeline cannot be shown: ${error.message}`;
});
})();
