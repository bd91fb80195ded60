/* The page: which agent, over which wire, as whom, and which view is shown.
   Laws: puts the parts together; what one can see and do is in the views. Credentials live in the form alone. */

import { Caller } from "./caller.js";
import { Calls } from "./calls.js";
import { cardView, readCard, spoken } from "./card.js";
import { Chat } from "./chat.js";
import { h, tell } from "./dom.js";
import { listerOf, taskView, tasksView } from "./tasks.js";

const SCHEMES = [["", "none"], ["bearer", "bearer token"], ["key", "key in a header"], ["basic", "user:password"]];
const OWN = new URL("../", location.href).href;

const at = (id) => document.getElementById(id);
const calls = new Calls();
const connection = { card: {}, places: [], caller: null, lister: null, attempt: null, origin: location.origin, secret: "" };
const chat = new Chat(connection);
let leaving = new AbortController();

const credentials = () => ({ scheme: at("scheme").value, name: at("header-name").value, secret: at("secret").value });
const made = (place) => new Caller(place, credentials(), calls.record);

function choose() {
  const place = connection.places[Number(at("wire").value)];
  connection.caller = place ? made(place) : null;
  connection.lister = place ? listerOf(connection.caller, connection.places, made) : null;
}

/** Read the card of the address and offer its wires. */
async function connect(attempt) {
  const address = at("address").value;
  const card = await readCard(address, credentials(), calls.record);
  if (connection.attempt !== attempt) return;
  connection.card = card;
  connection.places = spoken(connection.card, address.replace(/\/?$/, "/") === OWN ? OWN : null);
  at("wire").replaceChildren(...connection.places.map(({ binding, version }, index) => h("option", { value: index }, `${binding} ${version}`)));
  at("agent").textContent = connection.card.name ?? "Agent";
  document.title = `${connection.card.name ?? "Agent"} – Inspector`;
  choose();
  if (!connection.caller) throw new Error("The card lists no JSON-RPC or REST interface that this page could speak to.");
}

/** Views by the first word of the fragment, given what follows it. */
const VIEWS = {
  chat: () => chat.element,
  tasks: (id) => (id ? taskView(connection, decodeURIComponent(id), leaving.signal) : tasksView(connection)),
  card: () => cardView({ card: connection.card, ask: (text) => { location.hash = "#chat"; return chat.send([{ text }]); } }),
  calls: () => calls.view(connection.card),
};

function show() {
  leaving.abort();
  leaving = new AbortController();
  const [name, ...rest] = location.hash.slice(1).split("/");
  const shown = name in VIEWS ? name : "chat";
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${shown}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  at("view").replaceChildren(connection.caller || ["card", "calls"].includes(shown) ? VIEWS[shown](rest.join("/")) : h("p", {}, connection.attempt ? "Connecting…" : "Not connected."));
}

/** Leave the server there was, at once, for the one of the form: what is said in between would reach the wrong one. */
async function reconnect() {
  const attempt = {};
  forget();
  Object.assign(connection, { card: {}, places: [], caller: null, lister: null, attempt });
  tell(null);
  show();
  let fault = null;
  try {
    await connect(attempt);
  } catch (told) {
    fault = told;
  }
  if (connection.attempt !== attempt) return;
  connection.attempt = null;
  tell(fault);
  show();
}

/** What was typed for one server is not for another. */
function forget() {
  const { origin } = new URL(at("address").value);
  if (origin !== connection.origin && at("secret").value === connection.secret) at("secret").value = "";
  Object.assign(connection, { origin, secret: at("secret").value });
}

function secrets() {
  const scheme = at("scheme").value;
  at("secret-label").hidden = !scheme;
  at("header-label").hidden = scheme !== "key";
}

at("address").value = OWN;
at("scheme").replaceChildren(...SCHEMES.map(([value, text]) => h("option", { value }, text)));
at("scheme").addEventListener("change", secrets);
at("wire").addEventListener("change", () => { choose(); show(); });
at("connection").addEventListener("submit", (event) => { event.preventDefault(); chat.clear(); reconnect(); });
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); at("view").focus(); });
window.addEventListener("hashchange", () => { tell(null); show(); at("view").focus({ preventScroll: true }); });
reconnect();
