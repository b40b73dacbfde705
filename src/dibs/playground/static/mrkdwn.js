// Slack's text formats as DOM nodes: mrkdwn, plain text, escapes, mentions and dates in the reader's zone.

import { h } from "/static/dom.js";

const EMOJI = {
  "+1": "👍", "-1": "👎", alarm_clock: "⏰", ballot_box_with_check: "☑️", bell: "🔔", calendar: "📅", card_index: "📇",
  white_check_mark: "✅", heavy_check_mark: "✔️", clock1: "🕐", eyes: "👀", hand: "✋", raised_hand: "✋", hourglass: "⌛",
  hourglass_flowing_sand: "⏳", information_source: "ℹ️", inbox_tray: "📥", large_blue_circle: "🔵",
  large_green_circle: "🟢", large_yellow_circle: "🟡", red_circle: "🔴", white_circle: "⚪", lock: "🔒", memo: "📝",
  no_entry: "⛔", no_entry_sign: "🚫", octagonal_sign: "🛑", pause_button: "⏸️", double_vertical_bar: "⏸️", arrow_forward: "▶️", pushpin: "📌",
  question: "❓", rocket: "🚀", rotating_light: "🚨", speech_balloon: "💬", tada: "🎉", warning: "⚠️", wave: "👋", x: "❌",
  leftwards_arrow_with_hook: "↩️", repeat: "🔁", arrows_counterclockwise: "🔄", label: "🏷️", ticket: "🎫", scroll: "📜",
};

/** Undo Slack's three escapes. */
export function unescape(text) {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}

/** Draw a text object. `reader` knows names and the zone: {tz, personName, channelName}. */
export function textObject(object, reader) {
  return object.type === "mrkdwn" ? mrkdwn(object.text, reader) : plain(object.text, object.emoji !== false);
}

/** Draw plain text, with its line breaks. */
export function plain(text, withEmoji = true) {
  const words = withEmoji ? emoji(unescape(text)) : unescape(text);
  return h("span", { class: "plain" }, words);
}

function emoji(text) {
  return text.replace(/:([a-z0-9_+-]+):/g, (all, name) => EMOJI[name] ?? all);
}

/** Draw mrkdwn. */
export function mrkdwn(text, reader) {
  const root = h("span", { class: "mrkdwn" });
  const fences = text.split(/```\n?([\s\S]*?)```/);
  fences.forEach((part, index) => {
    if (index % 2) root.append(h("pre", {}, unescape(part)));
    else root.append(...lines(part, reader));
  });
  return root;
}

function lines(text, reader) {
  const nodes = [];
  let quote = null;
  text.split("\n").forEach((line, index) => {
    const quoted = /^(&gt;|>) ?/.exec(line);
    if (quoted) {
      if (!quote) nodes.push((quote = h("blockquote")));
      else quote.append(h("br"));
      quote.append(...inline(line.slice(quoted[0].length), reader));
      return;
    }
    if (index > 0 && !quote) nodes.push(h("br"));
    quote = null;
    nodes.push(...inline(line, reader));
  });
  return nodes;
}

// A mark opens after a space or a bracket and closes before one, as in Slack; code and <…> hold no other marks.
const TOKEN = /(`[^`]+`)|(<[^<>]+>)|(?<![\p{L}\p{N}_*~])([*_~])(?=\S)(.+?)(?<=\S)\3(?![\p{L}\p{N}])/u;

function inline(text, reader) {
  const nodes = [];
  let rest = text;
  while (rest) {
    const found = TOKEN.exec(rest);
    if (!found) break;
    if (found.index) nodes.push(emoji(unescape(rest.slice(0, found.index))));
    nodes.push(token(found, reader));
    rest = rest.slice(found.index + found[0].length);
  }
  if (rest) nodes.push(emoji(unescape(rest)));
  return nodes;
}

function token([, code, angle, mark, marked], reader) {
  if (code) return h("code", {}, unescape(code.slice(1, -1)));
  if (angle) return reference(angle.slice(1, -1), reader);
  return h({ "*": "strong", _: "em", "~": "s" }[mark], {}, inline(marked, reader));
}

function reference(body, reader) {
  const [target, ...labels] = body.split("|");
  const label = labels.join("|");
  if (target.startsWith("@")) return h("span", { class: "mention" }, `@${reader.personName(target.slice(1))}`);
  if (target.startsWith("#")) return h("span", { class: "mention" }, `#${reader.channelName(target.slice(1)) || label}`);
  if (target.startsWith("!date^")) return date(target, label, reader);
  if (target.startsWith("!subteam^")) return h("span", { class: "mention" }, label || "@group");
  if (target.startsWith("!")) return h("span", { class: "mention loud" }, `@${target.slice(1)}`);
  const shown = unescape(label || target.replace(/^mailto:/, ""));
  if (!/^(https?|mailto):/.test(target)) return h("span", {}, unescape(`<${body}>`));
  return h("a", { href: unescape(target), target: "_blank", rel: "noopener noreferrer" }, shown);
}

function date(target, fallback, reader) {
  const [, stamp, format] = target.split("^");
  const when = new Date(Number(stamp) * 1000);
  if (!format || Number.isNaN(when.getTime())) return unescape(fallback);
  const shown = format.replace(/\{(\w+)\}/g, (all, name) => DATES[name]?.(when, reader.tz) ?? all);
  return h("time", { datetime: when.toISOString(), title: unescape(fallback) }, shown);
}

const parts = (when, tz, options) => new Intl.DateTimeFormat(undefined, { timeZone: tz, ...options }).format(when);
const day = (when, tz) => new Intl.DateTimeFormat("en-CA", { timeZone: tz, dateStyle: "short" }).format(when);
const short = (when, tz) => parts(when, tz, { year: "numeric", month: "short", day: "numeric" });
const middle = (when, tz) => parts(when, tz, { year: "numeric", month: "long", day: "numeric" });
const long = (when, tz) => parts(when, tz, { weekday: "long", year: "numeric", month: "long", day: "numeric" });

function pretty(otherwise) {
  return (when, tz) => {
    const away = { [-86400000]: "yesterday", 0: "today", 86400000: "tomorrow" };
    const found = Object.keys(away).find((ms) => day(new Date(Date.now() + Number(ms)), tz) === day(when, tz));
    return found === undefined ? otherwise(when, tz) : away[found];
  };
}

const DATES = {
  date_num: day,
  date: middle,
  date_short: short,
  date_long: long,
  date_pretty: pretty(middle),
  date_short_pretty: pretty(short),
  date_long_pretty: pretty(long),
  time: (when, tz) => parts(when, tz, { hour: "numeric", minute: "2-digit" }),
  time_secs: (when, tz) => parts(when, tz, { hour: "numeric", minute: "2-digit", second: "2-digit" }),
  ago: (when) => {
    const minutes = Math.round((when.getTime() - Date.now()) / 60000);
    const unit = Math.abs(minutes) < 60 ? [minutes, "minute"] : [Math.round(minutes / 60), "hour"];
    return new Intl.RelativeTimeFormat(undefined, { numeric: "auto" }).format(...unit);
  },
};
