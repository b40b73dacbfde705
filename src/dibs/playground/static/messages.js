// A list of messages, redrawn only where something changed, so that nobody loses their place or their focus.

import { blocks } from "/static/blocks.js";
import { files } from "/static/files.js";
import { h } from "/static/dom.js";
import { menuButton } from "/static/menu.js";
import { mrkdwn } from "/static/mrkdwn.js";

const NEAR_THE_END = 80;

export class MessageList {
  /** `pane` is whose eyes these are; `inThread` is whether the list is that of one thread. */
  constructor(pane, label, { inThread = false } = {}) {
    this.pane = pane;
    this.inThread = inThread;
    this.drawn = new Map();
    // What is new is told by the pane's own live region, in a few words; a log would read whole cards again.
    this.root = h("div", { class: "messages", role: "log", "aria-live": "off", "aria-label": label, id: inThread ? null : `${pane.side}-messages`, tabindex: 0 });
    // Whoever reads the newest still does when something else on the page takes room or gives it back.
    this.atEnd = true;
    this.height = 0;
    this.root.addEventListener("scroll", () => {
      if (this.height === this.root.clientHeight) this.atEnd = this.isAtEnd();
    }, { passive: true });
    new ResizeObserver(() => {
      this.height = this.root.clientHeight;
      if (this.atEnd) this.toEnd();
    }).observe(this.root);
  }

  forget() {
    this.drawn.clear();
    this.root.replaceChildren();
  }

  isAtEnd() {
    return this.root.scrollHeight - this.root.scrollTop - this.root.clientHeight < NEAR_THE_END;
  }

  toEnd() {
    this.root.scrollTop = this.root.scrollHeight;
  }

  find(ts) {
    return this.drawn.get(ts)?.node;
  }

  /** Say whether at least half of a message is in sight, or half of the place there is for it. */
  sees(node) {
    const [seen, own] = [this.root.getBoundingClientRect(), node.getBoundingClientRect()];
    return Math.min(seen.bottom, own.bottom) - Math.max(seen.top, own.top) > Math.min(own.height, seen.height) / 2;
  }

  /** Draw the messages; `replies` are those of threads, by the message that each thread is about. */
  show(messages, replies = new Map()) {
    const list = this.root;
    const atEnd = this.isAtEnd() || !this.drawn.size;
    const focused = whereFocusIs(list);
    const kept = new Map();
    let before = null;
    for (const message of messages) {
      const { world, place } = this.pane;
      const thread = this.inThread ? [] : (replies.get(message.ts) ?? []);
      const marks = place.failures.filter((one) => one.container === message.ts);
      const key = JSON.stringify([message, marks, thread.length, thread.at(-1)?.ts, world.people.map((one) => one.name), world.shortcuts]);
      const old = this.drawn.get(message.ts);
      const node = old?.key === key ? old.node : this.message(message, old, thread);
      if (old && old.node !== node) old.node.remove();
      kept.set(message.ts, { key, node });
      const next = before ? before.nextSibling : list.firstChild;
      if (next !== node) list.insertBefore(node, next);
      before = node;
    }
    for (const [ts, { node }] of this.drawn) if (!kept.has(ts)) node.remove();
    this.drawn = kept;
    if (!messages.length) list.replaceChildren(h("p", { class: "empty" }, "Nothing has been said here yet."));
    else list.querySelector(":scope > .empty")?.remove();
    putFocus(list, focused);
    if (atEnd) this.toEnd();
  }

  message(message, old, thread) {
    const { pane } = this;
    const { reader } = pane.place;
    const isBot = Boolean(message.bot_id) || message.user === "USLACKBOT";
    const author = message.user === "USLACKBOT" ? "Playground" : reader.personName(message.user);
    const place = pane.placeOf(message.ts, (block, element, node, choice) =>
      pane.act({ kind: "press", ts: message.ts, block_id: block.block_id, action_id: element.action_id, choice }, node, node.textContent));
    const body = message.blocks ? blocks(message.blocks, place) : message.text ? h("p", {}, mrkdwn(message.text, reader)) : null;
    const time = new Intl.DateTimeFormat(undefined, { timeZone: reader.tz, hour: "numeric", minute: "2-digit" });
    const clock = time.format(new Date(Number(message.ts) * 1000));
    const isPrivate = Boolean(message.is_ephemeral);
    return h("article", { class: `message ${isPrivate ? "private" : ""} ${old ? "changed" : "new"}`, "data-ts": message.ts, "data-ephemeral": isPrivate ? "true" : null, "aria-label": `${author}, ${clock}${isPrivate ? ", only visible to you" : ""}` },
      isPrivate && h("p", { class: "only-you" }, h("span", {}, "Only visible to you"), h("button", { type: "button", class: "quiet", "aria-label": "Dismiss", "data-dismiss": true, click: () => pane.act({ kind: "dismiss", ts: message.ts }) }, "✕")),
      h("p", { class: "byline" },
        h("span", { class: isBot ? "avatar app" : "avatar", "aria-hidden": "true" }, author.slice(0, 1)),
        h("strong", {}, author),
        isBot && h("small", { class: "tag" }, "app"),
        h("time", {}, clock),
        message.edited && h("small", {}, "edited"),
        !isPrivate && !this.inThread && this.menu(message, author),
      ),
      h("div", { class: "body" }, body),
      message.files && files(message.files, pane.user),
      thread.length > 0 && h("button", { type: "button", class: "quiet thread-open", "data-thread": message.ts, click: (event) => pane.openThread(message.ts, event.currentTarget) }, `${thread.length} ${thread.length === 1 ? "reply" : "replies"}`),
    );
  }

  /** The menu of a message: its thread, and the shortcuts that the app offers for messages. */
  menu(message, author) {
    const { pane } = this;
    const shortcuts = pane.world.shortcuts.filter((one) => one.on_message);
    const entries = [
      { words: "Reply in a thread", attributes: { "data-reply": message.ts }, go: (opener) => pane.openThread(message.ts, opener) },
      ...shortcuts.map((one) => ({
        words: one.name,
        attributes: { "data-shortcut": one.callback_id },
        go: (opener) => pane.act({ kind: "shortcut", ts: message.ts, callback_id: one.callback_id }, opener, one.name),
      })),
    ];
    return menuButton(entries, { label: `More actions on ${author}’s message`, name: "Message actions", attributes: { "data-menu": true } });
  }
}

/** Say which message and which of its buttons has the focus, if one of these does. */
export function whereFocusIs(list) {
  const active = document.activeElement;
  const article = list.contains(active) ? active.closest("[data-ts]") : null;
  return article && { ts: article.dataset.ts, action: active.dataset.actionId, node: active };
}

/** A card that is redrawn under someone's hands keeps their focus: on the same button, or on the card itself. */
export function putFocus(list, focused) {
  if (!focused || (focused.node.isConnected && document.activeElement === focused.node)) return;
  const article = list.querySelector(`[data-ts="${focused.ts}"]`);
  const again = focused.node.isConnected ? focused.node : focused.action && article?.querySelector(`[data-action-id="${CSS.escape(focused.action)}"]`);
  if (again) again.focus({ preventScroll: true });
  else if (article) {
    article.tabIndex = -1;
    article.focus({ preventScroll: true });
  }
}
