// The files of a message: pictures as they are, everything else by name and size, and all of it to download.

import { h } from "/static/dom.js";

const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const UNITS = ["bytes", "KB", "MB", "GB"];

/** Draw the files of a message for the person who sees it. */
export function files(list, user) {
  return h("ul", { class: "files", "aria-label": list.length === 1 ? "File" : "Files" }, list.map((one) => h("li", { class: "file", "data-file": one.id }, one.mode === "tombstone" ? gone() : file(one, user))));
}

function file(one, user) {
  const address = `/page/files/${one.id}?user=${encodeURIComponent(user)}`;
  const name = one.title || one.name;
  return h("figure", {},
    h("figcaption", {},
      h("strong", {}, name),
      h("small", {}, [one.title && one.title !== one.name ? one.name : "", size(one.size)].filter(Boolean).join(" · ")),
      h("a", { class: "button", href: address, download: one.name, "aria-label": `Download ${one.name}` }, "Download"),
    ),
    PICTURES.includes(one.mimetype) && h("img", { src: address, alt: one.alt_txt ?? name, width: one.original_w, height: one.original_h }),
  );
}

function gone() {
  return h("p", { class: "soft" }, "This file was deleted.");
}

function size(bytes) {
  const unit = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), UNITS.length - 1);
  const number = new Intl.NumberFormat(undefined, { maximumFractionDigits: unit ? 1 : 0 }).format(bytes / 1000 ** unit);
  return `${number} ${bytes === 1 ? "byte" : UNITS[unit]}`;
}
