// The numbers of a figure as a table, for readers who do not see it: made in the browser from what is drawn, when it is
// asked for.

// Traces that point at numbers of others, or carry words alone.
const HELPERS = new Set(["hover", "marks", "labels", "names", "threads", "casing", "above", "wanted"]);
const MOST = 24; // rows and columns of a heatmap that are shown; of more every nth
const WHOLE_NUMBERS = new Intl.NumberFormat("en-US"), REAL = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 5 });

// Words of a figure without its markup; of an axis the first line, for the second says who solved it.
const told = (text) => String(text ?? "").replace(/<br>/g, ", ").replace(/<[^>]*>/g, "");
const titled = (axis) => told(String(axis?.title?.text ?? "").split("<br>")[0]);

function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "number") return told(value);
  return (Number.isInteger(value) ? WHOLE_NUMBERS : REAL).format(value);
}

// One column for each trace, one row for each place that any of them has.
function columns(traces, layout) {
  const flat = traces.some(({ orientation }) => orientation === "h");
  const axes = traces.map(({ yaxis = "y" }) => titled(layout[yaxis.replace("y", "yaxis")]));
  const header = new Set(axes).size > 1 ? (name, at) => `${name}, ${axes[at]}` : (name) => name;
  const rows = new Map();
  traces.forEach((trace, at) => {
    const places = flat ? trace.y : trace.x, values = flat ? trace.x : trace.y;
    const isMark = trace.type === "bar" && !/%\{(y|customdata)/.test(trace.hovertemplate ?? "%{y"); // that something is there
    places.forEach((place, index) => {
      const said = trace.customdata?.[index], own = values[index];
      const better = trace.type === "bar" && (typeof said === "number" || /[a-z]/i.test(String(said ?? "")));
      if (place === null || own === null) return;
      const key = flat && typeof place === "number" ? `#${index + 1}` : place;
      if (!rows.has(key)) rows.set(key, Array(traces.length).fill(null));
      rows.get(key)[at] = isMark ? "yes" : better ? said : own;
    });
  });
  const ordered = [...rows].sort(([one], [other]) => (typeof one === "number" && typeof other === "number" ? one - other : 0));
  const first = flat ? "" : titled(layout.xaxis);
  return { what: flat ? titled(layout.xaxis) : [...new Set(axes)].join("; "), head: [first, ...traces.map(({ name }, at) => told(header(name, at)))], rows: ordered.map(([place, found]) => [place, ...found]) };
}

function heatmap({ x, y, z }, layout) {
  const thinned = (list) => [...list.keys()].filter((at) => at % Math.ceil(list.length / MOST) === 0);
  const across = thinned(x), up = thinned(y);
  return {
    what: `down: ${titled(layout.yaxis)}; across: ${titled(layout.xaxis)}; every ${Math.ceil(y.length / MOST)}th row and every ${Math.ceil(x.length / MOST)}th column`,
    head: ["", ...across.map((at) => cell(x[at]))],
    rows: up.map((row) => [y[row], ...across.map((at) => z[row][at])]),
  };
}

function tableOf({ data, layout }) {
  const map = data.find(({ type }) => type === "heatmap");
  if (map) return heatmap(map, layout);
  return columns(data.filter(({ name, mode, fill }) => name && !HELPERS.has(name) && mode !== "text" && fill !== "toself"), layout);
}

function made(parent, kind, words = "", attributes = {}) {
  const element = parent.appendChild(document.createElement(kind));
  element.textContent = words;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function show(figure) {
  const { what, head, rows } = tableOf(figure.drawn), title = told(figure.drawn.layout.title?.text);
  const dialog = made(figure.closest(".figures").parentElement, "dialog", "", { class: "data", "aria-label": `Data of: ${title}` });
  made(dialog, "h2", title);
  const close = made(dialog, "button", "Close", { type: "button" });
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  const table = made(made(dialog, "div", "", { tabindex: 0, role: "region", "aria-label": title }), "table");
  made(table, "caption", what);
  const top = made(made(table, "thead"), "tr");
  for (const words of head) made(top, words ? "th" : "td", words, words ? { scope: "col" } : {});
  const body = made(table, "tbody");
  for (const [place, ...values] of rows) {
    const row = made(body, "tr");
    made(row, "th", cell(place), { scope: "row" });
    for (const value of values) made(row, "td", cell(value));
  }
  dialog.showModal();
}

// The button in the corner of a figure.
function dataButton(figure) {
  const button = made(figure, "button", "Data", { type: "button", class: "data-of", "aria-haspopup": "dialog" });
  button.addEventListener("click", () => show(figure));
  return button;
}
