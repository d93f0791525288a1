// A figure as a still picture: drawn at once from the dictionary that Plotly gets, in a few milliseconds and without
// plotly.js. Plotly draws the same below it when the page has time, and then the still goes (plot.js). It draws what
// the figures that plot.py names are made of, where Plotly draws it.

const ASCENT = 0.984, DESCENT = 0.273, LEADING = 1.3; // of the font's size: Source Sans, and Plotly's lines
const TICK = 5; // [px]
const canvas = document.createElement("canvas").getContext("2d");
const widths = new Map();

const escaped = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

// Lines of pieces of a text with <br>, <b> and <span style='font-size:..'>; null where it holds other markup.
function linesOf(text, size) {
  return text.split("<br>").map((line) => {
    let bold = false, own = size;
    const pieces = [];
    for (const piece of line.split(/(<\/?b>|<span style='font-size:\d+px'>|<\/span>)/)) {
      if (piece === "<b>" || piece === "</b>") bold = piece === "<b>";
      else if (piece.startsWith("<span style='font-size:")) own = parseInt(piece.slice(23), 10);
      else if (piece === "</span>") own = size;
      else if (/<[a-z/]|&/i.test(piece)) throw new Error("markup");
      else if (piece) pieces.push({ words: piece, bold, size: own });
    }
    return pieces;
  });
}

// The width [px] of the widest line; each text is measured once.
function widthOf(lines, family) {
  return Math.max(...lines.map((line) => line.reduce((sum, { words, bold, size }) => {
    const font = `${bold ? "bold " : ""}${size}px ${family}`, key = font + words;
    if (!widths.has(key)) {
      if (widths.size > 2000) widths.clear();
      canvas.font = font;
      widths.set(key, canvas.measureText(words).width);
    }
    return sum + widths.get(key);
  }, 0)));
}

// A text whose first line stands on y; x is where it begins, ends or has its middle.
function textAt(lines, x, y, { size, color, anchor, weight, turn }) {
  const spans = lines.map((line, number) => `<tspan x="${x}" dy="${number ? LEADING : 0}em">${line.map((piece) =>
    piece.bold || piece.size !== size ? `<tspan style="font-size:${piece.size}px${piece.bold ? ";font-weight:bold" : ""}">${escaped(piece.words)}</tspan>` : escaped(piece.words)).join("")}</tspan>`);
  return `<text x="${x}" y="${y}" text-anchor="${anchor}" font-size="${size}" fill="${color}"${weight ? ` font-weight="${weight}"` : ""}${turn ? ` transform="rotate(-90,${x},${y})"` : ""}>${spans.join("")}</text>`;
}

const ANCHOR = { left: "start", center: "middle", right: "end" };
const DASHES = { dot: [1, 1], dash: [3, 3], dashdot: [3, 1, 1, 1] }; // times the width, which counts as 3 at least
const dashes = ({ dash, width }) => !dash || dash === "solid" ? "" : ` stroke-dasharray="${DASHES[dash].map((length) => length * Math.max(width, 3))}"`;
const rounded = (value) => Math.round(value * 100) / 100;

// One axis: where its values stand [px] inside the axes, with the names that a hand asks Plotly's axes by.
function axisOf(spec, offset, length, upward, categories) {
  const [low, high] = spec.range;
  const along = (value) => (upward ? high - value : value - low) / (high - low) * length;
  const c2p = (value) => along(categories ? categories.indexOf(value) : value);
  const d2p = categories ? c2p : spec.type === "log" ? (value) => along(Math.log10(value)) : along;
  return { type: categories ? "category" : spec.type ?? "linear", _offset: offset, _length: length, d2p, c2p, spec };
}

function linePath(trace, x, y) {
  const across = trace.x.map(x.d2p), up = trace.y.map((value) => (value === null ? null : y.d2p(value)));
  let path = "", pen = false;
  for (let at = 0; at < across.length; at++) {
    const seen = up[at] !== null && Number.isFinite(up[at]) && Number.isFinite(across[at]);
    if (seen) path += !pen ? `M${rounded(across[at])},${rounded(up[at])}` : trace.line.shape === "hv" ? `H${rounded(across[at])}V${rounded(up[at])}` : `L${rounded(across[at])},${rounded(up[at])}`;
    pen = seen;
  }
  return path;
}

