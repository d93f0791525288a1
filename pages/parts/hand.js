// A hand on a figure: the line of the input that is set follows a pointer, a click or the arrow keys, and headline and
// label say at every frame what was solved there. All of it is looked up in what Python sent; nothing is computed.
// What is taken in the end goes back to Python, which solves the page for it.

const WAIT = 4000; // [ms] for the page that was asked for; then the figure shows again what it was drawn with
const DOUBLE_CLICK = 300; // [ms] Plotly's own: a second click within it resets the zoom and takes nothing
const STILL = 4; // [px] a pointer that moved no more was a click
const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [-1, -1], ArrowUp: [1, 1], PageDown: [-16, 0], PageUp: [16, 0] };
const WRITTEN = new Intl.NumberFormat("en-US");

let pressed = false; // whether a pointer is down anywhere: the slider in the sidebar is dragged too
addEventListener("pointerdown", () => (pressed = true), true);
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (pressed = false), true);

function part(parent, name) {
  const element = parent.appendChild(document.createElement("div"));
  element.className = name;
  return element;
}

const one = (column, at) => (Array.isArray(column) ? column[at] : column);
const filled = (form, values) => form.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const within = (value, low, high) => Math.min(Math.max(value, low), high);

// Lines with <b> in them, as text alone.
function write(element, words) {
  element.replaceChildren(...words.split(/<\/?b>/).map((text, index) =>
    index % 2 ? Object.assign(document.createElement("b"), { textContent: text }) : text));
}

// The page's first line, as the one text that holds it: only its characters change, the element stays the page's own.
function textOf(main, words) {
  for (const heading of main?.querySelectorAll("h1, h2, h3") ?? []) {
    const walk = document.createTreeWalker(heading, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) if (walk.currentNode.data === words) return walk.currentNode;
  }
  return null;
}

// Where the value of a stop is on the axes that are drawn now; the nearest stop where it is none any more.
const moved = (stop, before, now) => stop.map((index, number) => {
  const value = before[number].at[index], values = now[number]?.at ?? [];
  const found = values.indexOf(value);
  if (found >= 0) return found;
  const away = values.map((other) => Math.abs(other - value));
  return Math.max(away.indexOf(Math.min(...away)), 0);
});

// What an element says besides its headline, which follows the hand.
function besides(element, headline) {
  const parts = [...element.querySelectorAll(".words > *")];
  return parts.flatMap((part) => (part.contains(headline) ? [...part.children].filter((other) => other !== headline) : [part]));
}

