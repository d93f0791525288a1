// Draws figures with Plotly and keeps them mounted: a rerun updates them in place, so zoom survives a slider move.
// Streamlit's own st.plotly_chart mounts a chart anew whenever its data changes, which costs most of a move's time.

let library = null;

// plotly.js from the browser's own store if it was there before: Streamlit serves it without a word on how long it
// holds, so a browser would load it anew for each page. The address carries its release.
function plotly(url) {
  const address = new URL(url, document.baseURI).href;
  library ??= fetch(address, { cache: "force-cache" })
    .then((answer) => (answer.ok ? answer.blob() : Promise.reject(new Error(String(answer.status)))))
    .then((blob) => new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = URL.createObjectURL(new Blob([blob], { type: "text/javascript" }));
      script.onload = () => resolve(window.Plotly);
      script.onerror = reject;
      document.head.appendChild(script);
    }))
    .catch(() => Promise.reject(new Error("plotly.js did not load from " + address)));
  return library;
}

const NUMBERS = new Set(["x", "y", "z", "customdata"]); // long, and without colours

// Colour names ("@state") become the colours of the palette that fits the page's background.
function painted(value, palette) {
  if (typeof value === "string") return value[0] === "@" ? palette[value] ?? value : value;
  if (Array.isArray(value)) return value.map((item) => painted(item, palette));
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, NUMBERS.has(key) ? item : painted(item, palette)]));
  return value;
}

function isDark(element) {
  const [red, green, blue] = getComputedStyle(element).color.match(/[\d.]+/g).map(Number);
  return 0.299 * red + 0.587 * green + 0.114 * blue > 128; // light text stands on a dark page
}

// What is equal to the figure before is the very same object again: Plotly redraws only what is a new one.
function kept(before, next) {
  if (before === next || !before || !next || typeof before !== "object" || typeof next !== "object") return next;
  if (Array.isArray(before) !== Array.isArray(next)) return next;
  let same = Object.keys(before).length === Object.keys(next).length;
  for (const key of Object.keys(next)) {
    next[key] = kept(before[key], next[key]);
    same &&= before[key] === next[key];
  }
  return same ? before : next;
}

// A place of its final height for every figure, before Plotly is there.
function lay(root, figures) {
  root.closest('[data-testid="stElementContainer"]')?.classList.add("figures-place");
  for (const [name, figure] of Object.entries(figures)) {
    let element = root.querySelector(`[data-figure="${name}"]`);
    if (!element) {
      element = root.appendChild(document.createElement("div"));
      element.dataset.figure = name;
      element.setAttribute("role", "figure");
      const place = element, ofData = dataButton(element);
      element.nameData = (title) => ofData.setAttribute("aria-label", `Data of: ${title}`);
      root.watched.frame.observe(element); // it may widen alone
      for (const reach of ["pointerdown", "focusin"]) place.addEventListener(reach, () => plotNow(place), true);
      // A browser says so too of a pointer that rests, when what is under it is drawn anew: then it is not calm yet.
      place.addEventListener("pointerenter", () => performance.now() - place.changed > QUIET && plotNow(place), true);
    }
    element.setAttribute("aria-label", figure.alt);
    element.nameData(told(figure.layout.title?.text));
    element.classList.toggle("wide", figure.wide);
    element.style.height = `${figure.layout.height}px`;
  }
  for (const element of [...root.children]) {
    if (element.dataset.figure in figures) continue;
    element.hand?.drop(); // it may still be waiting for the page
    element.remove();
  }
}

const QUIET = 400; // [ms] without newer data before Plotly draws below the stills
const IDLE = { timeout: 2000 }; // [ms] after which a busy page is as good as calm
const CALM = window.requestIdleCallback ? (work) => requestIdleCallback(work, IDLE) : (work) => setTimeout(work); // not every browser has it

// Whether the reader zoomed: then the axes are the reader's, and Plotly draws at once.
function isZoomed(element) {
  const { xaxis, yaxis } = element._fullLayout ?? {};
  if (!xaxis || !element.synced) return false;
  return [[xaxis, element.synced.layout.xaxis], [yaxis, element.synced.layout.yaxis]].some(([shown, asked]) =>
    asked?.range && asked.range.some((end, index) => Math.abs(end - shown.range[index]) > 1e-9));
}

// A figure as it is now: as a still, which costs little, where it can be one; else by Plotly.
function draw(root, name) {
  const { data, take } = root, figure = data.figures[name], palette = data.palettes[root.dataset.dark === "true" ? "dark" : "light"];
  const element = root.querySelector(`[data-figure="${name}"]`);
  const drawn = kept(element.drawn, painted({ data: figure.data, layout: figure.layout }, palette));
  element.config = figure.config;
  if (drawn !== element.drawn) {
    element.drawn = drawn;
    element.changed = performance.now();
    element.wide ||= element.clientWidth;
    element.pending = true;
    if (!figure.still || isZoomed(element) || !drawStill(element, drawn, element.wide)) plotNow(element);
  }
  element.hand ??= handOn(element, root.watched.end.signal);
  element.hand.drawn(figure.hand, data.headline, figure.data[0]?.z, take);
}

