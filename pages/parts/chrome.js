// A link past bar and sidebar for the keyboard, and Escape, which leaves a presented page.
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
  const leave = (event) => {
    if (event.key === "Escape" && data.presented) document.querySelector(".st-key-leave button")?.click();
  };
  document.addEventListener("keydown", leave);
  return () => document.removeEventListener("keydown", leave);
}