// `gone` is the signal that the figures' place goes.
function handOn(figure, gone) {
  const layer = part(figure, "hand"), line = part(layer, "hand-line"), dot = part(layer, "hand-dot"), label = part(layer, "hand-label");
  const grip = part(figure, "hand-grip");
  grip.tabIndex = 0;
  grip.setAttribute("role", "slider");
  let spec = null, headline = "", cells = null, take = null;
  let own = null, at = null, held = false; // stops as [across, up]; `held`: the hand has not let go yet
  let written = null, dimmed = [], waiting = 0, frame = 0, clicking = 0;

  const main = () => figure.closest('[data-testid="stMain"]');
  const axes = () => figure.axesShown ?? [figure._fullLayout.xaxis, figure._fullLayout.yaxis]; // of a still or of Plotly
  const isDrawn = () => Boolean(figure.axesShown ?? figure._fullLayout?.xaxis);
  const place = (number, stop) => {
    const axis = axes()[number];
    const pixel = axis.type === "category" ? axis.c2p(stop) : axis.d2p(spec.axes[number].at[stop]);
    return axis._offset + (Number.isFinite(pixel) ? pixel : 0);
  };
  const nearest = (number, pixel) => {
    let found = 0;
    for (let stop = 1; stop < spec.axes[number].at.length; stop++) {
      if (Math.abs(place(number, stop) - pixel) < Math.abs(place(number, found) - pixel)) found = stop;
    }
    return found;
  };
  const underPointer = (event) => {
    const box = figure.getBoundingClientRect();
    const pixels = [event.clientX - box.left, event.clientY - box.top];
    return spec.axes.map((_, number) => nearest(number, pixels[number]));
  };
  const same = (one, other) => one !== null && other !== null && one.every((stop, number) => stop === other[number]);

  // The numbers and words of a stop.
  function said([across, up]) {
    if (cells) {
      const runs = cells[up][across];
      const values = { at: spec.words[across], up: spec.up[up], runs: WRITTEN.format(runs) };
      return { runs, ...Object.fromEntries(Object.entries(spec.forms[runs === null ? 1 : 0]).map(([name, form]) => [name, filled(form, values)])) };
    }
    const values = { at: spec.words[across], L: spec.L };
    for (const [name, column] of Object.entries(spec.columns)) values[name] = WRITTEN.format(one(column, across));
    const form = spec.forms[one(spec.form, across)];
    return { runs: one(spec.columns.runs, across), ...Object.fromEntries(Object.entries(form).map(([name, text]) => [name, filled(text, values)])) };
  }

  function paint() {
    frame = 0;
    if (at === null || !isDrawn()) return;
    const [xaxis, yaxis] = axes(), words = said(at);
    const x = place(0, at[0]), top = yaxis._offset, bottom = top + yaxis._length;
    const y = cells ? place(1, at[1]) : top + within(yaxis.d2p(words.runs) || (words.runs > 0 ? 0 : Infinity), 0, yaxis._length);
    const seen = x >= xaxis._offset - 1 && x <= xaxis._offset + xaxis._length + 1;
    layer.style.display = seen ? "block" : "none";
    grip.classList.toggle("hand-held", held);
    line.style.display = cells ? "none" : "block";
    line.style.height = `${yaxis._length}px`;
    line.style.transform = `translate(${x}px, ${top}px)`;
    dot.style.transform = `translate(${x}px, ${y}px)`;
    write(label, words.label);
    const left = x > xaxis._offset + xaxis._length / 2 ? "calc(-100% - 10px)" : "10px";
    label.style.transform = `translate(${x}px, ${cells ? y : bottom - 6}px) translate(${left}, ${cells ? "-50%" : "-100%"})`;
    if (written && words.headline) written.node.data = words.headline;
    settleGrip(at, words);
  }

  function settleGrip(stop, words) {
    const shown = stop !== null && isDrawn();
    grip.style.display = shown ? "block" : "none";
    if (!shown) return;
    const [xaxis, yaxis] = axes(), x = within(place(0, stop[0]), xaxis._offset, xaxis._offset + xaxis._length);
    grip.classList.toggle("hand-point", cells !== null);
    grip.style.height = cells ? "" : `${yaxis._length}px`;
    grip.style.transform = `translate(${x}px, ${cells ? place(1, stop[1]) : yaxis._offset}px)`;
    grip.setAttribute("aria-valuemin", 0);
    grip.setAttribute("aria-valuemax", spec.axes[0].at.length - 1);
    grip.setAttribute("aria-valuenow", stop[0]);
    grip.setAttribute("aria-valuetext", (words ?? said(stop)).label.replace(/<\/?b>/g, "").replaceAll("\n", ", "));
  }

  // What the figure shows of the input that is set, which the hand stands for now.
  function hideOwn(hidden) {
    figure.classList.toggle("hand-on", hidden);
    const { shapes = [], annotations = [] } = figure._fullLayout ?? {};
    const nodes = [[shapes, ".shapelayer"], [annotations, ".infolayer"]].flatMap(([items, place]) => items.flatMap((item, index) =>
      item.name === "own" ? [...figure.querySelectorAll(`${place} [data-index="${index}"]`)].filter((node) => place !== ".infolayer" || node.classList.contains("annotation")) : []));
    for (const node of nodes) node.style.visibility = hidden ? "hidden" : "";
  }

  // Numbers of the rest of the page belong to what was set before.
  function dim() {
    if (dimmed.length) return;
    const root = figure.parentElement;
    const others = [...(main()?.querySelectorAll('[data-testid="stElementContainer"]') ?? [])].flatMap((element) =>
      element.contains(figure) ? [...root.children].filter((other) => other !== figure && other.dataset.figure)
        : element.contains(written?.node ?? null) ? besides(element, written.node.parentElement) : [element]);
    for (const element of others) element.style.opacity = 0.35;
    dimmed = others;
  }

  function show(stop) {
    const begins = at === null;
    at = stop;
    if (begins) {
      hideOwn(true);
      const node = textOf(main(), headline);
      written = node && { node };
    }
    frame ||= requestAnimationFrame(paint);
  }

  function drop() {
    cancelAnimationFrame(frame);
    clearTimeout(waiting);
    frame = waiting = 0;
    if (at === null) return;
    at = null;
    held = false;
    layer.style.display = "none";
    grip.classList.remove("hand-held");
    hideOwn(false);
    const said = written?.node.parentElement?.words; // by the page: it may be newer than the figure
    if (said && written.node.data !== said) written.node.data = said;
    for (const element of dimmed) element.style.opacity = "";
    written = null;
    dimmed = [];
    settleGrip(own);
  }

  function await_() {
    clearTimeout(waiting);
    waiting = setTimeout(() => (pressed ? await_() : drop()), WAIT);
  }

  function letGo() {
    held = false;
    if (at === null) return;
    if (same(at, own)) return drop();
    await_();
    take(Object.fromEntries(spec.axes.map(({ input, at: values }, number) => [input, values[at[number]]])));
  }

  grip.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || spec === null) return;
    event.preventDefault();
    event.stopPropagation();
    grip.classList.add("hand-pressed");
    grip.focus({ preventScroll: true });
    grip.setPointerCapture(event.pointerId);
    held = true;
    show(at ?? own);
    dim();
  });
  grip.addEventListener("pointermove", (event) => {
    if (held && grip.hasPointerCapture(event.pointerId)) show(underPointer(event));
  });
  grip.addEventListener("pointerup", (event) => {
    if (!held || !grip.hasPointerCapture(event.pointerId)) return;
    show(underPointer(event));
    paint();
    letGo();
  });
  grip.addEventListener("pointercancel", drop);
  grip.addEventListener("dblclick", (event) => event.stopPropagation());

  grip.addEventListener("keydown", (event) => {
    grip.classList.remove("hand-pressed");
    const last = spec?.axes.map(({ at: values }) => values.length - 1);
    const step = KEYS[event.key], from = at ?? own;
    if (spec === null || from === null) return;
    let stop = null;
    if (step) stop = from.map((value, number) => within(value + (cells ? (event.key.startsWith("Arrow") && (event.key === "ArrowLeft" || event.key === "ArrowRight") === (number === 0) ? step[number] || step[0] : 0) : step[0]), 0, last[number]));
    if (event.key === "Home") stop = from.map((value, number) => (number ? value : 0));
    if (event.key === "End") stop = from.map((value, number) => (number ? value : last[0]));
    if (stop === null) return;
    event.preventDefault();
    held = true;
    show(stop);
  });
  const letGoOfKeys = () => held && !pressed && letGo();
  grip.addEventListener("keyup", (event) => (event.key in KEYS || event.key === "Home" || event.key === "End") && letGoOfKeys());
  grip.addEventListener("blur", () => {
    grip.classList.remove("hand-pressed");
    letGoOfKeys();
  });
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !(held || clicking)) return;
    clearTimeout(clicking);
    clicking = 0;
    drop();
  }, { capture: true, signal: gone });

  // A click on the axes takes what is under it, unless it was the first half of a double click.
  let down = null;
  figure.addEventListener("pointerdown", (event) => {
    down = event.button === 0 && event.target.closest?.(".nsewdrag") ? event : null;
    if (!clicking) return;
    clearTimeout(clicking);
    clicking = 0;
    down = null;
    drop();
  }, true);
  addEventListener("pointerup", (event) => {
    const first = down;
    down = null;
    if (first === null || spec === null || !figure.isConnected) return;
    if (Math.hypot(event.clientX - first.clientX, event.clientY - first.clientY) > STILL) return;
    show(underPointer(event));
    grip.classList.add("hand-pressed");
    grip.focus({ preventScroll: true });
    clicking = setTimeout(() => {
      clicking = 0;
      letGo();
    }, DOUBLE_CLICK);
  }, { capture: true, signal: gone });

  return {
    isOn: () => at !== null,
    drop,
    // After each drawing: what is under the hand now.
    drawn(next, words, drawnCells, taking) {
      if (at !== null && next) at = moved(at, spec.axes, next.axes);
      spec = next ?? null;
      headline = words;
      cells = spec && spec.axes.length > 1 ? drawnCells : null;
      take = taking;
      own = spec && spec.axes.every(({ at: values, own: value }) => values.includes(value)) ? spec.axes.map(({ at: values, own: value }) => values.indexOf(value)) : null;
      if (spec) grip.setAttribute("aria-label", `${spec.axes.map(({ name }) => name).join(" and ")}, on the figure`);
      if (at === null || spec === null) {
        if (at !== null) drop();
        settleGrip(own);
      } else if (!held && !clicking && same(at, own)) drop();
      else this.redrawn();
    },
    // After a zoom or another width.
    redrawn() {
      if (at === null) return settleGrip(own);
      hideOwn(true);
      if (written && !written.node.isConnected) written = null;
      written ??= (textOf(main(), headline) && { node: textOf(main(), headline) });
      paint();
    },
    // The same input moved elsewhere: its words tell the stop.
    follow(input, words) {
      if (spec === null || cells || spec.axes[0].input !== input || held) return;
      const stop = spec.words.indexOf(words);
      if (stop < 0 || (at === null && same([stop], own))) return;
      show([stop]);
      await_();
    },
  };
}
