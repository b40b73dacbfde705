// A person's modal, inside their pane: fields, errors under them, and what was typed kept through every redraw.

import { blocks, failureMark } from "/static/blocks.js";
import { freshId, h, holdFocus } from "/static/dom.js";
import { dateTime, field, readField } from "/static/elements.js";
import { plain, textObject } from "/static/mrkdwn.js";

/** Shows at most one view over a pane. */
export class Modal {
  constructor(pane, act) {
    this.pane = pane;
    this.act = act;
    this.layer = h("div", { class: "layer", hidden: true });
    this.shown = null;
    this.fields = [];
    this.errors = {};
  }

  /** Bring the modal in line with the view that the person has before them, or take it away. */
  show(view, depth, place) {
    if (!view) {
      if (this.shown) this.hide();
      return;
    }
    const failure = place.failures.find((one) => one.container === view.id)?.words ?? "";
    const key = JSON.stringify([view.id, view.hash, depth, place.failures.filter((one) => one.container === view.id)]);
    if (this.key === key) return;
    const typed = this.shown?.id === view.id ? this.typed() : {};
    const opening = this.shown?.id !== view.id;
    if (opening) this.errors = {};
    if (!this.shown) this.goBack = this.pane.keepFocus();
    [this.key, this.shown, this.place, this.failure, this.depth] = [key, view, place, failure, depth];
    this.draw(typed);
    if (opening) this.focusFirst();
  }

  hide() {
    this.shown = this.key = null;
    this.fields = [];
    const here = this.layer.contains(document.activeElement) || document.activeElement === document.body;
    this.layer.hidden = true;
    this.layer.replaceChildren();
    this.pane.setModal(false);
    // Whoever is busy in the other pane by now is left there.
    if (here) this.goBack?.();
    this.goBack = null;
  }

  draw(typed) {
    const view = this.shown;
    const title = freshId("title");
    const place = {
      ...this.place,
      state: view.state.values,
      failure: (blockId, actionId) =>
        this.place.failures.find((one) => one.container === view.id && one.block_id === blockId && one.action_id === actionId)?.words,
      press: (block, element, node, choice) => this.press(block, element, node, choice),
      input: (block) => this.input(block, typed),
    };
    this.fields = [];
    const banner = this.place.failures.find((one) => one.container === view.id && !one.action_id)?.words;
    const form = h("form", { class: "modal", role: "dialog", "aria-modal": "true", "aria-labelledby": title, "data-view": view.id, "data-callback-id": view.callback_id, novalidate: true, submit: (event) => this.submit(event), keydown: (event) => event.key === "Escape" && this.close() },
      h("header", {},
        h("h2", { id: title }, plain(view.title.text)),
        h("button", { type: "button", class: "quiet", "aria-label": "Close", "data-close": true, click: () => this.close() }, this.depth > 1 ? "←" : "✕"),
      ),
      h("div", { class: "modal-body", tabindex: -1 }, failureMark(banner), blocks(view.blocks, place)),
      h("footer", {},
        h("button", { type: "button", class: "button", click: () => this.close() }, view.close ? plain(view.close.text) : "Cancel"),
        view.submit && h("button", { class: "button primary", "data-submit": true }, plain(view.submit.text)),
      ),
    );
    this.release?.();
    this.release = holdFocus(form);
    this.layer.replaceChildren(form);
    this.layer.hidden = false;
    this.pane.setModal(true);
  }

  focusFirst() {
    const fields = this.fields.map(({ node }) => (node.matches(".boxes") ? node.querySelector("input") : node));
    const wrong = fields.find((node) => node?.closest("[aria-invalid]"));
    (wrong ?? fields[0] ?? this.layer.querySelector(".modal-body")).focus();
    if (wrong) this.layer.querySelector(".error").scrollIntoView({ block: "nearest" });
  }

