// A link past bar and sidebar for the keyboard, one name for each slider, and Escape, which leaves a presented page.
export default function ({ data }) {
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
    if (event.key === "Escape" && data.presented) document.querySelector(".st-key-leave button")?.click();
  };
  document.addEventListener("keydown", leave);
  return () => {
    sliders.disconnect();
    document.removeEventListener("keydown", leave);
  };
}
