/* The card: where the agent is, what it can do, and what is wrong with what the card says.
   Laws: what is checked is a table; nothing is called but the card's own address. */

import { fetched } from "./caller.js";
import { button, h } from "./dom.js";
import { OLD, REST, RPC } from "./operations.js";
import { tree } from "./parts.js";

const WELL_KNOWN = "/.well-known/agent-card.json";
const SPOKEN = [RPC, REST];

/** The card at an address, which is a base address or the card's own. record: told of the exchange. */
export function readCard(address, credentials, record) {
  const url = address.endsWith(".json") ? address : address.replace(/\/$/, "") + WELL_KNOWN;
  return fetched("Card", url, credentials, record);
}

/** Every interface of a card, of either version: {url, binding, version, tenant}. */
export function interfaces(card) {
  const listed = (card.supportedInterfaces ?? []).map(({ url, protocolBinding: binding, protocolVersion: version, tenant }) =>
    ({ url, binding, version: version || "1.0", tenant }));
  if (listed.some(({ version }) => version === OLD)) return listed;
  const main = card.url ? [{ url: card.url, transport: card.preferredTransport ?? RPC }] : [];
  const old = [...main, ...(card.additionalInterfaces ?? [])].map(({ url, transport }) => ({ url, binding: transport, version: OLD }));
  const fresh = ({ url, binding }, index) => old.findIndex((other) => other.url === url && other.binding === binding) === index;
  return [...listed, ...old.filter(fresh)];
}

/** Those of the interfaces that a page can speak to. own: base address of this page's server, which is asked directly. */
export function spoken(card, own) {
  return interfaces(card).filter(({ binding, version }) => SPOKEN.includes(binding) && ["1.0", OLD].includes(version))
    .map((place) => (own ? { ...place, url: new URL(new URL(place.url).pathname, own).href } : place));
}

const absolute = (url) => /^https?:\/\/[^/]/.test(url ?? "") || /^[^/\s]+:\d+$/.test(url ?? "");
const twice = (values) => values.find((value, index) => values.indexOf(value) !== index);

/** What a good card has: [where, what is wrong, whether it is wrong]. */
const CHECKS = [
  ["name", "is missing", (card) => !card.name],
  ["description", "is missing", (card) => !card.description],
  ["version", "is missing", (card) => !card.version],
  ["capabilities", "is missing", (card) => !card.capabilities],
  ["skills", "is missing", (card) => !Array.isArray(card.skills)],
  ["skills", "is empty: nobody can tell what the agent is for", (card) => card.skills?.length === 0],
  ["skills", "has an id twice", (card) => twice((card.skills ?? []).map(({ id }) => id)) !== undefined],
  ["skills", "has a skill without id, name, description or tags", (card) =>
    (card.skills ?? []).some((skill) => !(skill.id && skill.name && skill.description && skill.tags?.length))],
  ["defaultInputModes", "is missing", (card) => !card.defaultInputModes?.length],
  ["defaultOutputModes", "is missing", (card) => !card.defaultOutputModes?.length],
  ["supportedInterfaces", "lists no place", (card) => interfaces(card).length === 0],
  ["supportedInterfaces", "has an address that is not absolute", (card) => interfaces(card).some(({ url }) => !absolute(url))],
  ["supportedInterfaces", "has a place without binding", (card) => interfaces(card).some(({ binding }) => !binding)],
  ["supportedInterfaces", "has a place without version", (card) => (card.supportedInterfaces ?? []).some((place) => !place.protocolVersion)],
  ["supportedInterfaces", "lists an address without TLS, on a page with TLS", (card) =>
    location.protocol === "https:" && interfaces(card).some(({ url }) => url?.startsWith("http:"))],
  ["capabilities.streaming", "is off: answers come only when they are whole", (card) => card.capabilities && !card.capabilities.streaming],
  ["securityRequirements", "names a scheme that securitySchemes does not have", (card) =>
    (card.securityRequirements ?? []).some(({ schemes = {} }) => Object.keys(schemes).some((name) => !(name in (card.securitySchemes ?? {}))))],
];

/** What is wrong with a card, in lines. */
export const problems = (card) => CHECKS.filter(([, , wrong]) => wrong(card)).map(([where, text]) => [where, text]);

function skill({ name, id, description, tags = [], examples = [] }, ask) {
  return h("li", {},
    h("h3", {}, name ?? id), h("p", {}, description),
    h("p", { class: "tags" }, tags.map((tag) => h("span", { class: "badge" }, tag))),
    examples.length > 0 && h("ul", {}, examples.map((text) => h("li", {}, button(text, () => ask(text), { class: "plain" })))));
}

/** The view of the card. ask: begins a chat with a text. */
export function cardView({ card, ask }) {
  const wrong = problems(card);
  return h("section", { "aria-labelledby": "card-title" },
    h("h2", { id: "card-title" }, `${card.name ?? "Agent"} ${card.version ?? ""}`), h("p", {}, card.description),
    wrong.length
      ? h("ul", { class: "problems", "aria-label": "Problems" }, wrong.map(([where, text]) => h("li", {}, h("code", {}, where), ` ${text}`)))
      : h("p", { class: "good" }, "Nothing is wrong with this card."),
    h("h2", {}, "Interfaces"),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Interfaces" }, h("table", {},
      h("thead", {}, h("tr", {}, ["Version", "Binding", "Address", "Tenant"].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, interfaces(card).map(({ version, binding, url, tenant }) =>
        h("tr", {}, h("td", {}, version), h("td", {}, binding), h("td", {}, h("code", {}, url)), h("td", {}, tenant ?? "")))))),
    h("h2", {}, "Skills"),
    card.skills?.length ? h("ul", { class: "skills" }, card.skills.map((each) => skill(each, ask))) : h("p", {}, "None."),
    h("h2", {}, "As it was sent"), tree(card));
}