  input(block, typed) {
    const { element } = block;
    const [id, label, hint, fault] = ["field", "label", "hint", "fault"].map(freshId);
    const words = this.errors[block.block_id];
    const described = [block.hint && hint, words && fault].filter(Boolean).join(" ") || null;
    const attributes = {
      id,
      "aria-labelledby": label,
      "aria-describedby": described,
      "aria-invalid": words ? "true" : null,
      "aria-required": block.optional ? null : "true",
      "data-action-id": element.action_id,
      "data-block-id": block.block_id,
    };
    const state = this.shown.state.values[block.block_id]?.[element.action_id];
    const node = field(element, this.place, state, attributes);
    if (words) node.setAttribute("aria-invalid", "true");
    const name = `${block.block_id}/${element.action_id}`;
    if (name in typed) putBack(node, element, typed[name], this.place.reader.tz);
    this.fields.push({ name, element, node });
    if (block.dispatch_action) {
      node.addEventListener("change", () => this.press(block, element, node, readField(element, node, this.place.reader.tz)));
    }
    return h("div", {},
      h("label", { id: label, for: id }, plain(block.label.text), block.optional && h("small", {}, " (optional)")),
      node,
      block.hint && h("small", { id: hint, class: "hint" }, textObject(block.hint, this.place.reader)),
      words && h("p", { id: fault, class: "error", "data-error-for": block.block_id }, words),
    );
  }

  /** Return what stands in the fields, by block_id/action_id. */
  typed() {
    const values = {};
    for (const { name, element, node } of this.fields) {
      const value = readField(element, node, this.place.reader.tz);
      if (value !== undefined) values[name] = value;
    }
    return values;
  }

  async submit(event) {
    event.preventDefault();
    const typed = this.typed();
    const view = this.shown;
    const button = this.layer.querySelector("[data-submit]");
    const result = await this.act({ kind: "submit", values: typed }, button, `Submit ${view.title.text}`);
    if (!result || this.shown?.id !== view.id) return;
    this.errors = result.errors ?? {};
    if (!result.closed) {
      this.draw(typed);
      if (Object.keys(this.errors).length) this.focusFirst();
    }
  }

  press(block, element, node, choice) {
    return this.act({ kind: "press_in_view", block_id: block.block_id, action_id: element.action_id, choice, values: this.typed() }, node, node.textContent);
  }

  close() {
    return this.act({ kind: "close" });
  }
}

function putBack(node, element, value, tz) {
  if (node.matches(".boxes")) {
    const chosen = [value].flat();
    for (const input of node.querySelectorAll("input")) input.checked = chosen.includes(input.value);
  } else if ("value" in node) {
    node.value = (element.type === "datetimepicker" ? dateTime(value, tz) : value) ?? "";
  }
}

/** Ask a person to confirm a press, in a small dialog over their pane. */
export function confirmDialog(layer, confirm, reader, go) {
  const title = freshId("confirm");
  const before = document.activeElement;
  const done = (agreed) => {
    layer.replaceChildren();
    layer.hidden = true;
    if (before?.isConnected) before.focus();
    if (agreed) go();
  };
  const dialog = h("div", { class: "modal confirm", role: "alertdialog", "aria-modal": "true", "aria-labelledby": title, "data-confirm": true, keydown: (event) => event.key === "Escape" && done(false) },
    h("header", {}, h("h2", { id: title }, plain(confirm.title?.text ?? "Are you sure?"))),
    h("div", { class: "modal-body" }, h("p", {}, textObject(confirm.text, reader))),
    h("footer", {},
      h("button", { type: "button", class: "button", "data-deny": true, click: () => done(false) }, plain(confirm.deny?.text ?? "Cancel")),
      h("button", { type: "button", class: `button ${confirm.style ?? "primary"}`, "data-agree": true, click: () => done(true) }, plain(confirm.confirm?.text ?? "Yes")),
    ),
  );
  holdFocus(dialog);
  layer.replaceChildren(dialog);
  layer.hidden = false;
  dialog.querySelector("[data-deny]").focus();
}
