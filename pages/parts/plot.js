// Draws figures with Plotly and keeps them mounted: a rerun updates them in place, so zoom survives a slider move.
// Streamlit's own st.plotly_chart mounts a chart anew whenever its data changes, which costs most of a move's time.

let library = null;

function plotly(url) {
  library ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL(url, document.baseURI).href;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => reject(new Error("plotly.js did not load from " + script.src));
    document.head.appendChild(script);
  });
  return library;
}

const NUMBERS = new Set(["x", "y", "customdata"]); // long, and without colours

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

// Beside Plotly's own button for a PNG, one for the same figure as SVG.
function withSvg(Plotly, config) {
  const options = { ...config.toImageButtonOptions, format: "svg", scale: 1 };
  const button = { name: "svg", title: "Download plot as an SVG", icon: Plotly.Icons.disk };
  return { ...config, modeBarButtonsToAdd: [{ ...button, click: (figure) => Plotly.downloadImage(figure, options) }] };
}

function draw(Plotly, root, data) {
  const dark = isDark(root);
  const palette = data.palettes[dark ? "dark" : "light"];
  root.dataset.dark = dark;
  for (const [name, figure] of Object.entries(data.figures)) {
    let element = root.querySelector(`[data-figure="${name}"]`);
    if (!element) {
      element = root.appendChild(document.createElement("div"));
      element.dataset.figure = name;
      element.setAttribute("role", "figure");
    }
    element.setAttribute("aria-label", figure.alt);
    const first = !element.drawn;
    element.drawn = kept(element.drawn, painted({ data: figure.data, layout: figure.layout }, palette));
    const layout = { ...element.drawn.layout, uirevision: "keep" }; // zoom stays
    Plotly.react(element, element.drawn.data, layout, first ? withSvg(Plotly, figure.config) : undefined);
  }
}

// Plotly follows the window alone; a frame also changes when the sidebar goes, and then no window does.
function refit(root) {
  for (const element of root.children) {
    const drawn = element._fullLayout?.width;
    if (drawn && element.clientWidth && Math.abs(drawn - element.clientWidth) > 1) window.Plotly.Plots.resize(element);
  }
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".figures");
  const repaint = new MutationObserver(() => {
    if (root.isConnected && root.dataset.dark !== String(isDark(root))) draw(window.Plotly, root, data);
  });
  const frame = new ResizeObserver(() => refit(root));
  let shown = true;
  plotly(data.plotly_url).then((Plotly) => {
    if (!shown) return;
    draw(Plotly, root, data);
    frame.observe(root);
    repaint.observe(root.closest(".stApp"), { attributes: true }); // its class changes with the theme
  }, (error) => {
    root.textContent = `No figures: ${error.message}. The words and tables hold; reload the page to try again.`;
  });
  return () => {
    shown = false;
    repaint.disconnect();
    frame.disconnect();
  };
}
