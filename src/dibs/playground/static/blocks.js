// Block Kit as this page draws it. Every press goes to `place.press(block, element, node, choice)`.

import { h } from "/static/dom.js";
import { field, readField } from "/static/elements.js";
import { mrkdwn, plain, textObject } from "/static/mrkdwn.js";

/** Draw a list of blocks for the person who looks at `place`. */
export function blocks(list, place) {
  return list.map((block) => {
    const draw = DRAWN[block.type];
    const body = draw ? draw(block, place) : h("p", { class: "undrawn" }, `The playground does not draw ${block.type}.`);
    body.classList.add("block", `block-${block.type}`);
    if (!body.dataset.blockId) body.dataset.blockId = block.block_id;
    return body;
  });
}

const DRAWN = {
  header: (block) => h("h3", {}, plain(block.text.text)),
  divider: () => h("hr"),
  section: (block, place) =>
    h("div", {},
      h("div", { class: "section-words" },
        block.text && h("p", {}, textObject(block.text, place.reader)),
        block.fields && h("div", { class: "fields" }, block.fields.map((one) => h("p", {}, textObject(one, place.reader)))),
      ),
      block.accessory && h("div", { class: "accessory" }, pressable(block, block.accessory, place)),
    ),
  context: (block, place) =>
    h("div", {}, block.elements.map((one) => (one.type === "image" ? picture(one) : textObject(one, place.reader)))),
  actions: (block, place) => h("div", { role: "group" }, block.elements.map((one) => pressable(block, one, place))),
  image: (block) => h("figure", {}, block.title && h("figcaption", {}, plain(block.title.text)), picture(block)),
  input: (block, place) => place.input(block),
  markdown: (block) => h("p", {}, plain(block.text, false)),
  alert: (block, place) => h("p", { role: "note", "data-level": block.level ?? "default" }, textObject(block.text, place.reader)),
  rich_text: (block, place) => h("div", {}, block.elements.map((one) => rich(one, place.reader))),
  table: (block, place) =>
    h("div", { tabindex: 0 }, h("table", {}, block.rows.map((row, index) => h("tr", {}, row.map((cell) => h(index ? "td" : "th", {}, tableCell(cell, place))))))),
};

function tableCell(cell, place) {
  return cell.type === "rich_text" ? cell.elements.map((one) => rich(one, place.reader)) : cell.text;
}

// Nothing is fetched from elsewhere, so a picture of another site is shown by its words.
function picture(image) {
  const own = image.image_url?.startsWith(`${location.origin}/`);
  if (own) return h("img", { src: image.image_url, alt: image.alt_text });
  return h("span", { class: "picture", role: "img", "aria-label": image.alt_text, title: image.image_url ?? "" }, image.alt_text || "picture");
}

function rich(element, reader) {
  const pieces = element.elements.map((one) => (one.elements ? rich(one, reader) : richPiece(one, reader)));
  if (element.type === "rich_text_list") {
    return h(element.style === "ordered" ? "ol" : "ul", {}, pieces.map((one) => h("li", {}, one)));
  }
  const names = { rich_text_quote: "blockquote", rich_text_preformatted: "pre" };
  return h(names[element.type] ?? "p", {}, pieces);
}

function richPiece(piece, reader) {
  const angles = {
    user: () => `<@${piece.user_id}>`,
    channel: () => `<#${piece.channel_id}>`,
    broadcast: () => `<!${piece.range}>`,
    link: () => `<${piece.url}|${piece.text ?? piece.url}>`,
    date: () => `<!date^${piece.timestamp}^${piece.format}|${piece.fallback ?? ""}>`,
    emoji: () => `:${piece.name}:`,
  };
  let node = piece.type in angles ? mrkdwn(angles[piece.type](), reader) : h("span", {}, piece.text ?? "");
  for (const [style, name] of Object.entries({ bold: "strong", italic: "em", strike: "s", code: "code" })) {
    if (piece.style?.[style]) node = h(name, {}, node);
  }
  return node;
}

/** Draw an element that sends something as soon as it is used, with the failure mark beside it. */
export function pressable(block, element, place) {
  const mark = failureMark(place.failure(block.block_id, element.action_id));
  if (element.type === "image") return picture(element);
  if (element.type === "button" || element.type === "workflow_button") return [button(block, element, place), mark];
  if (element.type === "overflow") return [overflow(block, element, place), mark];
  const state = place.state?.[block.block_id]?.[element.action_id] ?? initially(element);
  const attributes = { "data-action-id": element.action_id, "data-block-id": block.block_id, "aria-label": element.placeholder?.text ?? element.action_id };
  const node = field(element, place, state, attributes);
  node.addEventListener("change", () => {
    const choice = readField(element, node, place.reader.tz);
    if (choice !== null && choice !== undefined) confirmed(element, place, () => place.press(block, element, node, choice));
  });
  return [node, mark];
}

function initially(element) {
  return {
    selected_option: element.initial_option,
    selected_options: element.initial_options,
    selected_user: element.initial_user,
    selected_users: element.initial_users,
    selected_date: element.initial_date,
    selected_time: element.initial_time,
    selected_conversation: element.initial_conversation,
    selected_channel: element.initial_channel,
  };
}

function button(block, element, place) {
  const attributes = {
    class: `button ${element.style ?? ""}`,
    "data-action-id": element.action_id,
    "data-block-id": block.block_id,
    "aria-label": element.accessibility_label,
  };
  if (element.url) {
    const link = h("a", { ...attributes, href: element.url, target: "_blank", rel: "noopener noreferrer" }, plain(element.text.text));
    link.addEventListener("click", () => place.press(block, element, link));
    return link;
  }
  const node = h("button", { ...attributes, type: "button" }, plain(element.text.text));
  node.addEventListener("click", () => confirmed(element, place, () => place.press(block, element, node)));
  return node;
}

function overflow(block, element, place) {
  const menu = h("select", { class: "overflow", "aria-label": "More actions", "data-action-id": element.action_id, "data-block-id": block.block_id },
    h("option", { value: "" }, "•••"),
    element.options.map((one) => h("option", { value: one.value }, plain(one.text.text).textContent)),
  );
  menu.addEventListener("change", () => {
    const choice = menu.value;
    menu.value = "";
    if (choice) confirmed(element, place, () => place.press(block, element, menu, choice));
  });
  return menu;
}

function confirmed(element, place, go) {
  if (element.confirm) place.confirm(element.confirm, go);
  else go();
}

/** Draw Slack's failure mark, if there is one. */
export function failureMark(words) {
  return words ? h("span", { class: "failure", role: "alert", "data-failure": true }, h("span", { "aria-hidden": "true" }, "⚠ "), words) : null;
}
