/* Parts shown by what they are: text as Markdown, data as a tree, images, files to download.
   Laws: nothing is fetched for a part; a part that is an address is shown as a link. */

import { h } from "./dom.js";
import { markdown } from "./markdown.js";

export const SCHEMA = "application/schema+json";
const SHOWN = /^image\/(png|jpeg|gif|webp|avif)$/;

function leaf(value) {
  const kind = value === null ? "null" : typeof value;
  return h("span", { class: `json ${kind}` }, JSON.stringify(value));
}

/** A JSON value as a tree that opens and closes. */
export function tree(value, name = "", depth = 0) {
  const label = name === "" ? null : h("span", { class: "key" }, `${name}: `);
  if (value === null || typeof value !== "object") return h("div", { class: "leaf" }, label, leaf(value));
  const entries = Object.entries(value);
  const size = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  const inside = h("div", { class: "inside" });
  const fill = () => { if (!inside.childElementCount) inside.append(...entries.map(([key, each]) => tree(each, key, depth + 1))); };
  const made = h("details", { open: depth < 2, ontoggle: fill }, h("summary", {}, label, size), inside);
  if (depth < 2) fill();
  return made;
}

function bytesOf(raw) {
  const plain = atob(raw.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
}

/** Address and size of each file that was shown; it may be drawn often. */
const FILES = new WeakMap();

function addressed(part, type) {
  if (!FILES.has(part)) {
    const bytes = bytesOf(part.raw);
    FILES.set(part, { href: URL.createObjectURL(new Blob([bytes], { type })), size: bytes.length });
  }
  return FILES.get(part);
}

function file(part) {
  const { mediaType = "application/octet-stream", filename } = part;
  const { href, size } = addressed(part, SHOWN.test(mediaType) ? mediaType : "application/octet-stream");
  const name = filename || "file";
  const down = h("a", { href, download: name, class: "file" }, `${name} (${mediaType}, ${size.toLocaleString()} bytes)`);
  return SHOWN.test(mediaType) ? h("figure", {}, h("img", { src: href, alt: name }), h("figcaption", {}, down)) : down;
}

/** One part as an element. */
export function shown(part) {
  if ("text" in part) return h("div", { class: "text" }, markdown(part.text));
  if ("data" in part) return h("div", { class: "data" }, tree(part.data));
  if ("raw" in part) return file(part);
  const safe = /^https?:/.test(part.url ?? "");
  const name = part.filename || part.url;
  return safe ? h("a", { href: part.url, rel: "noopener noreferrer", target: "_blank", class: "file" }, name) : h("code", {}, String(name));
}

/** All parts, without the schema of a question. */
export const partsShown = (parts = []) => parts.filter(({ mediaType }) => mediaType !== SCHEMA).map(shown);

/** The parts in one line of text. */
export const partsText = (parts = []) =>
  parts.filter(({ mediaType }) => mediaType !== SCHEMA)
    .map((part) => part.text ?? (part.data !== undefined ? JSON.stringify(part.data) : (part.filename ?? part.url ?? "file"))).join(" ");
