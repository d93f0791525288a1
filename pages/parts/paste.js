// A box for a text sends what is in it when it is left; after a paste it is left, and entered again.
const listening = Symbol.for("hybrid-pool-sizing.paste");

function pasted(event) {
  const box = event.target;
  if (!(box instanceof HTMLTextAreaElement)) return;
  setTimeout(() => {
    box.blur();
    box.focus({ preventScroll: true });
  }, 50);
}

export default function () {
  if (document[listening]) return;
  document[listening] = true;
  document.addEventListener("paste", pasted);
}
