// Building the page's elements without ever parsing text as HTML.

/** Make an element: attributes first (null and false are left out, functions are listeners), then children. */
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key, value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

let lastId = 0;

/** Return an id for an element that a label or a description points at. */
export function freshId(prefix) {
  lastId += 1;
  return `${prefix}-${lastId}`;
}

/** Keep Tab within an element, as a dialog does; return a function that lets it go. */
export function holdFocus(container) {
  const onKey = (event) => {
    if (event.key !== "Tab") return;
    const stops = [...container.querySelectorAll("a[href], button, input, select, textarea, [tabindex='0']")].filter(
      (stop) => !stop.disabled && stop.getClientRects().length,
    );
    if (!stops.length) return;
    const [first, last] = [stops[0], stops[stops.length - 1]];
    if (event.shiftKey && document.activeElement === first) {
      event.preventDefault();
      last.focus();
    } else if (!event.shiftKey && document.activeElement === last) {
      event.preventDefault();
      first.focus();
    }
  };
  container.addEventListener("keydown", onKey);
  return () => container.removeEventListener("keydown", onKey);
}
