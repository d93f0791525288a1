// A link past bar and sidebar for the keyboard, one name for each slider, Escape, which leaves a presented page, and
// menus that stay open.

const ACTS = ["pointerdown", "pointerup", "click", "keydown", "wheel", "touchmove"];
const CLOSING = new Set(["Enter", "Escape", "Tab"]);
const ACTING = 500, SCROLLING = 1000; // [ms] that what a reader does may take to close a menu, and a scroll

// A menu stays open until the reader closes it. React Aria, of which Streamlit's menus are made, closes one too when a
// rerun sets another value in its box (useComboBoxState) or scrolls what it stands in (useCloseOnScroll). Closed by no
// act of the reader it is opened again, before that is painted.
function keepMenus() {
  let acted = -Infinity;
  const isBox = (node) => node.role === "combobox";
  const act = ({ type, key, target, offsetX }) => {
    const now = performance.now(), scrolls = type === "pointerdown" ? offsetX >= target.clientWidth : type === "wheel" || type === "touchmove";
    if (scrolls) acted = now + SCROLLING - ACTING; // by hand, or on a scrollbar
    else if (type === "keydown" ? CLOSING.has(key) : !isBox(target)) acted = Math.max(acted, now);
  };
  const watch = new MutationObserver((changes) => {
    for (const { target, oldValue } of changes) {
      if (!isBox(target)) continue;
      if (target.ariaExpanded === "true") acted = -Infinity;
      else if (oldValue === "true" && target === document.activeElement && document.hasFocus() && performance.now() - acted > ACTING)
        target.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }));
    }
  });
  for (const type of ACTS) addEventListener(type, act, { capture: true, passive: true });
  watch.observe(document.body, { attributes: true, attributeFilter: ["aria-expanded"], attributeOldValue: true, subtree: true });
  return () => {
    for (const type of ACTS) removeEventListener(type, act, true);
    watch.disconnect();
  };
}

function begin() {
  let skip = document.querySelector("body > .skip");
  if (!skip) {
    skip = document.createElement("a");
    skip.className = "skip";
    skip.href = "#answer";
    skip.textContent = "Skip to the answer";
    skip.addEventListener("click", (event) => {
      event.preventDefault();
      const heading = document.querySelector('[data-testid="stMain"] h1');
      if (!heading) return;
      heading.tabIndex = -1;
      heading.focus();
    });
    document.body.prepend(skip);
  }
  // Streamlit's sliders name themselves twice: by the label and by their group, which has the same one.
  const once = () => document.querySelectorAll('input[type="range"][aria-label][aria-labelledby]').forEach((input) => input.removeAttribute("aria-labelledby"));
  const SIDEBAR = '[data-testid="stSidebar"]';
  const sliders = new MutationObserver(() => (once(), !watched?.isConnected && watch()));
  let watched = null; // the sidebar; until it is there, the whole page
  const watch = () => {
    watched = document.querySelector(SIDEBAR);
    sliders.disconnect();
    sliders.observe(watched ?? document.body, { childList: true, subtree: true });
    once();
  };
  watch();
  const leave = (event) => {
    if (event.key === "Escape") document.querySelector(".st-key-leave button")?.click(); // a presented page has it
  };
  document.addEventListener("keydown", leave);
  const letMenus = keepMenus();
  return () => {
    sliders.disconnect();
    document.removeEventListener("keydown", leave);
    letMenus();
  };
}

// Begun once a page: Streamlit calls this again when the theme changes, and runs only the last clean-up, when the page goes.
export default function ({ parentElement }) {
  const place = parentElement.firstElementChild;
  return (place.end ??= begin());
}
