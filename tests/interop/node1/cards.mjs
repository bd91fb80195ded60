// Signs cards with @a2a-js/sdk 1.x and verifies ours. Usage: cards.mjs FILE; prints one JSON line a card.
// FILE holds `keys`, private JSON Web Keys by their ids, `sign` and `verify`, lists of a name, a key's id and a card, and
// `fetch`, base URLs by name. Cards are verified as JSON, and once more after the SDK's own reader, as its client does.
import { createPrivateKey, createPublicKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { AgentCard, generateAgentCardSignature, verifyAgentCardSignature } from "@a2a-js/sdk";
import { DefaultAgentCardResolver } from "@a2a-js/sdk/client";

const told = JSON.parse(readFileSync(process.argv[2], "utf8"));
const privateKey = (kid) => createPrivateKey({ key: told.keys[kid], format: "jwk" });
const sign = (card, kid) =>
  generateAgentCardSignature(privateKey(kid), { alg: told.keys[kid].alg, kid, typ: "JOSE" })(card);
const verify = verifyAgentCardSignature(async (kid) => createPublicKey(privateKey(kid)));
console.debug = () => {};

const show = (step, facts) => console.log(JSON.stringify({ step, ...facts }));

async function judged(step, card) {
  const right = await verify(card).then(() => true, () => false);
  show(step, { right });
}

for (const [name, kid, card] of told.sign) show(`sign ${name} ${kid}`, { card: await sign(card, kid) });
for (const [name, kid, card] of told.verify) {
  await judged(`verify ${name} ${kid}`, card);
  await judged(`read and verify ${name} ${kid}`, AgentCard.fromJSON(card));
}
for (const [name, url] of Object.entries(told.fetch))
  await judged(`fetch ${name}`, await new DefaultAgentCardResolver().resolve(url));