// Whether Plotly has something to draw that can be seen: what is folded away is drawn when it is unfolded (refit).
const isWaiting = (element) => element.pending && element.checkVisibility();

// What Plotly has not drawn yet, it draws: for zoom, hover and the pictures that are saved.
function plotNow(element) {
  const Plotly = window.Plotly;
  if (!Plotly || !isWaiting(element)) return;
  const first = !element.synced, drawn = element.drawn;
  element.pending = false;
  element.synced = drawn;
  // Zoom stays. The width is given: Plotly would ask for it, and so have the whole page laid out, at every move.
  const layout = { ...drawn.layout, uirevision: "keep", autosize: false, width: element.wide };
  Plotly.react(element, drawn.data, layout, first ? withPictures(Plotly, element.config) : undefined);
  element.still?.remove();
  element.axesShown = null;
  if (first) element.on("plotly_afterplot", () => element.hand?.redrawn());
  element.hand?.redrawn();
}

// All figures at once, and Plotly when the page is calm, one figure at a time.
function drawAll(root) {
  root.dataset.dark ??= isDark(root); // asking makes the browser settle its styles; a new theme is heard of below
  for (const name of Object.keys(root.data.figures)) draw(root, name);
  clearTimeout(root.calming);
  root.calming = setTimeout(() => CALM(() => plotNext(root)), QUIET);
}

// When plotly.js is there: at once what is no still, the others when the page is calm.
function withoutStill(root) {
  for (const element of root.children) if (element.pending && !element.still?.isConnected) plotNow(element);
  CALM(() => plotNext(root));
}

function plotNext(root) {
  const waiting = [...root.children].filter(isWaiting);
  if (!waiting.length || !window.Plotly || !root.isConnected) return;
  plotNow(waiting[0]);
  root.calming = setTimeout(() => CALM(() => plotNext(root)));
}

// A figure follows its frame: the window changes it, the sidebar when it goes, and a fold.
function refit(root) {
  for (const element of root.children) {
    const wide = element.clientWidth;
    if (!element.drawn || !wide) continue;
    if (Math.abs(element.wide - wide) > 1) {
      element.wide = wide;
      if (element.still?.isConnected) drawStill(element, element.drawn, wide);
      if (element.synced) window.Plotly.relayout(element, { width: wide });
      element.hand?.redrawn();
    }
    if (!element.still?.isConnected) plotNow(element);
  }
}

// What the sliders of the sidebar say while a reader moves them, who then has the focus there: Streamlit hears of it
// at the end. Streamlit sets them too, sometimes to where they stood a moment ago: nobody moves them then.
function followSliders(root) {
  const sidebar = document.querySelector('[data-testid="stSidebar"]');
  const watch = new MutationObserver((changes) => {
    for (const { target, oldValue } of changes) {
      const words = target.getAttribute("aria-valuetext");
      if (target !== document.activeElement || words === oldValue) continue;
      const input = target.closest('[class*="st-key-"]')?.className.match(/st-key-(\w+?)(_slider_\d+)?(?=\s|$)/)?.[1];
      for (const element of root.children) element.hand?.follow(input, words);
    }
  });
  if (sidebar) watch.observe(sidebar, { attributes: true, attributeFilter: ["aria-valuetext"], attributeOldValue: true, subtree: true });
  return watch;
}

// Begun once for each place of figures: Streamlit calls the function below at each change, and runs only the last
// clean-up, when the place goes.
function watch(root) {
  const end = new AbortController();
  const repaint = new MutationObserver(() => {
    const dark = String(isDark(root));
    if (root.dataset.dark === dark) return;
    root.dataset.dark = dark;
    drawAll(root);
  });
  repaint.observe(root.closest(".stApp"), { attributeFilter: ["class"] }); // changes with the theme
  const frame = new ResizeObserver(() => refit(root));
  frame.observe(root);
  const sliders = followSliders(root);
  end.signal.addEventListener("abort", () => [repaint, frame, sliders].forEach((one) => one.disconnect()));
  // Its script takes long to read: after the stills are painted.
  if (!window.Plotly) requestAnimationFrame(() => setTimeout(() => plotly(root.data.plotly_url).then(() => root.isConnected && withoutStill(root), (error) => {
    root.textContent = `No figures: ${error.message}. The words and tables hold; reload the page to try again.`;
  })));
  return { frame, end };
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".figures");
  root.data = JSON.parse(new TextDecoder().decode(data));
  root.take = (values) => setTriggerValue("take", values);
  root.watched ??= watch(root);
  lay(root, root.data.figures);
  drawAll(root);
  return () => root.watched.end.abort();
}
