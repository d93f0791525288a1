// Words and tables of a page, from the Markdown that blocks.py writes: headings, paragraphs, lists, tables with plain
// cells and text to copy, in parts that stand plain, stand out or are folded. What did not change stays in the document
// as it is, down to the cell, so that a move of a slider costs only what it changes. Every text is set as text: none
// becomes markup.

const ESCAPED = /\\([^A-Za-z0-9\s])/g;

// A line breaks between flags, not within one: a flag that is broken reads as another. The words stay as they are to copy.
const FLAG = /((?<![\w-])--[a-z][\w-]*(?:[ =][\d.,]+)?)/;

function unbroken(text) {
  return text.split(FLAG).map((part, index) => index % 2 ? Object.assign(document.createElement("span"), { className: "flag", textContent: part }) : part).filter(Boolean);
}

// The text of a piece: bold between two stars, and nothing else that is marked.
function inline(element, source) {
  if (element.source === source) return element;
  element.source = source;
  const marked = source.replace(ESCAPED, (_, sign) => String.fromCharCode(0xe000 + sign.charCodeAt(0)));
  const plain = (text) => text.replace(/[\ue000-\ue07f]/g, (sign) => String.fromCharCode(sign.charCodeAt(0) - 0xe000));
  const pieces = marked.split(/(\*\*|  \n)/);
  let bold = false;
  const found = [];
  for (const piece of pieces) {
    if (piece === "**") bold = !bold;
    else if (piece === "  \n") found.push(document.createElement("br"));
    else if (bold && piece) found.push(Object.assign(document.createElement("strong"), { textContent: plain(piece) }));
    else if (piece && /^H\d$/.test(element.tagName)) found.push(plain(piece)); // one text: a hand on a figure writes in it
    else if (piece) found.push(...unbroken(plain(piece)));
  }
  element.words = found.length === 1 ? found[0] : null; // what it says, whatever a hand writes in it
  if (found.length === 1 && typeof found[0] === "string" && element.firstChild?.nodeType === 3 && element.childNodes.length === 1) element.firstChild.data = found[0];
  else element.replaceChildren(...found);
  return element;
}

// A bar to the left or to the right of the middle, its length in percent of a half: "‖R35".
function bar(element, source) {
  if (element.source === source) return;
  element.source = source;
  const side = source[1] === "R" ? "left" : "right", drawn = document.createElement("div");
  element.className = "bar";
  drawn.style.cssText = `${side}: 50%; width: ${Number(source.slice(2)) / 2}%`;
  element.replaceChildren(drawn);
}

const cells = (line) => line.slice(2, -2).split(" | ");

// As many children of that name as there are sources, each patched in place.
function children(parent, name, sources, patch) {
  while (parent.children.length > sources.length) parent.lastElementChild.remove();
  sources.forEach((source, index) => patch(parent.children[index] ?? parent.appendChild(document.createElement(name)), source, index));
}

function table(element, source) {
  const [head, marks, ...rows] = source.split("\n");
  const right = cells(marks).map((mark) => mark.endsWith(":"));
  const set = (cell, text, index) => {
    if (text[0] === "‖") return bar(cell, text);
    cell.className = "";
    inline(cell, text);
    if (cell.style.textAlign !== (right[index] ? "right" : "left")) cell.style.textAlign = right[index] ? "right" : "left";
  };
  const thead = element.tHead ?? element.createTHead(), tbody = element.tBodies[0] ?? element.createTBody();
  children(thead, "tr", [head], (row, line) => children(row, "th", cells(line), set));
  children(tbody, "tr", rows, (row, line) => {
    if (row.source === line) return;
    row.source = line;
    children(row, "td", cells(line), set);
  });
}

// Text to copy, with its button. The page may be served without TLS, where a browser has no clipboard for scripts.
function code(element, source) {
  if (!element.text) {
    element.text = element.appendChild(document.createElement("code"));
    const button = element.appendChild(document.createElement("button"));
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(element.text.textContent);
      } catch {
        copySelected(element.text);
      }
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
  }
  const [opening, ...lines] = source.split("\n");
  const shown = opening === "```diff" ? lines.map(diffLine).flatMap((line, at) => (at ? ["\n", line] : [line])) : lines.flatMap((line, at) => [...(at ? ["\n"] : []), ...unbroken(line)]);
  element.text.replaceChildren(...shown);
}

function diffLine(line) {
  const kind = { "+": "comes", "-": "goes" }[line[0]];
  return kind ? Object.assign(document.createElement("span"), { className: kind, textContent: line }) : line;
}

function copySelected(element) {
  getSelection().selectAllChildren(element);
  document.execCommand("copy");
}

const KINDS = [
  ["H1", (source) => source.startsWith("# "), (element, source) => inline(element, source.slice(2))],
  ["H2", (source) => source.startsWith("## "), (element, source) => inline(element, source.slice(3))],
  ["H4", (source) => source.startsWith("#### "), (element, source) => inline(element, source.slice(5))],
  ["PRE", (source) => source.startsWith("```"), code],
  ["TABLE", (source) => source.startsWith("| "), table],
  ["UL", (source) => source.startsWith("- "), (element, source) => children(element, "li", source.split("\n- "), (item, line, index) => inline(item, index ? line : line.slice(2)))],
  ["P", () => true, inline],
];

// The blocks of a part, each patched in place while it is of the same kind.
function fill(root, markdown) {
  const blocks = markdown.split("\n\n").filter(Boolean);
  while (root.children.length > blocks.length) root.lastElementChild.remove();
  blocks.forEach((source, index) => {
    const [name, , patch] = KINDS.find(([, fits]) => fits(source));
    let element = root.children[index];
    if (element?.block === source) return;
    if (element?.tagName !== name) {
      const made = document.createElement(name);
      element ? element.replaceWith(made) : root.append(made);
      element = made;
    }
    element.block = source;
    patch(element, source);
  });
}

function made(kind) {
  const part = document.createElement(kind === "fold" ? "details" : "div");
  part.className = kind;
  if (kind === "fold") part.append(document.createElement("summary"), document.createElement("div"));
  return part;
}

export default function ({ data: bytes, parentElement }) {
  const data = JSON.parse(new TextDecoder().decode(bytes));
  const root = parentElement.querySelector(".words");
  while (root.children.length > data.parts.length) root.lastElementChild.remove();
  data.parts.forEach(({ kind = "plain", title, markdown }, index) => {
    let part = root.children[index];
    if (part?.className !== kind) {
      const next = made(kind);
      part ? part.replaceWith(next) : root.append(next);
      part = next;
    }
    if (kind === "fold" && part.firstChild.textContent !== title) part.firstChild.textContent = title;
    fill(kind === "fold" ? part.lastChild : part, markdown);
  });
}
