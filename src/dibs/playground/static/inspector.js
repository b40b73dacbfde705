// The last presses, and behind each of them what was sent and answered. Nothing is asked for while it is closed.

import { h } from "/static/dom.js";

export class Presses {
  constructor(list, dialog) {
    [this.list, this.dialog] = [list, dialog];
    this.drawn = new Map();
    this.opened = null;
    dialog.addEventListener("close", () => this.closed());
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  }

  show(presses) {
    const kept = new Map(presses.map((one) => [one.name, this.drawn.get(one.name) ?? this.row(one)]));
    const nodes = [...kept.values()].toReversed();
    nodes.forEach((node, index) => this.list.children[index] !== node && this.list.insertBefore(node, this.list.children[index] ?? null));
    while (this.list.children.length > nodes.length) this.list.lastChild.remove();
    this.drawn = kept;
    if (this.opened) this.look();
  }

  row(one) {
    const good = one.status >= 200 && one.status < 300 && !one.words;
    return h("li", { "data-press": true, "data-good": String(good) },
      h("button", { type: "button", "data-inspect": one.name, "aria-haspopup": "dialog", click: () => this.inspect(one) },
        h("span", { class: "press-who" }, one.who),
        h("span", { class: "press-what" }, one.what),
        h("span", { class: "press-status" }, one.status ? `HTTP ${one.status}` : "no answer"),
        h("span", { class: "press-ms" }, `${one.ms} ms`),
        one.words && h("span", { class: "press-words" }, one.words),
      ),
    );
  }

  async inspect(one) {
    this.opened = one.name;
    this.known = "";
    this.dialog.replaceChildren(this.head(`${one.who}: ${one.what}`), h("p", { class: "empty" }, "Looking…"));
    this.dialog.showModal();
    await this.look();
  }

  async look() {
    const name = this.opened;
    const response = await fetch(`/page/press?name=${encodeURIComponent(name)}`).catch(() => null);
    const text = (await response?.text().catch(() => null)) ?? '{"error": "the playground does not answer"}';
    if (name !== this.opened || text === this.known) return;
    this.known = text;
    this.draw(JSON.parse(text));
  }

  closed() {
    const row = this.drawn.get(this.opened);
    this.opened = null;
    this.dialog.replaceChildren();
    row?.querySelector("button").focus();
  }

  head(title) {
    return h("header", {},
      h("h2", { id: "inspector-title" }, title),
      h("button", { type: "button", class: "quiet", "data-close": true, "aria-label": "Close", click: () => this.dialog.close() }, "✕"),
    );
  }

  draw(told) {
    if (told.error) {
      this.dialog.replaceChildren(this.head("Gone"), h("p", { class: "empty" }, `Nothing to show: ${told.error}.`));
      return;
    }
    const open = new Set([...this.dialog.querySelectorAll("details[open]")].map((one) => one.dataset.part));
    const steps = [
      ...told.requests.map((one, number) => ({ ...one, sent: true, part: `request-${number}`, title: number ? "Sent to the bot once more" : `Sent to the bot${one.by_socket ? " by Socket Mode" : ""}` })),
      ...told.calls.map((one, number) => ({ ...one, sent: false, part: `call-${number}`, title: one.method })),
    ].toSorted((one, other) => one.after - other.after);
    this.dialog.replaceChildren(
      this.head(`${told.who}: ${told.what}`),
      h("p", { class: "inspector-words" }, told.words || `Began at ${new Date(told.at * 1000).toLocaleTimeString()}. Times are counted from there. Secrets are hidden.`),
      steps.length ? h("ol", { class: "exchanges" }, steps.map((one) => exchange(one, open))) : h("p", { class: "empty" }, "Nothing went over the wire, or it is not kept any more."),
    );
  }
}

function exchange(one, open) {
  const outcome = one.by_socket && one.status ? "acknowledged" : one.status ? `HTTP ${one.status}` : one.late ? "no answer in time" : "no answer";
  const parts = one.sent ? ["What was sent", "What the bot answered"] : ["What the bot asked", "What it was answered"];
  const bodies = [one.body, one.answer];
  return h("li", { class: one.sent ? "sent" : "came", "data-exchange": one.sent ? "request" : one.method, "data-good": String(one.status === 200 && one.answer?.ok !== false) },
    h("p", { class: "exchange-head" },
      h("span", { class: "exchange-after" }, `${one.after < 0 ? "−" : "+"}${Math.abs(one.after)} ms`),
      h("strong", {}, h("span", { "aria-hidden": "true" }, one.sent ? "→ " : "← "), one.title),
      h("span", { class: "exchange-status" }, `${outcome} · ${one.milliseconds} ms`),
    ),
    parts.map((words, index) => {
      const part = `${one.part}-${index}`;
      return h("details", { "data-part": part, open: open.has(part) }, h("summary", {}, words, " ", h("small", {}, gist(bodies[index]))), h("pre", { tabindex: 0 }, pretty(bodies[index])));
    }),
  );
}

function gist(body) {
  if (body === "") return "nothing";
  if (typeof body === "string") return body.slice(0, 60);
  const words = body.actions?.[0]?.action_id ?? body.command ?? body.event?.type ?? body.view?.callback_id ?? body.error ?? body.text ?? body.type ?? (body.ok ? "ok" : "");
  return String(words).split("\n", 1)[0].slice(0, 60);
}

function pretty(body) {
  return typeof body === "string" ? body || "(nothing)" : JSON.stringify(body, null, 2);
}
