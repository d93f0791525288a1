// Labels that a line, a mark or another label runs through, by more than half a pixel. A label on a ground of its own
// may cover lines, which then do not run through it, but no mark and no other label.
() => [...document.querySelectorAll('[data-figure]')].flatMap((figure) => {
  const name = figure.dataset.figure, shrunk = 1.5;
  const seen = (node) => { const style = getComputedStyle(node); return style.visibility !== 'hidden' && style.display !== 'none' && +style.opacity > 0 && +style.strokeOpacity > 0; };
  const points = (path) => {
    const matrix = path.getScreenCTM(), length = path.getTotalLength(), found = [];
    for (let at = 0; at <= length; at += 2) { const point = path.getPointAtLength(at); found.push([point.x * matrix.a + matrix.e, point.y * matrix.d + matrix.f]); }
    return found;
  };
  const area = figure.querySelector('.nsewdrag')?.getBoundingClientRect();
  if (!area) return [];
  const inArea = ([x, y]) => x >= area.left - 1 && x <= area.right + 1 && y >= area.top - 1 && y <= area.bottom + 1;
  const strokes = (selector) => [...figure.querySelectorAll(selector)].filter((path) => seen(path) && parseFloat(getComputedStyle(path).strokeWidth) > 0 && getComputedStyle(path).stroke !== 'none');
  const lines = [...strokes('.scatterlayer path.js-line'), ...strokes('.shapelayer path'), ...strokes('.annotation-arrow-g path')]
    .map((path) => [path, points(path).filter(inArea), parseFloat(getComputedStyle(path).strokeWidth) / 2]);
  const marks = [...figure.querySelectorAll('.scatterlayer .points path')].filter(seen).map((path) => path.getBoundingClientRect());
  const labels = [];
  for (const node of figure.querySelectorAll('.annotation')) {
    if (!seen(node)) continue;
    const text = node.querySelector('text'), ground = node.querySelector('rect.bg');
    if (!text || !text.textContent.trim()) continue;
    if (text.textContent === '●') { const box = text.getBoundingClientRect(), x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2; marks.push({left: x - 7, right: x + 7, top: y - 7, bottom: y + 7}); continue; }
    const fill = ground && getComputedStyle(ground);
    labels.push([text, text.getBoundingClientRect(), Boolean(fill) && fill.fill !== 'none' && +fill.fillOpacity > 0.9 && +getComputedStyle(ground).opacity > 0.9 && !/, 0\)$/.test(fill.fill)]);
  }
  for (const text of figure.querySelectorAll('.textpoint text')) if (seen(text) && text.textContent.trim()) labels.push([text, text.getBoundingClientRect(), false]);
  const inside = (x, y, box, off) => x > box.left + shrunk - off && x < box.right - shrunk + off && y > box.top + 2 + shrunk - off && y < box.bottom - 2 - shrunk + off;
  const meet = (a, b, across, down) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > across && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > down;
  return labels.flatMap(([text, box, grounded], index) => [
    ...(grounded ? [] : lines.filter(([, path, off]) => path.some(([x, y]) => inside(x, y, box, off))).map(([path]) => `${name}: ${text.textContent} | line ${path.closest('.trace, .shapelayer')?.getAttribute('class')} ${getComputedStyle(path).stroke}`)),
    ...marks.filter((mark) => meet(mark, box, 1, 3)).map(() => `${name}: ${text.textContent} | mark`),
    ...labels.slice(index + 1).filter(([, other]) => meet(other, box, 2, 3)).map(([other]) => `${name}: ${text.textContent} | ${other.textContent}`),
  ]);
})
