// A figure as a file, PNG or SVG, in the page's own font. A picture loses the fonts of its page, and in another font
// words outgrow their backgrounds, so the font is put into the file.

const asDataUrl = (blob) => new Promise((resolve) => {
  const reader = new FileReader();
  reader.onload = () => resolve(reader.result);
  reader.readAsDataURL(blob);
});

// The page's rule for an upright font, with the font itself in it; empty where the page has none.
async function fontRule(family) {
  for (const sheet of document.styleSheets) {
    for (const rule of sheet.href && new URL(sheet.href).origin !== location.origin ? [] : sheet.cssRules) {
      if (!(rule instanceof CSSFontFaceRule) || rule.style.fontStyle === "italic" || rule.style.fontFamily.replaceAll('"', "") !== family) continue;
      const [, address] = rule.style.src.match(/url\("?([^")]+)"?\)/) ?? [];
      const answer = address && (await fetch(new URL(address, sheet.href ?? document.baseURI), { cache: "force-cache" }));
      if (answer?.ok) return `@font-face { font-family: "${family}"; font-weight: 100 900; src: url(${await asDataUrl(await answer.blob())}); }`;
    }
  }
  return "";
}

async function pictureWithFont(figure, options) {
  const url = await window.Plotly.toImage(figure, { ...options, format: "svg", scale: 1 });
  const svg = decodeURIComponent(url.slice(url.indexOf(",") + 1)), head = svg.indexOf(">") + 1;
  const [family] = figure._fullLayout.font.family.split(","); // the first is the page's own
  return new Blob([svg.slice(0, head), `<style>${await fontRule(family)}</style>`, svg.slice(head)], { type: "image/svg+xml" });
}

async function asPng(svg, { width, height, scale }) {
  const image = new Image(width, height), canvas = document.createElement("canvas");
  image.src = await asDataUrl(svg);
  await image.decode();
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

async function save(figure, options, format) {
  const svg = await pictureWithFont(figure, options);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(format === "svg" ? svg : await asPng(svg, options));
  link.download = `${options.filename}.${format}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // [ms] long after a browser has taken it
}

// In place of Plotly's own button, one for a PNG and one for the same figure as SVG.
function withPictures(Plotly, { toImageButtonOptions: options, modeBarButtonsToRemove: removed, ...config }) {
  const button = (format, icon, title) => ({ name: format, title, icon, click: (figure) => save(figure, options, format) });
  return {
    ...config,
    modeBarButtonsToRemove: [...removed, "toImage"],
    modeBarButtonsToAdd: [button("png", Plotly.Icons.camera, "Download plot as a PNG"), button("svg", Plotly.Icons.disk, "Download plot as an SVG")],
  };
}
