// Where a person writes: plain words, or a command with hints on how it goes on.

import { freshId, h } from "/static/dom.js";
import { menuButton } from "/static/menu.js";

const MOST_HINTS = 8;

export class Composer {
  /** `send(text, node)` carries out what was written and answers whether it went; `mark` is the input's data attribute. */
  constructor(send, mark = "data-composer") {
    this.send = send;
    this.commands = [];
    this.active = -1;
    const id = freshId("hints");
    this.input = h("input", {
      [mark]: true, autocomplete: "off", enterkeyhint: "send", role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": id,
      input: () => this.suggest(), keydown: (event) => this.key(event), blur: () => this.close(), focus: () => this.suggest(),
    });
    this.button = h("button", { class: "button primary", [mark.replace("composer", "send")]: true }, "Send");
    this.hints = h("ul", { class: "hints", id, role: "listbox", "aria-label": "Commands", hidden: true, mousedown: (event) => event.preventDefault() });
    this.usage = h("p", { class: "usage", role: "status", "data-usage": true, hidden: true });
    this.form = h("form", { class: "composer", submit: (event) => this.write(event) }, this.hints, this.usage, this.input, this.button);
  }

  /** `shortcuts` are {words, attributes, go} of what can be done from anywhere. */
  show({ hidden, where, commands, shortcuts = [] }) {
    this.commands = commands;
    const key = JSON.stringify(shortcuts);
    if (key !== this.shortcuts) {
      this.shortcuts = key;
      this.menu?.remove();
      this.menu = shortcuts.length ? menuButton(shortcuts, { label: "Shortcuts", name: "Shortcuts", attributes: { "data-shortcuts": true } }) : null;
      if (this.menu) this.input.before(this.menu);
    }
    this.form.hidden = hidden;
    const example = commands[0]?.[0].trim().split(" ")[0];
    this.input.setAttribute("aria-label", `Message ${where}`);
    this.input.placeholder = `Message ${where}${example ? `, or ${example}` : ""}`;
  }

  suggest() {
    const typed = this.input.value.toLowerCase();
    const found = typed.startsWith("/") ? this.commands.filter(([name]) => name.toLowerCase().startsWith(typed) && name.trim() !== typed.trim()) : [];
    const known = this.commands.filter(([name]) => typed && `${typed} `.startsWith(`${name.trim().toLowerCase()} `)).toSorted(([one], [other]) => other.length - one.length)[0];
    this.found = found.slice(0, MOST_HINTS);
    this.active = -1;
    this.hints.replaceChildren(...this.found.map(([name, words], index) =>
      h("li", { id: `${this.hints.id}-${index}`, role: "option", "aria-selected": "false", "data-hint": name, click: () => this.choose(index) }, h("strong", {}, name), h("span", {}, words))));
    this.hints.hidden = !this.found.length;
    this.input.setAttribute("aria-expanded", String(this.found.length > 0));
    this.input.removeAttribute("aria-activedescendant");
    this.usage.hidden = this.found.length > 0 || !known;
    const usage = known ? `${known[0].trim()}: ${known[1]}` : "";
    if (this.usage.textContent !== usage) this.usage.textContent = usage;
  }

  close() {
    this.hints.hidden = this.usage.hidden = true;
    this.active = -1;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  key(event) {
    if (this.hints.hidden) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      this.move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Escape") {
      event.stopPropagation();
      this.close();
    } else if (event.key === "Enter" && this.active >= 0) {
      event.preventDefault();
      this.choose(this.active);
    }
  }

  move(by) {
    const count = this.found.length;
    this.active = this.active < 0 && by < 0 ? count - 1 : (this.active + by + count) % count;
    [...this.hints.children].forEach((option, index) => option.setAttribute("aria-selected", String(index === this.active)));
    this.input.setAttribute("aria-activedescendant", `${this.hints.id}-${this.active}`);
    this.hints.children[this.active].scrollIntoView({ block: "nearest" });
  }

  choose(index) {
    this.input.value = this.found[index][0];
    this.input.focus();
    this.suggest();
  }

  async write(event) {
    event.preventDefault();
    const text = this.input.value.trim();
    if (!text) return;
    this.close();
    const went = await this.send(text, this.button);
    if (went) this.input.value = "";
  }
}
