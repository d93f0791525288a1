"""Scripts that ask a page which labels of its figures are cut off or cover each other."""

from pathlib import Path

# Plotly has redrawn each figure that can be seen to the width that its frame has now.
FILLED = """() => [...document.querySelectorAll('[data-figure]')].every((figure) => !figure.checkVisibility() ||
  Math.abs((figure.querySelector('.main-svg')?.getBoundingClientRect().width ?? 0)
    - figure.getBoundingClientRect().width) < 4)"""  # both as seen: a slide is enlarged, and so is a frame's line
# Text that reaches over the edge of its figure, by more than half a pixel of rounding.
CLIPPED = """() => [...document.querySelectorAll('[data-figure]')].flatMap((figure) => {
  const edge = figure.getBoundingClientRect();
  return [...figure.querySelectorAll('svg text')].filter((text) => {
    const box = text.getBoundingClientRect();
    return box.width && (box.left < edge.left - 0.5 || box.right > edge.right + 0.5
      || box.top < edge.top - 0.5 || box.bottom > edge.bottom + 0.5);
  }).map((text) => figure.dataset.figure + ': ' + text.textContent);
})"""

# Two labels of one figure that cover each other by more than a stroke, axis labels among them.
OVERLAPPING = """() => [...document.querySelectorAll('[data-figure]')].flatMap((figure) => {
  const disc = (box) => {  // of the dot, a letter in a larger box
    const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
    return { width: 14, left: x - 7, right: x + 7, top: y - 7, bottom: y + 7 };
  };
  const texts = [...figure.querySelectorAll('svg text')].map((text) =>
    [text, text.textContent === '●' ? disc(text.getBoundingClientRect()) : text.getBoundingClientRect()])
    .filter(([text, box]) => box.width && text.textContent.trim());
  return texts.flatMap(([one, a], index) => texts.slice(index + 1).filter(([, b]) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 3
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4
  ).map(([other]) => figure.dataset.figure + ': ' + one.textContent + ' / ' + other.textContent));
})"""

HERE = Path(__file__).parent
STRUCK, FAINT = ((HERE / name).read_text(encoding="utf-8") for name in ("struck.js", "faint.js"))
