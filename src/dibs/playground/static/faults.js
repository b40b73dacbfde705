// Trouble on purpose: what the next call of the bot should meet, and presses that arrive twice.

import { freshId, h } from "/static/dom.js";

const CALLS = [
  ["response_url", "answer to a press (response_url)"],
  ["chat.update", "redrawn card (chat.update)"],
  ["chat.postMessage", "new message (chat.postMessage)"],
  ["chat.postEphemeral", "private message (chat.postEphemeral)"],
  ["views.open", "opened form (views.open)"],
];

const TROUBLES = [
  ["lost", "arrives, but the bot hears nothing back"],
  ["limited", "meets 429: wait a second"],
  ["broken", "meets an error 500"],
  ["silent", "meets silence and is lost"],
  ["slow", "takes two seconds longer"],
];

export class Faults {
  constructor(root, toggle, act) {
    [this.root, this.toggle, this.act] = [root, toggle, act];
    toggle.setAttribute("aria-expanded", "false");
    toggle.addEventListener("click", () => this.setOpen(root.hidden));
    root.addEventListener("keydown", (event) => event.key === "Escape" && this.setOpen(false));
  }

  setOpen(open) {
    if (open && !this.twice) this.build();
    this.root.hidden = !open;
    this.toggle.setAttribute("aria-expanded", String(open));
    if (open) this.call.focus();
    else this.toggle.focus();
  }

  build() {
    const select = (entries, attributes) => h("select", attributes, entries.map(([value, words]) => h("option", { value }, words)));
    const twice = freshId("twice");
    this.call = select(CALLS, { "aria-label": "The bot’s next call", "data-fault-call": true });
    this.trouble = select(TROUBLES, { "aria-label": "What it meets", "data-fault-trouble": true });
    this.twice = h("input", { type: "checkbox", id: twice, "data-fault-twice": true });
    this.waiting = h("p", { class: "faults-waiting", role: "status", "data-fault-waiting": true });
    this.levers = h("p", { class: "levers" });
    this.clear = h("button", { type: "button", class: "button", "data-fault-clear": true, click: () => this.act({ kind: "clear_faults" }) }, "Take it back");
    this.root.replaceChildren(
      h("header", {},
        h("h2", { id: "faults-title" }, "Trouble on purpose"),
        h("button", { type: "button", class: "quiet", "aria-label": "Close", "data-close": true, click: () => this.setOpen(false) }, "✕"),
      ),
      h("form", { submit: (event) => this.arm(event) },
        h("span", {}, "The bot’s next"), this.call, this.trouble,
        h("button", { class: "button primary", "data-fault-arm": true }, "Arm"), this.clear,
      ),
      h("label", { class: "box", for: twice }, this.twice, h("span", {}, "Deliver every press on a card twice, as Slack may")),
      this.levers,
      this.waiting,
    );
    this.draw();
  }

  arm(event) {
    event.preventDefault();
    return this.act({ kind: "fault", method: this.call.value, trouble: this.trouble.value });
  }

  /** Return an act as it goes out: a press on a card goes twice if that was asked for. */
  applied(what) {
    return what.kind === "press" && this.twice?.checked ? { ...what, deliveries: 2 } : what;
  }

  show({ faults, levers }) {
    this.shown = { faults, levers };
    if (this.twice) this.draw();
  }

  draw() {
    if (!this.shown) return;
    const { faults, levers } = this.shown;
    const words = faults.length ? `Waiting: ${faults.map((one) => `${one.method} ${TROUBLES.find(([name]) => name === one.trouble)?.[1] ?? one.trouble}`).join("; ")}.` : "No trouble is waiting.";
    if (this.waiting.textContent !== words) this.waiting.textContent = words;
    this.clear.disabled = !faults.length;
    const key = JSON.stringify(levers);
    if (this.levers.dataset.key === key) return;
    this.levers.dataset.key = key;
    this.levers.replaceChildren(...levers.map((one) => h("span", { class: "lever" },
      h("button", { type: "button", class: "button", "data-lever": one.label, click: (event) => this.act({ kind: "pull_lever", label: one.label }, event.currentTarget) }, one.label),
      h("small", {}, one.explanation))));
  }
}
