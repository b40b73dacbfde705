// One person's side of the page: who they are, what they see, and what they do.

import { blocks } from "/static/blocks.js";
import { h } from "/static/dom.js";
import { Modal, confirmDialog } from "/static/modal.js";
import { mrkdwn } from "/static/mrkdwn.js";

const HOME = "home";
const NEAR_THE_END = 80;
const PERMALINK = /^https:\/\/playground\.invalid\/archives\/(\w+)\/p(\d+)(\d{6})$/;

export class Pane {
  /** `act(pane, what, node, label)` carries out an act; `moved()` is called when the pane looks elsewhere. */
  constructor(root, act, moved) {
    this.root = root;
    this.side = root.dataset.pane;
    this.send = act;
    this.moved = moved;
    this.user = "";
    this.channel = "";
    this.drawn = new Map();
    this.lastSeen = {};
    this.modal = new Modal(this, (what, node, label) => this.act(what, node, label));
    this.build();
  }

  build() {
    this.avatar = h("span", { class: "avatar", "aria-hidden": "true" });
    this.personSelect = h("select", { "data-select": "person", "aria-label": "You are", change: () => this.become(this.personSelect.value) });
    this.channelSelect = h("select", { "data-select": "channel", "aria-label": "Channel", change: () => this.lookAt(this.channelSelect.value) });
    this.hint = h("p", { class: "armed-hint", role: "status", "data-armed-hint": true, hidden: true });
    this.list = h("div", { class: "messages", role: "log", "aria-label": "Messages", tabindex: 0 });
    this.input = h("input", { "data-composer": true, autocomplete: "off", list: "commands", enterkeyhint: "send" });
    this.sendButton = h("button", { class: "button primary", "data-send": true }, "Send");
    this.composer = h("form", { class: "composer", submit: (event) => this.write(event) }, this.input, this.sendButton);
    this.asking = h("div", { class: "layer", hidden: true });
    this.content = h("div", { class: "pane-content" },
      h("header", { class: "pane-top" },
        this.avatar,
        h("label", { class: "who" }, h("span", {}, "You are"), this.personSelect),
        h("label", { class: "where" }, h("span", {}, "in"), this.channelSelect),
      ),
      this.hint,
      this.list,
      this.composer,
    );
    this.root.append(this.content, this.modal.layer, this.asking);
    this.root.addEventListener("click", (event) => this.follow(event));
  }

  /** Choose a person and a channel for the first time. */
  begin(user, channel) {
    this.user = user;
    this.channel = channel;
  }

  become(user) {
    this.user = user;
    this.forget();
    this.moved(this);
  }

  lookAt(channel) {
    this.channel = channel;
    this.forget();
    if (channel === HOME) this.act({ kind: "home" });
    this.moved(this);
  }

  /** Take a link to a message to the message itself. */
  follow(event) {
    const [, channel, seconds, micros] = PERMALINK.exec(event.target.closest("a")?.href ?? "") ?? [];
    if (!channel) return;
    event.preventDefault();
    this.wanted = `${seconds}.${micros}`;
    if (channel !== this.channel) this.lookAt(channel);
    else this.showWanted();
  }

  showWanted() {
    const found = this.list.querySelector(`[data-ts="${this.wanted}"]`);
    if (!found) return;
    this.wanted = null;
    found.scrollIntoView({ block: "center" });
    found.tabIndex = -1;
    found.focus({ preventScroll: true });
    found.classList.remove("found");
    requestAnimationFrame(() => found.classList.add("found"));
  }

  forget() {
    this.drawn.clear();
    this.list.replaceChildren();
    this.modal.hide();
    this.asking.replaceChildren();
    this.asking.hidden = true;
  }

  act(what, node, label) {
    return this.send(this, { user: this.user, channel: this.channel, ...what }, node, label);
  }

  setModal(open) {
    this.content.inert = open;
  }

  /** Bring the pane in line with what its person sees now. */
  show(world, seen) {
    this.world = world;
    const person = world.people.find((one) => one.id === this.user);
    const reader = {
      tz: person.tz || Intl.DateTimeFormat().resolvedOptions().timeZone,
      personName: (id) => world.people.find((one) => one.id === id)?.name ?? id,
      channelName: (id) => world.channels.find((one) => one.id === id)?.name ?? "",
    };
    this.place = { user: this.user, people: world.people, channels: world.channels, reader, failures: seen.failures, confirm: (confirm, go) => confirmDialog(this.asking, confirm, reader, go) };
    this.root.dataset.person = this.user;
    this.root.dataset.channel = this.channel;
    this.root.setAttribute("aria-label", `What ${person.name} sees`);
    this.showTop(person, seen);
    if (this.channel === HOME) this.showHome(seen.home);
    else this.showMessages(seen.messages);
    this.modal.show(seen.view, seen.depth, this.place);
  }

  showTop(person, seen) {
    this.avatar.textContent = person.name.slice(0, 1);
    const people = this.world.people.filter((one) => !one.is_bot);
    options(this.personSelect, people.map((one) => [one.id, one.name + (one.foreign ? " (another workspace)" : "") + (one.deleted ? " (deactivated)" : "")]), this.user);
    this.lastSeen[this.channel] = seen.latest[this.channel];
    const news = (id) => (id !== this.channel && seen.latest[id] && seen.latest[id] !== this.lastSeen[id] ? "● " : "");
    const channels = this.world.channels.filter((one) => !one.is_im || one.members.includes(this.user));
    const name = (one) => (one.is_im ? `${this.world.bot.name} (direct message)` : `#${one.name}`);
    const places = channels.map((one) => [one.id, news(one.id) + name(one) + (one.is_archived ? " (archived)" : "")]);
    options(this.channelSelect, [...places, [HOME, `${this.world.bot.name} (home)`]], this.channel);
    const here = channels.find((one) => one.id === this.channel);
    this.composer.hidden = !here;
    const example = this.world.commands[0]?.[0];
    const where = here?.is_im ? this.world.bot.name : `#${here?.name}`;
    this.input.setAttribute("aria-label", `Message ${where}`);
    this.input.placeholder = `Message ${where}, or type a command${example ? ` such as ${example}` : ""}`;
  }

