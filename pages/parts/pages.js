// Links to the pages: a click goes on in this session, and Python says with which address (frame.py), so that what was
// typed a moment ago goes with it. A new window, or a copied address, takes the address that stands now.
export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const data = JSON.parse(new TextDecoder().decode(bytes));
  const place = parentElement.querySelector("nav");
  place.replaceChildren(...data.pages.map(([path, name]) => {
    const link = document.createElement("a");
    link.textContent = name;
    const settle = () => (link.href = new URL(path || ".", location.href).pathname + location.search);
    settle();
    for (const reach of ["pointerenter", "focus"]) link.addEventListener(reach, settle);
    if (name === data.current) link.setAttribute("aria-current", "page");
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
      event.preventDefault();
      if (name !== data.current) setTriggerValue("page", name);
    });
    return link;
  }));
}
