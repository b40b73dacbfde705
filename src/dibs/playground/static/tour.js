// The guided tour: one step at a time, each ticked off by the playground once it is seen to have happened.

import { h } from "/static/dom.js";
import { remember, remembered } from "/static/remembered.js";

export class Tour {
  /** `act(what, node)` carries out an act that belongs to nobody. */
  constructor(root, toggle, act) {
    [this.root, this.toggle, this.act] = [root, toggle, act];
    this.open = remembered("tour-open", true);
    this.at = remembered("tour-step", 0);
    this.steps = [];
    this.known = "";
    toggle.addEventListener("click", () => this.setOpen(!this.open));
    root.addEventListener("keydown", (event) => event.key === "Escape" && this.setOpen(false));
  }

  setOpen(open) {
    this.open = open;
    remember("tour-open", open);
    this.draw();
    if (!open) this.toggle.focus();
    else this.root.querySelector("[aria-current]")?.focus();
  }

  go(number) {
    this.at = number;
    remember("tour-step", number);
    this.draw();
    this.root.querySelector("[aria-current]")?.focus();
  }

  async startOver() {
    await this.act({ kind: "begin_tour" });
    this.go(0);
  }

  show(steps) {
    const key = JSON.stringify(steps);
    if (key === this.known) return;
    const before = this.steps;
    [this.known, this.steps] = [key, steps];
    if (before.length !== steps.length) this.at = this.whereToGoOn();
    this.draw();
    const news = before.length === steps.length ? steps.filter((step, number) => step.done && !before[number].done) : [];
    if (news.length && this.open) this.status.textContent = `Ticked off: ${news.map((step) => step.title).join(", ")}.`;
  }

  /** Where this person was, or the first step after it that has not happened yet. */
  whereToGoOn() {
    const last = Math.max(this.steps.length - 1, 0);
    const next = this.steps.findIndex((step, number) => number >= this.at && !step.done);
    return next === -1 ? last : next;
  }

  build() {
    this.list = h("ol", { class: "tour-steps" });
    this.body = h("div", { class: "tour-body" });
    this.status = h("p", { class: "unseen", role: "status", "data-tour-status": true });
    this.count = h("small", {});
    this.root.replaceChildren(
      h("header", {},
        h("h2", { id: "tour-title" }, "A short tour"),
        this.count,
        this.list,
        h("button", { type: "button", class: "quiet", "data-tour-again": true, click: () => this.startOver() }, "Start over"),
        h("button", { type: "button", class: "quiet", "data-tour-close": true, "aria-label": "Close the tour", click: () => this.setOpen(false) }, "✕"),
      ),
      this.body, this.status,
    );
  }

  draw() {
    const there = this.steps.length > 0;
    this.toggle.hidden = !there;
    this.toggle.setAttribute("aria-expanded", String(this.open));
    this.root.hidden = !there || !this.open;
    if (this.root.hidden) return;
    if (!this.list) this.build();
    const done = this.steps.filter((step) => step.done).length;
    this.count.textContent = `${done} of ${this.steps.length} done`;
    this.drawSteps();
    this.drawBody(this.steps[this.at]);
  }

  // The buttons stay the same nodes, so that nobody's focus is lost when a step is ticked off.
  drawSteps() {
    while (this.list.children.length > this.steps.length) this.list.lastChild.remove();
    this.steps.forEach((step, number) => {
      const item = this.list.children[number] ?? this.list.appendChild(h("li", {}, h("button", { type: "button", "data-tour-step": String(number), click: () => this.go(number) })));
      const button = item.firstChild;
      button.dataset.done = String(step.done);
      if (number === this.at) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
      button.setAttribute("aria-label", `Step ${number + 1}, ${step.title}${step.done ? ", done" : ""}`);
      const words = `${step.done ? "✓" : number + 1} ${step.title}`;
      if (button.textContent !== words) button.replaceChildren(h("span", { class: "tick" }, step.done ? "✓" : String(number + 1)), h("span", { class: "tour-name" }, ` ${step.title}`));
    });
  }

  drawBody(step) {
    const last = this.at === this.steps.length - 1;
    const key = JSON.stringify([step, this.at]);
    if (this.drawnBody === key) return;
    const focused = this.body.contains(document.activeElement) ? document.activeElement.dataset.tourPress : null;
    this.drawnBody = key;
    this.body.dataset.done = String(step.done);
    this.body.replaceChildren(
      h("p", { class: "tour-do", "data-tour-do": true }, h("strong", {}, `${step.title}. `), step.do),
      h("p", { class: "tour-see", "data-tour-see": true }, step.done && h("strong", { class: "tour-done" }, "✓ It happened. "), step.see),
      h("p", { class: "tour-go" },
        step.lever && h("button", { type: "button", class: "button", "data-lever": step.lever, "data-tour-press": "lever", click: (event) => this.act({ kind: "pull_lever", label: step.lever }, event.currentTarget) }, step.lever),
        last
          ? step.done && h("span", {}, "That was the tour. Everything here stays open to try.")
          : h("button", { type: "button", class: `button ${step.done ? "primary" : ""}`, "data-tour-next": true, "data-tour-press": "next", click: () => this.go(this.at + 1) }, step.done ? "Next" : "Skip"),
      ),
    );
    if (focused) this.body.querySelector(`[data-tour-press="${focused}"]`)?.focus({ preventScroll: true });
  }
}