const SYMBOLS = {
  circle: (r) => `M${r},0A${r},${r} 0 1,1 0,${-r}A${r},${r} 0 0,1 ${r},0Z`,
  diamond: (r) => `M${r * 1.3},0L0,${r * 1.3}L${-r * 1.3},0L0,${-r * 1.3}Z`,
};

function scatter(trace, x, y, family) {
  if (trace.opacity === 0) return "";
  if (trace.mode === "lines") {
    const path = linePath(trace, x, y);
    if (trace.fill === "toself") return `<path d="${path}Z" fill="${trace.fillcolor}"/>`;
    return `<path d="${path}" fill="none" stroke="${trace.line.color}" stroke-width="${trace.line.width}"${dashes(trace.line)} stroke-miterlimit="2"/>`;
  }
  if (trace.mode === "markers") {
    const { color, size, symbol, line } = trace.marker;
    return trace.x.map((value, at) => `<path transform="translate(${x.d2p(value)},${y.d2p(trace.y[at])})" d="${SYMBOLS[symbol[at]](size / 2)}" fill="${color}" stroke="${line.color}" stroke-width="${line.width}"/>`).join("");
  }
  return trace.x.map((value, at) => {
    if (trace.textposition[at] !== "middle center") throw new Error("side");
    const size = trace.textfont.size[at], lines = linesOf(trace.text[at], size);
    const foot = y.d2p(trace.y[at]) + size * (0.25 - (lines.length - 1) * LEADING / 2);
    return textAt(lines, x.d2p(value), foot, { size, color: trace.textfont.color[at], anchor: "middle" });
  }).join("");
}

// Bars that lie, each trace after the one before.
function bars(traces, x, y, gap, name) {
  const ends = {}, patterns = [], found = [];
  traces.forEach((trace, number) => {
    const { color, line, pattern } = trace.marker;
    let fill = color;
    if (pattern.shape) {
      const side = pattern.size * Math.SQRT2, half = side / 2, quarter = side / 4;
      const rising = `M${-quarter},${quarter}l${half},${-half}M0,${side}L${side},0M${side - quarter},${side + quarter}l${half},${-half}`;
      const falling = `M${side + quarter},${quarter}l${-half},${-half}M${side},${side}L0,0M${quarter},${side + quarter}l${-half},${-half}`;
      patterns.push(`<pattern id="${name}${number}" width="${side}" height="${side}" patternUnits="userSpaceOnUse"><rect width="${side}" height="${side}" fill="${color}"/><path d="${pattern.shape === "x" ? rising + falling : rising}" opacity="0.5" stroke="${pattern.fgcolor}" stroke-width="${pattern.solidity * pattern.size}"/></pattern>`);
      fill = `url(#${name}${number})`;
    }
    trace.y.forEach((row, at) => {
      const high = (1 - gap) * Math.abs(y.c2p(trace.y[1] ?? row) - y.c2p(trace.y[0])) || (1 - gap) * y._length / 2;
      const start = ends[row] ?? 0, end = (ends[row] = start + trace.x[at]);
      const left = x.d2p(start), wide = x.d2p(end) - left, middle = y.c2p(row);
      found.push(`<rect x="${rounded(left)}" y="${rounded(middle - high / 2)}" width="${rounded(Math.max(wide, 0))}" height="${rounded(high)}" fill="${fill}" stroke="${line.color}" stroke-width="${line.width}" shape-rendering="crispEdges"/>`);
      if (!trace.text[at]) return;
      const size = trace.textfont.size, lines = linesOf(trace.text[at], size);
      const foot = middle - blockOf(lines, size) / 2 + ASCENT * size;
      found.push(textAt(lines, rounded(left + wide / 2), rounded(foot), { size, color: trace.textfont.color, anchor: "middle" }));
    });
  });
  return `<defs>${patterns.join("")}</defs>${found.join("")}`;
}

const blockOf = (lines, size) => ((lines.length - 1) * LEADING + ASCENT + DESCENT) * size; // [px] high

