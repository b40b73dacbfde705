// A button that opens a small menu, worked with the arrow keys as menus are.

import { freshId, h } from "/static/dom.js";

/** Make a menu button; `entries` are {words, attributes, go}, and `go(opener)` is called once the menu has closed. */
export function menuButton(entries, { label, name, attributes = {} }) {
  const id = freshId("menu");
  const item = ({ words, attributes: own, go }) => h("button", { type: "button", role: "menuitem", tabindex: -1, ...own, click: () => { shut(); go(opener); } }, words);
  const items = h("div", { class: "menu", id, role: "menu", "aria-label": name, hidden: true }, entries.map(item));
  const opener = h("button", { type: "button", class: "quiet menu-open", "aria-haspopup": "menu", "aria-expanded": "false", "aria-controls": id, "aria-label": label, ...attributes, click: () => (items.hidden ? open() : shut()) }, "•••");
  const hide = () => {
    items.hidden = true;
    opener.setAttribute("aria-expanded", "false");
  };
  const open = () => {
    items.hidden = false;
    opener.setAttribute("aria-expanded", "true");
    items.firstChild.focus();
  };
  const shut = () => {
    hide();
    opener.focus({ preventScroll: true });
  };
  const box = h("span", { class: "menu-box" }, opener, items);
  box.addEventListener("keydown", (event) => {
    if (items.hidden) return;
    const all = [...items.children];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) all[(all.indexOf(document.activeElement) + step + all.length) % all.length].focus();
    else if (event.key === "Escape") shut();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  box.addEventListener("focusout", (event) => !items.hidden && !box.contains(event.relatedTarget) && hide());
  return box;
}
