/* Markdown as elements: headings, lists, quotes, code, emphasis, links.
   Laws: only elements named here are made; links lead to http and https alone, and pictures are shown as links. */

import { h } from "./dom.js";

const INLINE =
  /(`+)(.+?)\1|\*\*(.+?)\*\*|__(.+?)__|\*([^*\s][^*]*?)\*|\b_([^_\s][^_]*?)_\b|!?\[([^\]]*)\]\((https?:[^)\s]+)\)|(https?:\/\/[^\s<>)]+)/g;

const link = (text, href) => h("a", { href, rel: "noopener noreferrer", target: "_blank" }, text);

function inline(text) {
  const out = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    out.push(text.slice(at, found.index));
    at = found.index + found[0].length;
    const [, , code, bold, strong, italic, emphasis, title, href, bare] = found;
    if (code !== undefined) out.push(h("code", {}, code));
    else if (bold ?? strong) out.push(h("strong", {}, inline(bold ?? strong)));
    else if (italic ?? emphasis) out.push(h("em", {}, inline(italic ?? emphasis)));
    else out.push(link(bare ?? (title || href), href ?? bare));
  }
  out.push(text.slice(at));
  return out;
}

const broken = (lines) => lines.flatMap((line, index) => (index ? [h("br"), inline(line)] : [inline(line)]));

/** The first block of the lines and how many lines it takes. */
function block(lines) {
  const [first] = lines;
  const fence = /^(```+|~~~+)/.exec(first);
  if (fence) {
    const end = lines.findIndex((line, index) => index && line.startsWith(fence[1]));
    const stop = end < 0 ? lines.length : end;
    return [h("pre", {}, h("code", {}, lines.slice(1, stop).join("\n"))), stop + 1];
  }
  const heading = /^(#{1,6})\s+(.*)/.exec(first);
  if (heading) return [h("p", { class: "heading" }, h("strong", {}, inline(heading[2]))), 1];
  for (const [mark, tag] of [[/^\s*[-*+]\s+/, "ul"], [/^\s*\d+[.)]\s+/, "ol"]]) {
    if (!mark.test(first)) continue;
    const items = run(lines, (line) => mark.test(line));
    return [h(tag, {}, items.map((line) => h("li", {}, inline(line.replace(mark, ""))))), items.length];
  }
  if (first.startsWith(">")) {
    const quoted = run(lines, (line) => line.startsWith(">"));
    return [h("blockquote", {}, markdown(quoted.map((line) => line.replace(/^>\s?/, "")).join("\n"))), quoted.length];
  }
  const plain = run(lines, (line, index) => line.trim() && !(index && /^(```|~~~|#{1,6}\s|>|\s*[-*+]\s|\s*\d+[.)]\s)/.test(line)));
  return [h("p", {}, broken(plain)), plain.length];
}

function run(lines, fits) {
  const end = lines.findIndex((line, index) => !fits(line, index));
  return end < 0 ? lines : lines.slice(0, Math.max(end, 1));
}

/** The elements of a text. */
export function markdown(text) {
  const out = [];
  let lines = text.split("\n");
  while (lines.length) {
    if (!lines[0].trim()) {
      lines = lines.slice(1);
      continue;
    }
    const [element, taken] = block(lines);
    out.push(element);
    lines = lines.slice(taken);
  }
  return out;
}