function shape({ type, x0, y0, x1, y1, xref, yref, line = {}, fillcolor, opacity = 1, name }, x, y) {
  const across = (value) => rounded(xref === "paper" ? value * x._length : x.d2p(value));
  const up = (value) => rounded(yref === "paper" ? (1 - value) * y._length : y.d2p(value));
  const path = type === "rect" ? `M${across(x0)},${up(y0)}H${across(x1)}V${up(y1)}H${across(x0)}Z` : `M${across(x0)},${up(y0)}L${across(x1)},${up(y1)}`;
  return `<path${name === "own" ? ' class="own"' : ""} d="${path}" opacity="${opacity}" fill="${type === "rect" ? fillcolor : "none"}" stroke="${line.color ?? "none"}" stroke-width="${line.width ?? 0}"${dashes(line)}/>`;
}

function annotation(item, x, y, font) {
  const { size = font.size, color = font.color } = item.font ?? {}, lines = linesOf(item.text, size);
  const pad = (item.borderpad ?? 1) + 1, high = blockOf(lines, size) + 2 * pad, side = item.xanchor ?? "center";
  const across = x._offset + (item.xref === "paper" ? item.x * x._length : x.spec.type === "log" ? x.c2p(item.x) : x.d2p(item.x)) + (item.xshift ?? 0);
  const up = y._offset + (item.yref === "paper" ? (1 - item.y) * y._length : y.type === "category" ? (item.y - y.spec.range[1]) / (y.spec.range[0] - y.spec.range[1]) * y._length : y.spec.type === "log" ? y.c2p(item.y) : y.d2p(item.y)) - (item.yshift ?? 0);
  const top = Math.round(up - { top: 0, middle: high / 2, bottom: high }[item.yanchor ?? "middle"]);
  const edge = side === "left" ? Math.round(across) + pad : side === "right" ? Math.round(across) - pad : Math.round(across);
  const words = textAt(lines, edge, Math.round(top + pad + ASCENT * size), { size, color, anchor: ANCHOR[item.align ?? side] });
  let ground = "";
  if (item.bgcolor) {
    const wide = widthOf(lines, font.family) + 2 * pad;
    const left = Math.round(across - { left: 0, center: wide / 2, right: wide }[side]);
    ground = `<rect x="${left}" y="${top}" width="${Math.round(wide)}" height="${Math.round(high)}" fill="${item.bgcolor}"/>`;
  }
  return `<g${item.name === "own" ? ' class="own"' : ""}>${ground}${words}</g>`;
}

function axes(x, y, font) {
  const [left, top, right, foot] = [x._offset, y._offset, x._offset + x._length, y._offset + y._length];
  const grid = [], marks = [], written = [];
  const inside = (at, length) => at >= -1 && at <= length + 1;
  const ticks = (axis) => axis.type === "category" ? axis.names : axis.spec.tickvals;
  for (const value of ticks(x)) {
    const at = rounded(x.d2p(value));
    if (!inside(at, x._length)) continue;
    grid.push(`<path d="M${left + at},${top}V${foot}" stroke="${x.spec.gridcolor}"/>`);
    marks.push(`<path d="M${left + at},${foot + 1}v${TICK}" stroke="${x.spec.tickcolor}"/>`);
    const lines = linesOf(x.spec.ticktext[x.spec.tickvals.indexOf(value)], x.spec.tickfont.size);
    written.push(textAt(lines, left + at, foot + 20.4, { size: x.spec.tickfont.size, color: x.spec.tickfont.color, anchor: "middle" }));
  }
  const off = y.spec.ticks === "outside" ? TICK : 0;
  let widest = 0;
  for (const value of ticks(y)) {
    const at = rounded(y.d2p(value));
    if (!inside(at, y._length)) continue;
    const { size, color } = y.spec.tickfont, lines = linesOf(y.type === "category" ? value : y.spec.ticktext[y.spec.tickvals.indexOf(value)], size);
    grid.push(`<path d="M${left},${top + at}H${right}" stroke="${y.spec.gridcolor}"/>`);
    if (off) marks.push(`<path d="M${left - 1},${top + at}h${-TICK}" stroke="${y.spec.tickcolor}"/>`);
    widest = Math.max(widest, widthOf(lines, font.family));
    written.push(textAt(lines, left - 3.4 - off, rounded(top + at + 4.2 - (lines.length - 1) * LEADING * size / 2), { size, color, anchor: "end" }));
  }
  marks.push(`<path d="M${left - 1},${foot + 0.5}H${right}" stroke="${x.spec.linecolor}"/><path d="M${left - 0.5},${top}V${foot}" stroke="${y.spec.linecolor}"/>`);
  const title = (axis, across, up, turn) => axis.spec.title.text && textAt(linesOf(axis.spec.title.text, axis.spec.title.font.size), rounded(across), rounded(up), { size: axis.spec.title.font.size, color: axis.spec.title.font.color, anchor: "middle", turn });
  written.push(title(x, left + x._length / 2, foot + 41));
  written.push(title(y, left - 3.4 - off - widest - y.spec.title.standoff - DESCENT * y.spec.title.font.size, top + y._length / 2, true));
  return [grid.join(""), `<g shape-rendering="crispEdges" fill="none">${marks.join("")}</g>${written.join("")}`];
}

