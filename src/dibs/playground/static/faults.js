// Trouble on purpose: what the next call of the bot, or the next request to it, should meet.

import { h } from "/static/dom.js";

const CALLS = {
  response_url: "answer to a press (response_url)",
  "chat.update": "redrawn card (chat.update)",
  "chat.postMessage": "new message (chat.postMessage)",
  "chat.postEphemeral": "private message (chat.postEphemeral)",
  "views.open": "opened form (views.open)",
  upload_url: "uploaded file (its upload URL)",
  "files.completeUploadExternal": "shared file (files.completeUploadExternal)",
};

const REQUESTS = {
  interactive: "press or form",
  slash_commands: "command",
  events_api: "event",
};

const OF_CALLS = {
  lost: "arrives, but the bot hears nothing back",
  limited: "meets 429: wait a second",
  broken: "meets an error 500",
  garbage: "is answered with garbage",
  silent: "meets silence and is lost",
  slow: "takes two seconds longer",
};

const OF_REQUESTS = {
  twice: "is delivered twice",
  unanswered: "reaches the bot, but its answer is lost",
};

const OF_EVENTS = { ...OF_REQUESTS, late: "comes after the one that follows it" };

const JUMPS = { 60: "a minute", 600: "ten minutes", 3600: "an hour", 86400: "a day" };

const PARTINGS = {
  cut: ["Cut", "without a word, as a bad network does"],
  refresh: ["Ask to come anew", "and close, as Slack does every few hours"],
  warn: ["Announce the end", "that comes in about ten seconds"],
};

const options = (entries) => Object.entries(entries).map(([value, words]) => h("option", { value }, words));

const troublesOf = (name) => (name in CALLS ? OF_CALLS : name === "events_api" ? OF_EVENTS : OF_REQUESTS);

const told = ({ name, trouble }) => `the next ${CALLS[name] ?? REQUESTS[name] ?? name} ${troublesOf(name)[trouble] ?? trouble}`;

/** Give an element its words, if they are others than before, so that nothing is announced twice. */
function put(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

/** Say how long something is, in its largest units. */
function span(seconds) {
  const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  let left = Math.round(seconds);
  const parts = units.map(([name, size]) => {
    const count = Math.floor(left / size);
    left -= count * size;
    return count ? `${count} ${name}${count === 1 ? "" : "s"}` : "";
  });
  return parts.filter(Boolean).slice(0, 2).join(" ");
}

export class Faults {
  constructor(root, toggle, act) {
    [this.root, this.toggle, this.act] = [root, toggle, act];
    toggle.setAttribute("aria-expanded", "false");
    toggle.addEventListener("click", () => this.setOpen(root.hidden));
    root.addEventListener("keydown", (event) => event.key === "Escape" && this.setOpen(false));
  }

  setOpen(open) {
    if (open && !this.what) this.build();
    this.root.hidden = !open;
    this.toggle.setAttribute("aria-expanded", String(open));
    if (open) this.what.focus();
    else this.toggle.focus();
  }

  build() {
    this.what = h("select", { "aria-label": "What is in for trouble", "data-fault-what": true, change: () => this.offer() },
      h("optgroup", { label: "What the bot does" }, options(CALLS)),
      h("optgroup", { label: "What the bot is sent" }, options(REQUESTS)),
    );
    this.trouble = h("select", { "aria-label": "What happens to it", "data-fault-trouble": true });
    this.waiting = h("p", { class: "faults-waiting", role: "status", "data-fault-waiting": true });
    this.levers = h("p", { class: "levers" });
    this.jump = h("select", { "aria-label": "How far the clock moves", "data-clock-jump": true }, options(JUMPS));
    this.ahead = h("small", { role: "status", "data-clock-ahead": true });
    this.counted = h("span", { role: "status", "data-connected": true });
    this.connections = h("p", { class: "lever", hidden: true }, this.counted,
      Object.entries(PARTINGS).map(([value, [words, explanation]]) => h("button", { type: "button", class: "button", title: `${words} ${explanation}`, "data-connections": value, click: () => this.act({ kind: "connections", value }) }, words)),
    );
    this.clear = h("button", { type: "button", class: "button", "data-fault-clear": true, click: () => this.act({ kind: "clear_faults" }) }, "Take it back");
    this.root.replaceChildren(
      h("header", {},
        h("h2", { id: "faults-title" }, "Trouble on purpose"),
        h("button", { type: "button", class: "quiet", "aria-label": "Close", "data-close": true, click: () => this.setOpen(false) }, "✕"),
      ),
      h("form", { submit: (event) => this.arm(event) },
        h("span", {}, "The next"), this.what, this.trouble,
        h("button", { class: "button primary", "data-fault-arm": true }, "Arm"), this.clear,
      ),
      this.waiting,
      this.levers,
      h("form", { class: "lever", submit: (event) => this.moveOn(event) },
        h("span", {}, "Move Slack’s clock on by"), this.jump, h("button", { class: "button", "data-clock-move": true }, "Move"), this.ahead,
      ),
      this.connections,
    );
    this.offer();
    this.draw();
  }

  /** Offer what can happen to the thing that is chosen. */
  offer() {
    this.trouble.replaceChildren(...options(troublesOf(this.what.value)));
  }

  arm(event) {
    event.preventDefault();
    return this.act({ kind: "fault", name: this.what.value, trouble: this.trouble.value });
  }

  moveOn(event) {
    event.preventDefault();
    return this.act({ kind: "advance", value: Number(this.jump.value) });
  }

  show({ faults, levers, ahead, connections }) {
    this.shown = { faults, levers, ahead, connections };
    if (this.what) this.draw();
  }

  draw() {
    if (!this.shown) return;
    const { faults, levers, ahead, connections } = this.shown;
    put(this.ahead, `${ahead ? `It is ${span(ahead)} ahead. ` : ""}Forms, answers, retries and rate limits go by it; the bot keeps its own time.`);
    this.connections.hidden = connections === null;
    put(this.counted, `Socket Mode: ${connections === 1 ? "1 connection" : `${connections} connections`}`);
    const words = faults.length ? `Waiting: ${faults.map(told).join("; ")}.` : "No trouble is waiting.";
    put(this.waiting, words);
    this.clear.disabled = !faults.length;
    const key = JSON.stringify(levers);
    if (this.levers.dataset.key === key) return;
    this.levers.dataset.key = key;
    this.levers.replaceChildren(...levers.map((one) => h("span", { class: "lever" },
      h("button", { type: "button", class: "button", "data-lever": one.label, click: (event) => this.act({ kind: "pull_lever", label: one.label }, event.currentTarget) }, one.label),
      h("small", {}, one.explanation))));
  }
}
