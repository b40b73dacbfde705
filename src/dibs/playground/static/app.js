// The page: two panes on one world, news by long polling, and presses that are sent together when asked.

import { h } from "/static/dom.js";
import { Faults } from "/static/faults.js";
import { Presses } from "/static/inspector.js";
import { Pane } from "/static/pane.js";
import { remember, remembered } from "/static/remembered.js";
import { Tour } from "/static/tour.js";

const notice = document.getElementById("notice");
const eventsOff = document.getElementById("events-off");
const together = document.getElementById("together");
const toggle = (name) => document.querySelector(`[data-toggle="${name}"]`);
const TOGETHER = ["press", "press_in_view", "submit", "shortcut"];

const panes = [...document.querySelectorAll(".pane")].map((root) => new Pane(root, act, moved));
const presses = new Presses(document.getElementById("presses"), document.querySelector("[data-inspector]"));
const tour = new Tour(document.getElementById("tour"), toggle("tour"), alone);
const faults = new Faults(document.getElementById("faults"), toggle("faults"), alone);
let version = "";
// Private messages from before the page was loaded are gone, as they are in Slack.
let opened = "";
let polling = null;
let armed = null;

/** Carry out what somebody does in a pane; with the switch on, hold it until the other pane acts too. */
async function act(pane, what, node, label = "") {
  const reachesTheBot = TOGETHER.includes(what.kind) || (what.kind === "write" && what.text.startsWith("/"));
  if (!together.checked || !reachesTheBot) return (await post([{ pane, what, node }]))[0];
  if (armed?.pane === pane) {
    const same = JSON.stringify(armed.what) === JSON.stringify(what);
    disarm();
    if (same) return null;
  }
  if (!armed) return new Promise((settle) => arm({ pane, what, node, label: label.trim(), settle }));
  const first = armed;
  disarm({ keep: true });
  const [theirs, ours] = await post([first, { pane, what, node }]);
  first.settle(theirs);
  return ours;
}

function arm(press) {
  armed = press;
  press.node?.setAttribute("data-armed", "true");
  const other = panes.find((pane) => pane !== press.pane);
  const name = press.pane.personSelect.selectedOptions[0]?.textContent ?? "The other person";
  press.pane.await(`“${press.label}” is held. It goes out with the next press in the other pane; press it again to take it back.`);
  other.await(`${name}’s press of “${press.label}” is held. Press a button here, and both are sent at the same moment.`);
  press.node?.scrollIntoView({ block: "nearest" });
}

function disarm({ keep = false } = {}) {
  if (!armed) return;
  armed.node?.removeAttribute("data-armed");
  for (const pane of panes) pane.await("");
  if (!keep) armed.settle(null);
  armed = null;
}

/** Carry out what nobody in a pane does, such as pulling a lever. */
async function alone(what, node) {
  for (const pane of panes) pane.hidePeek();
  return (await post([{ what, node }]))[0];
}

async function post(acts) {
  for (const { node } of acts) node?.setAttribute("aria-busy", "true");
  try {
    const body = JSON.stringify({ acts: acts.map(({ what }) => what) });
    const response = await fetch("/page/act", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    const told = await response.json();
    const results = told.results ?? acts.map(() => ({ error: told.error }));
    const wrong = results.find((result) => result.error);
    say(wrong ? `That could not be pressed: ${wrong.error}.` : (results[0].said ?? ""));
    return results.map((result) => (result.error ? null : result));
  } catch {
    say("The playground does not answer.");
    return acts.map(() => null);
  } finally {
    for (const { node } of acts) node?.removeAttribute("aria-busy");
  }
}

function say(words) {
  notice.hidden = !words;
  notice.textContent = words;
}

function moved() {
  disarm();
  sessionStorage.setItem("panes", JSON.stringify(panes.map((pane) => [pane.user, pane.channel])));
  version = "";
  polling?.abort();
}

/** Put two people before the first channel that both are in. */
function begin(world) {
  const stored = JSON.parse(sessionStorage.getItem("panes") ?? "[]");
  const people = world.people.filter((one) => !one.is_bot && !one.deleted && !one.foreign);
  const shared = world.channels.find((one) => !one.is_im && people.slice(0, 2).every((who) => one.members.includes(who.id)));
  panes.forEach((pane, index) => {
    const [user, channel] = stored[index] ?? [];
    const known = world.people.some((one) => one.id === user) && (channel === "home" || world.channels.some((one) => one.id === channel));
    if (known) pane.begin(user, channel);
    else pane.begin(people[index % people.length]?.id ?? "", (shared ?? world.channels[0])?.id ?? "");
  });
}

async function fetchState() {
  polling = new AbortController();
  const query = new URLSearchParams({ since: version, opened });
  for (const pane of panes) if (pane.user && !pane.root.hidden) query.set(pane.side, `${pane.user},${pane.channel}`);
  const response = await fetch(`/page/state?${query}`, { signal: polling.signal });
  return response.status === 204 ? null : response.json();
}

function draw(world) {
  version = String(world.version);
  document.title = `${world.bot.name} playground`;
  for (const pane of panes) {
    const seen = world.panes[pane.side];
    if (seen && seen.user === pane.user && seen.channel === pane.channel) pane.show(world, seen);
  }
  presses.show(world.presses);
  tour.show(world.tour);
  faults.show(world);
  showEvents(world.events_on);
}

/** Say that the bot is told of nothing any more, and offer to change that. */
function showEvents(on) {
  if (eventsOff.hidden === on) return;
  eventsOff.hidden = on;
  const resume = h("button", { type: "button", class: "button", "data-resume-events": true, click: (event) => alone({ kind: "resume_events" }, event.currentTarget) }, "Switch them on again");
  eventsOff.replaceChildren(...(on ? [] : [h("span", {}, "Events are switched off: in the last hour the bot took fewer than one in twenty. Presses and commands still reach it."), " ", resume]));
}

/** Show one person or two; presses can go out together only from two panes. */
function showPanes(count) {
  disarm();
  const [first, second] = panes;
  second.root.hidden = count === 1;
  first.root.parentElement.dataset.count = String(count);
  toggle("panes").textContent = count === 1 ? "Two panes" : "One pane";
  if (count === 1) together.checked = false;
  together.disabled = count === 1;
  remember("pane-count", count);
  version = "";
  polling?.abort();
}

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

async function follow() {
  let gone = false;
  for (;;) {
    try {
      const world = await fetchState();
      if (gone) say("");
      gone = false;
      if (!world) continue;
      opened ||= world.now;
      if (!panes.some((pane) => pane.user) && world.people.length > 1) {
        begin(world);
        continue;
      }
      draw(world);
      if (!world.people.some((one) => !one.is_bot)) await pause(200);
    } catch (error) {
      if (error.name === "AbortError") continue;
      gone = true;
      console.error(error);
      say("The playground has stopped. Start it again, and this page goes on.");
      await pause(1000);
    }
  }
}

together.addEventListener("change", () => together.checked || disarm());
toggle("panes").addEventListener("click", () => showPanes(panes[1].root.hidden ? 2 : 1));
showPanes(remembered("pane-count", 2));
follow();