function heading({ title }) {
  const lines = linesOf(title.subtitle.text, title.subtitle.font.size), left = title.pad.l;
  return textAt(linesOf(title.text, title.font.size), left, 34, { size: title.font.size, color: title.font.color, anchor: "start", weight: title.font.weight })
    + textAt(lines, left, 59.2, { size: title.subtitle.font.size, color: title.subtitle.font.color, anchor: "start" });
}

// The picture's parts, each as markup, and its axes; null where a text holds markup that is not drawn here, or the axes
// have no ticks of their own.
function pictureOf({ data, layout }, width, name) {
  const { margin, font, height } = layout, xspec = layout.xaxis, yspec = layout.yaxis;
  if (!xspec?.range || !yspec?.range || !xspec.ticktext) return null;
  const rows = yspec.type === "category" ? [...new Set(data.flatMap((trace) => trace.y))] : null;
  if (!rows && !yspec.ticktext) return null;
  try {
    const x = axisOf(xspec, margin.l, width - margin.l - margin.r, false, null);
    const y = axisOf(yspec, margin.t, height - margin.t - margin.b, true, rows);
    if (rows) y.names = rows;
    const lying = data.filter((trace) => trace.type === "bar"), others = data.filter((trace) => trace.type === "scatter");
    if (lying.length + others.length !== data.length) return null;
    const [grid, marks] = axes(x, y, font);
    const { shapes = [], annotations = [] } = layout, below = shapes.filter((item) => item.layer === "below"), above = shapes.filter((item) => item.layer !== "below");
    const inner = (markup) => `<svg x="${x._offset}" y="${y._offset}" width="${x._length}" height="${y._length}" overflow="hidden">${markup}</svg>`;
    return {
      axes: [x, y],
      parts: [
        inner(below.map((item) => shape(item, x, y)).join("")),
        `<g shape-rendering="crispEdges" fill="none">${grid}</g>`,
        inner((lying.length ? bars(lying, x, y, layout.bargap, `still-${name}`) : "") + others.map((trace) => scatter(trace, x, y, font.family)).join("")),
        inner(above.map((item) => shape(item, x, y)).join("")) + marks,
        heading(layout),
        annotations.map((item) => annotation(item, x, y, font)).join(""),
      ],
    };
  } catch (error) {
    if (["markup", "side"].includes(error.message)) return null;
    throw error;
  }
}

// Draws the still over a figure and says whether it could. Parts that are as before stay as they are.
function drawStill(element, drawn, width) {
  const picture = pictureOf(drawn, width, element.dataset.figure);
  if (!picture) return false;
  const { paper_bgcolor: paper, height, font } = drawn.layout;
  if (!element.still) {
    element.still = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    element.still.classList.add("still");
    element.still.setAttribute("aria-hidden", "true");
    for (const _ of picture.parts) element.still.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "g"));
  }
  const still = element.still;
  still.setAttribute("width", width);
  still.setAttribute("height", height);
  still.style.background = paper;
  still.style.fontFamily = font.family;
  picture.parts.forEach((markup, number) => {
    if (still.children[number].markup === markup) return;
    still.children[number].markup = still.children[number].innerHTML = markup;
  });
  if (!still.isConnected) element.appendChild(still);
  element.axesShown = picture.axes;
  return true;
}
