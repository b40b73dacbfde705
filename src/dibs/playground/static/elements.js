// The elements that people press, choose from and type into. Each knows how to be drawn and how to be read.

import { freshId, h } from "/static/dom.js";
import { plain, textObject } from "/static/mrkdwn.js";

const TEXT_TYPES = { plain_text_input: "text", email_text_input: "email", url_text_input: "url", number_input: "text" };

const optionWords = (option) => plain(option.text.text).textContent;

function optionNodes(element) {
  const nodes = (options) => options.map((one) => h("option", { value: one.value }, optionWords(one)));
  if (!element.option_groups) return nodes(element.options ?? []);
  return element.option_groups.map((group) => h("optgroup", { label: group.label.text }, nodes(group.options)));
}

function pairs(element, place) {
  if (element.type.includes("users")) {
    const people = place.people.filter((one) => !one.deleted).toSorted((one, other) => one.is_bot - other.is_bot);
    return people.map((one) => [one.id, one.name + (one.is_bot ? " (app)" : "")]);
  }
  const include = element.filter?.include;
  const wanted = (one) => {
    if (element.type.includes("channels_select")) return !one.is_im && !one.is_private;
    return !include || include.includes(one.is_im ? "im" : one.is_private ? "private" : "public");
  };
  return place.channels.filter((one) => !one.is_archived && (!one.is_im || one.members.includes(place.user)))
    .filter(wanted)
    .map((one) => [one.id, one.is_im ? "Direct message" : `#${one.name}`]);
}

function oneOf(element, attributes, nodes, value) {
  const words = element.placeholder?.text ?? "Choose…";
  const select = h("select", attributes, h("option", { value: "" }, plain(words).textContent), nodes);
  select.value = value ?? "";
  return select;
}

function boxes(kind, name, entries, chosen, attributes) {
  const { id, ...shared } = attributes;
  const group = h("div", { class: "boxes", role: kind === "radio" ? "radiogroup" : "group", id, "aria-labelledby": shared["aria-labelledby"], "aria-describedby": shared["aria-describedby"], "data-action-id": shared["data-action-id"], "data-block-id": shared["data-block-id"] });
  for (const [value, label, note] of entries) {
    const input = h("input", { type: kind, name, value });
    input.checked = chosen.includes(value);
    group.append(h("label", { class: "box" }, input, h("span", {}, label, note && h("small", {}, note))));
  }
  return group;
}

const richPairs = (element, reader) =>
  element.options.map((one) => [one.value, textObject(one.text, reader), one.description && plain(one.description.text)]);

/** Return what the clocks of a zone show at a moment, as a date-and-time field takes it. */
export function dateTime(seconds, tz) {
  if (!seconds) return "";
  const shown = new Intl.DateTimeFormat("sv-SE", { timeZone: tz, dateStyle: "short", timeStyle: "short" });
  return shown.format(new Date(seconds * 1000)).replace(" ", "T");
}

/** Return the moment at which the clocks of a zone show this date and time. */
export function momentIn(tz, wall) {
  const asUtc = Date.parse(`${wall}:00Z`);
  const offset = Date.parse(`${dateTime(asUtc / 1000, tz)}:00Z`) - asUtc;
  return Math.round((asUtc - offset) / 1000);
}

/**
 * Draw an element that holds a value.
 *
 * `place` tells who looks: {user, people, channels, reader}; `state` is what the view's state says of it.
 */
export function field(element, place, state, attributes) {
  const kind = element.type;
  if (kind in TEXT_TYPES) {
    const given = { ...attributes, placeholder: element.placeholder && plain(element.placeholder.text).textContent };
    const input = element.multiline ? h("textarea", { ...given, rows: 4 }) : h("input", { ...given, type: TEXT_TYPES[kind], inputmode: kind === "number_input" ? "decimal" : null });
    input.value = state?.value ?? "";
    return input;
  }
  if (kind === "static_select") return oneOf(element, attributes, optionNodes(element), state?.selected_option?.value);
  if (kind === "radio_buttons") {
    return boxes("radio", freshId("radio"), richPairs(element, place.reader), [state?.selected_option?.value], attributes);
  }
  if (kind === "checkboxes" || kind === "multi_static_select") {
    const all = element.options ?? element.option_groups.flatMap((group) => group.options);
    const chosen = (state?.selected_options ?? []).map((one) => one.value);
    return boxes("checkbox", freshId("check"), richPairs({ options: all }, place.reader), chosen, attributes);
  }
  if (kind.startsWith("multi_")) {
    const chosen = state?.selected_users ?? state?.selected_conversations ?? state?.selected_channels ?? [];
    return boxes("checkbox", freshId("check"), pairs(element, place), chosen, attributes);
  }
  if (["users_select", "conversations_select", "channels_select"].includes(kind)) {
    const nodes = pairs(element, place).map(([value, words]) => h("option", { value }, words));
    return oneOf(element, attributes, nodes, state?.selected_user ?? state?.selected_conversation ?? state?.selected_channel);
  }
  if (kind === "datepicker" || kind === "timepicker" || kind === "datetimepicker") {
    const types = { datepicker: "date", timepicker: "time", datetimepicker: "datetime-local" };
    const input = h("input", { ...attributes, type: types[kind] });
    input.value = state?.selected_date ?? state?.selected_time ?? dateTime(state?.selected_date_time, place.reader.tz);
    return input;
  }
  return h("p", { class: "undrawn" }, `The playground does not draw ${kind}.`);
}

/** Read what a person gave an element, in the words that the stand-in takes. */
export function readField(element, node, tz) {
  if (node.matches(".boxes")) {
    const chosen = [...node.querySelectorAll("input:checked")].map((input) => input.value);
    return element.type === "radio_buttons" ? (chosen[0] ?? null) : chosen;
  }
  if (!("value" in node)) return undefined;
  if (node.value === "") return element.type in TEXT_TYPES ? "" : null;
  return element.type === "datetimepicker" ? momentIn(tz, node.value) : node.value;
}
