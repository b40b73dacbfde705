// One person's side of the page: who they are, what they see, and what they do.

import { blocks } from "/static/blocks.js";
import { Composer } from "/static/composer.js";
import { h } from "/static/dom.js";
import { MessageList, putFocus, whereFocusIs } from "/static/messages.js";
import { Modal, confirmDialog } from "/static/modal.js";
import { remember, remembered } from "/static/remembered.js";

const HOME = "home";
// The newest message that each person has seen in each channel, whichever pane they were in.
const lastSeen = remembered("last-seen", {});
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
    this.told = null;
    this.thread = "";
    this.modal = new Modal(this, (what, node, label) => this.act(what, node, label));
    this.build();
  }

  build() {
    this.avatar = h("span", { class: "avatar", "aria-hidden": "true" });
    this.personSelect = h("select", { "data-select": "person", "aria-label": "You are", change: () => this.become(this.personSelect.value) });
    this.channelSelect = h("select", { "data-select": "channel", "aria-label": "Channel", change: () => this.lookAt(this.channelSelect.value) });
    this.hint = h("p", { class: "armed-hint", role: "status", "data-armed-hint": true, hidden: true });
    this.unread = h("p", { class: "unread", role: "status", "data-unread": true, hidden: true });
    this.live = h("p", { class: "unseen", role: "status", "data-announcement": true });
    this.list = new MessageList(this, "Messages");
    this.list.root.addEventListener("scroll", () => this.checkPeek(), { passive: true });
    this.peek = h("button", { type: "button", class: "peek", "data-peek": true, hidden: true, click: () => this.showPeeked() });
    this.home = h("div", { class: "messages", role: "region", "aria-label": "Home", tabindex: 0, hidden: true });
    this.composer = new Composer((text, node) => this.write(text, node));
    this.threadList = new MessageList(this, "Thread", { inThread: true });
    this.threadComposer = new Composer((text, node) => this.write(text, node, this.thread), "data-thread-composer");
    this.threadPart = h("section", { class: "thread", "aria-label": "Thread", "data-thread-pane": true, hidden: true, keydown: (event) => event.key === "Escape" && this.closeThread() },
      h("header", {}, h("h2", {}, "Thread"), h("button", { type: "button", class: "quiet", "data-thread-close": true, click: () => this.closeThread() }, "Back")),
      this.threadList.root,
      this.threadComposer.form,
    );
    this.asking = h("div", { class: "layer", hidden: true });
    this.content = h("div", { class: "pane-content" },
      h("header", { class: "pane-top" },
        this.avatar,
        h("label", { class: "who" }, h("span", {}, "You are"), this.personSelect),
        h("label", { class: "where" }, h("span", {}, "in"), this.channelSelect),
      ),
      this.hint,
      this.unread,
      this.list.root,
      this.home,
      this.peek,
      this.composer.form,
      this.threadPart,
      this.live,
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
    const thread = this.threads?.find((one) => one.ts === this.wanted)?.thread_ts ?? "";
    if (thread !== this.thread) this.openThread(thread);
    const found = (thread ? this.threadList : this.list).find(this.wanted);
    if (!found) return;
    this.wanted = null;
    found.scrollIntoView({ block: "center" });
    found.tabIndex = -1;
    found.focus({ preventScroll: true });
    found.classList.remove("found");
    requestAnimationFrame(() => found.classList.add("found"));
  }

  forget() {
    this.list.forget();
    this.home.replaceChildren();
    this.homeKey = this.told = this.peeked = null;
    this.peek.hidden = true;
    this.closeThread({ quietly: true });
    this.modal.hide();
    this.asking.replaceChildren();
    this.asking.hidden = true;
  }

  act(what, node, label) {
    this.hidePeek();
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
    const atHome = this.channel === HOME;
    this.home.hidden = !atHome;
    this.list.root.hidden = atHome || Boolean(this.thread);
    if (atHome) this.showHome(seen.home);
    else this.showMessages(seen.messages);
    this.announce(seen.messages);
    this.modal.show(seen.view, seen.depth, this.place);
  }

  showTop(person, seen) {
    this.avatar.textContent = person.name.slice(0, 1);
    const people = this.world.people.filter((one) => !one.is_bot);
    options(this.personSelect, people.map((one) => [one.id, one.name + (one.foreign ? " (another workspace)" : "") + (one.deleted ? " (deactivated)" : "")]), this.user);
    const mark = (id) => `${this.user}/${id}`;
    const latest = seen.latest[this.channel];
    if (latest && lastSeen[mark(this.channel)] !== latest) {
      lastSeen[mark(this.channel)] = latest;
      remember("last-seen", lastSeen);
    }
    const isNew = (id) => id !== this.channel && seen.latest[id] && seen.latest[id] !== lastSeen[mark(id)];
    const news = (id) => (isNew(id) ? "● " : "");
    const channels = this.world.channels.filter((one) => !one.is_im || one.members.includes(this.user));
    const name = (one) => (one.is_im ? `${this.world.bot.name} (direct message)` : `#${one.name}`);
    const places = channels.map((one) => [one.id, news(one.id) + name(one) + (one.is_archived ? " (archived)" : "")]);
    const home = this.world.home_tab ? [[HOME, `${this.world.bot.name} (home)`]] : [];
    options(this.channelSelect, [...places, ...home], this.channel);
    const here = channels.find((one) => one.id === this.channel);
    const where = here?.is_im ? this.world.bot.name : `#${here?.name}`;
    this.showUnread(channels.find((one) => one.is_im && isNew(one.id))?.id ?? "");
    this.composer.show({ hidden: !here || Boolean(this.thread), where, commands: this.world.commands, shortcuts: this.shortcuts() });
    this.threadComposer.show({ hidden: false, where: "the thread", commands: [] });
  }

  /** Say that the bot wrote to this person directly, as a client does wherever one is looking; "" for nothing new. */
  showUnread(channel) {
    if (this.unread.hidden !== Boolean(channel) && this.unreadIn === channel) return;
    this.unreadIn = channel;
    this.unread.hidden = !channel;
    this.unread.replaceChildren(...(channel ? [h("button", { type: "button", class: "quiet", click: () => this.readUnread(channel) }, h("span", { "aria-hidden": "true" }, "● "), `New direct message from ${this.world.bot.name}`)] : []));
  }

  readUnread(channel) {
    this.lookAt(channel);
    this.list.root.focus({ preventScroll: true });
  }

  /** What the app offers from anywhere, for the menu beside the composer. */
  shortcuts() {
    return this.world.shortcuts.filter((one) => !one.on_message).map((one) => ({
      words: one.name,
      attributes: { "data-shortcut": one.callback_id },
      go: (opener) => this.act({ kind: "shortcut", callback_id: one.callback_id }, opener, one.name),
    }));
  }

  showHome(view) {
    const key = JSON.stringify([view?.hash, this.place.failures]);
    if (this.homeKey === key) return;
    this.homeKey = key;
    const focused = document.activeElement?.dataset.actionId;
    const within = this.home.contains(document.activeElement);
    const place = this.placeOf(view?.id, (block, element, node, choice) =>
      this.act({ kind: "press_in_view", home: true, block_id: block.block_id, action_id: element.action_id, choice }, node, node.textContent));
    this.home.replaceChildren(h("article", { class: "message home", "data-home": true }, view ? blocks(view.blocks, place) : h("p", {}, `${this.world.bot.name} shows nothing here.`)));
    if (within) (this.home.querySelector(`[data-action-id="${CSS.escape(focused ?? "")}"]`) ?? this.home).focus({ preventScroll: true });
  }

  showMessages(messages) {
    const isReply = (one) => one.thread_ts && one.thread_ts !== one.ts && !one.is_ephemeral;
    this.threads = messages.filter(isReply);
    const replies = Map.groupBy(this.threads, (one) => one.thread_ts);
    this.list.show(messages.filter((one) => !isReply(one)), replies);
    if (this.thread) {
      const parent = messages.find((one) => one.ts === this.thread);
      if (parent) this.threadList.show([parent, ...(replies.get(this.thread) ?? [])]);
      else this.closeThread();
    }
    if (this.wanted) this.showWanted();
  }

  /** Tell what only this person was told, since it appears at the end of a list that they may be far from. */
  announce(messages) {
    const mine = messages.filter((one) => one.is_ephemeral);
    const news = this.told ? mine.filter((one) => !this.told.has(one.ts)) : [];
    this.told = new Set(mine.map((one) => one.ts));
    const words = news.map((one) => this.list.find(one.ts)?.querySelector(".body").innerText ?? "").join(" ");
    if (words) {
      this.live.textContent = `Only visible to you: ${words}`;
      this.peeked = news.at(-1).ts;
      this.peek.replaceChildren(h("small", {}, "Only visible to you ↓"), h("span", {}, words));
    }
    this.checkPeek();
  }

  /** Keep the peek at a private message while that message itself is out of sight. */
  checkPeek() {
    const found = this.peeked && this.list.find(this.peeked);
    if (!found || this.list.sees(found)) this.peeked = null;
    this.peek.hidden = !this.peeked;
  }

  /** Whoever acts again has read the last answer, or has no need to; and soon it may be true no longer. */
  hidePeek() {
    this.peeked = null;
    this.checkPeek();
  }

  showPeeked() {
    const { peeked } = this;
    this.closeThread();
    const found = this.list.find(peeked);
    found?.scrollIntoView({ block: "end" });
    found?.querySelector("[data-dismiss]").focus({ preventScroll: true });
    this.checkPeek();
  }

  /** Show one thread in the place of the channel, as a narrow window does; "" goes back to the channel. */
  openThread(ts, opener) {
    if (!ts) {
      this.closeThread();
      return;
    }
    [this.thread, this.threadOpener] = [ts, opener];
    this.threadList.forget();
    this.threadPart.hidden = false;
    this.list.root.hidden = this.composer.form.hidden = true;
    this.moved(this);
    this.threadComposer.input.focus();
  }

  closeThread({ quietly = false } = {}) {
    if (!this.thread) return;
    const { thread, threadOpener: opener } = this;
    this.thread = "";
    this.threadPart.hidden = true;
    this.threadList.forget();
    this.list.root.hidden = this.composer.form.hidden = false;
    if (quietly) return;
    this.list.find(thread)?.scrollIntoView({ block: "center" });
    const again = opener?.isConnected ? opener : this.list.find(thread)?.querySelector("[data-thread]");
    (again ?? this.list.root).focus({ preventScroll: true });
  }

  /** Remember where the focus is, and return what brings it back there or close to it. */
  keepFocus() {
    const before = document.activeElement;
    const place = whereFocusIs(this.list.root);
    return () => {
      if (before?.isConnected && !before.closest("[hidden]") && before !== document.body) before.focus();
      else if (place) putFocus(this.list.root, place);
      else this.list.root.focus({ preventScroll: true });
    };
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
    const atEnd = this.list.isAtEnd();
    this.hint.hidden = !words;
    this.hint.textContent = words;
    if (atEnd) this.list.toEnd();
  }

  /** Send a message or a command, and show the end of the list, where its answer will be. */
  async write(text, node, thread = "") {
    (thread ? this.threadList : this.list).toEnd();
    return Boolean(await this.act({ kind: "write", text, thread }, node, text));
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
