// Text smaller than 12 px, or that stands on the paper with less than 4.5:1.
() => [...document.querySelectorAll('[data-figure]')].flatMap((figure) => {
  const numbers = (color) => color.match(/[\d.]+/g).map(Number);
  const light = (color) => { const [r, g, b] = numbers(color).map((each) => each / 255).map((each) => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const paper = light(getComputedStyle(figure.querySelector('.main-svg')).backgroundColor);
  return [...figure.querySelectorAll('svg text')].filter((text) => text.textContent.trim() && text.getBoundingClientRect().width && !text.closest('.bars, .heatmaplayer, .hoverlayer, .modebar')).flatMap((text) => [text, ...text.querySelectorAll('tspan')]).filter((text) => {
    const style = getComputedStyle(text), ink = light(style.fill);
    return parseFloat(style.fontSize) < 12 || (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05) < 4.5;
  }).map((text) => `${figure.dataset.figure}: ${text.textContent} ${getComputedStyle(text).fontSize} ${getComputedStyle(text).fill}`);
})
