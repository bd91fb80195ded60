/* Every call of this page: what was sent, what came, and the call as something to paste.
   Laws: the last calls are kept, in memory alone; credentials are shown by name only. */

import { copier, h } from "./dom.js";
import { SNIPPETS } from "./snippets.js";

const KEPT = 200;

const text = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

function answer({ answer: whole, events }) {
  const lines = events.map(({ id, type, body }) => `${type ? `event: ${type}\n` : ""}${id ? `id: ${id}\n` : ""}data: ${JSON.stringify(body)}`);
  return lines.length ? lines.join("\n\n") : whole === null ? "" : text(whole);
}

function entry(call, card) {
  const headers = [...Object.entries(call.headers), ...call.secret.map((name) => [name, "(hidden)"])];
  const head = [`${call.verb} ${call.url}`, ...headers.map(([name, value]) => `${name}: ${value}`)].join("\n");
  const status = call.status ?? (call.took === null ? "…" : "failed");
  return h("li", {}, h("details", {},
    h("summary", {}, h("code", {}, call.operation), ` ${call.place.binding} ${call.place.version} `,
      h("span", { class: "badge" }, String(status)), call.took === null ? " running" : ` ${call.took} ms`),
    h("p", { class: "row" }, "Copy as", Object.entries(SNIPPETS).map(([name, write]) => copier(name, () => write(call, card)))),
    h("h3", {}, "Request"), h("pre", { tabindex: 0 }, head, call.body ? `\n\n${text(call.body)}` : ""),
    h("h3", {}, "Answer"), h("pre", { tabindex: 0 }, answer(call))));
}

export class Calls {
  #calls = [];

  /** Keep an exchange, or see that it is kept. */
  record = (exchange) => {
    if (!this.#calls.includes(exchange)) this.#calls = [exchange, ...this.#calls].slice(0, KEPT);
  };

  /** The view, as of now. */
  view(card) {
    return h("section", { "aria-labelledby": "calls-title" }, h("h2", { id: "calls-title" }, "Calls"),
      this.#calls.length ? h("ol", { class: "calls", reversed: true }, this.#calls.map((call) => entry(call, card)))
        : h("p", {}, "Nothing was called yet."));
  }
}