  showHome(view) {
    const key = JSON.stringify([view?.hash, this.place.failures]);
    if (this.drawn.get(HOME) === key) return;
    this.drawn.set(HOME, key);
    const place = this.placeOf(view?.id, (block, element, node, choice) =>
      this.act({ kind: "press_in_view", home: true, block_id: block.block_id, action_id: element.action_id, choice }, node, node.textContent));
    this.list.replaceChildren(h("article", { class: "message home", "data-home": true }, view ? blocks(view.blocks, place) : h("p", {}, `${this.world.bot.name} shows nothing here.`)));
  }

  showMessages(messages) {
    const list = this.list;
    const atEnd = this.isAtEnd() || !this.drawn.size;
    const focused = whereFocusIs(list);
    const kept = new Map();
    let before = null;
    for (const message of messages) {
      const marks = this.place.failures.filter((one) => one.container === message.ts);
      const key = JSON.stringify([message, marks, this.names()]);
      const old = this.drawn.get(message.ts);
      const node = old?.key === key ? old.node : this.message(message, old);
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
    if (atEnd) list.scrollTop = list.scrollHeight;
    if (this.wanted) this.showWanted();
  }

  isAtEnd() {
    return this.list.scrollHeight - this.list.scrollTop - this.list.clientHeight < NEAR_THE_END;
  }

  names() {
    return this.world.people.map((one) => one.name).join();
  }

  message(message, old) {
    const { reader } = this.place;
    const isBot = Boolean(message.bot_id) || message.user === "USLACKBOT";
    const author = message.user === "USLACKBOT" ? "Playground" : reader.personName(message.user);
    const place = this.placeOf(message.ts, (block, element, node, choice) =>
      this.act({ kind: "press", ts: message.ts, block_id: block.block_id, action_id: element.action_id, choice }, node, node.textContent));
    const body = message.blocks ? blocks(message.blocks, place) : h("p", {}, mrkdwn(message.text, reader));
    const time = new Intl.DateTimeFormat(undefined, { timeZone: reader.tz, hour: "numeric", minute: "2-digit" });
    const reply = message.thread_ts && message.thread_ts !== message.ts;
    return h("article", { class: `message ${message.is_ephemeral ? "private" : ""} ${old ? "changed" : "new"}`, "data-ts": message.ts, "data-ephemeral": message.is_ephemeral ? "true" : null, "aria-label": `${author}` },
      message.is_ephemeral && h("p", { class: "only-you" }, h("span", {}, "Only visible to you"), h("button", { type: "button", class: "quiet", "aria-label": "Dismiss", "data-dismiss": true, click: () => this.act({ kind: "dismiss", ts: message.ts }) }, "✕")),
      h("p", { class: "byline" },
        h("span", { class: isBot ? "avatar app" : "avatar", "aria-hidden": "true" }, author.slice(0, 1)),
        h("strong", {}, author),
        isBot && h("small", { class: "tag" }, "app"),
        h("time", {}, time.format(new Date(Number(message.ts) * 1000))),
        reply && h("small", {}, "in a thread"),
        message.edited && h("small", {}, "edited"),
      ),
      h("div", { class: "body" }, body),
    );
  }

  placeOf(container, press) {
    return {
      ...this.place,
      press,
      failure: (blockId, actionId) => this.place.failures.find((one) => one.container === container && one.block_id === blockId && one.action_id === actionId)?.words,
      input: (block) => h("p", { class: "undrawn" }, `The playground does not draw inputs here: ${block.label.text}`),
    };
  }

  /** Say that the other person's press waits for one here. */
  await(words) {
    const atEnd = this.isAtEnd();
    this.hint.hidden = !words;
    this.hint.textContent = words;
    if (atEnd) this.list.scrollTop = this.list.scrollHeight;
  }

  async write(event) {
    event.preventDefault();
    const text = this.input.value.trim();
    if (!text) return;
    const result = await this.act({ kind: "write", text }, this.sendButton, text);
    if (result) this.input.value = "";
  }
}

function options(select, entries, value) {
  const key = JSON.stringify(entries);
  if (select.dataset.key !== key) {
    select.dataset.key = key;
    select.replaceChildren(...entries.map(([id, words]) => h("option", { value: id }, words)));
  }
  select.value = value;
}

function whereFocusIs(list) {
  const active = document.activeElement;
  const article = list.contains(active) ? active.closest("[data-ts]") : null;
  return article && { ts: article.dataset.ts, action: active.dataset.actionId, node: active };
}

// A card that is redrawn under someone's hands keeps their focus: on the same button, or on the card itself.
function putFocus(list, focused) {
  if (!focused || focused.node.isConnected) return;
  const article = list.querySelector(`[data-ts="${focused.ts}"]`);
  const again = focused.action && article?.querySelector(`[data-action-id="${CSS.escape(focused.action)}"]`);
  if (again) again.focus({ preventScroll: true });
  else if (article) {
    article.tabIndex = -1;
    article.focus({ preventScroll: true });
  }
}
