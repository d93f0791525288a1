// Draws the figures once, at the width they were laid out for, and lets them scale with the page and the paper.
for (const [name, figure] of Object.entries(JSON.parse(document.getElementById("figures").textContent))) {
  const place = document.querySelector(`figure[data-figure="${name}"]`);
  const { width, height } = figure.layout;
  place.replaceChildren(); // the sentence for where no script runs
  Plotly.newPlot(place, figure.data, figure.layout, { staticPlot: true }).then(() => {
    const frame = place.querySelector(".svg-container");
    frame.style.width = "100%";
    frame.style.height = "auto";
    frame.style.aspectRatio = `${width} / ${height}`;
    for (const drawing of place.querySelectorAll(".main-svg")) {
      drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
      drawing.setAttribute("width", "100%");
      drawing.setAttribute("height", "100%");
    }
    place.dataset.drawn = "true";
  });
}
