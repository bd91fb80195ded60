/* A call as something to paste: curl, buf curl, Python, TypeScript.
   Laws: texts only; credentials are never in them, a variable stands in their place. */

import { OLD } from "./operations.js";

const quoted = (text) => `'${String(text).replaceAll("'", `'\\''`)}'`;

const SECRET = "$CREDENTIALS";

function headersOf({ headers, secret }) {
  return [...Object.entries(headers), ...secret.map((name) => [name, SECRET])];
}

function curl(call) {
  const lines = [`curl -N${call.verb === "GET" ? "" : ` -X ${call.verb}`}`];
  for (const [name, value] of headersOf(call)) {
    lines.push(`-H ${value === SECRET ? `"${name}: ${SECRET}"` : quoted(`${name}: ${value}`)}`);
  }
  if (call.body) lines.push(`-d ${quoted(JSON.stringify(call.body))}`);
  return [...lines, quoted(call.url)].join(" \\\n  ");
}

/** Headers that have another place in gRPC, or none. */
const NOT_IN_GRPC = new Set(["A2A-Version", "Accept", "Content-Type"]);

/** The address of a gRPC interface as a URL. secure: whether the agent's other addresses have TLS. */
function grpcUrl(url, secure) {
  const [, scheme, rest] = /^(?:(\w+):\/\/)?(.*)$/.exec(url);
  const tls = scheme ? ["https", "grpcs"].includes(scheme) : secure || rest.endsWith(":443");
  return `${tls ? "https" : "http"}://${rest.replace(/\/$/, "")}`;
}

/** Where gRPC is, from the card; told when there is none. */
function buf(call, card) {
  if (!call.params) return "# gRPC has no such call";
  const found = (card.supportedInterfaces ?? []).find(({ protocolBinding, protocolVersion }) =>
    protocolBinding === "GRPC" && protocolVersion !== OLD);
  if (!found) return "# The card lists no gRPC interface of v1.0";
  const url = grpcUrl(found.url, call.place.url.startsWith("https:"));
  const params = found.tenant ? { tenant: found.tenant, ...call.params } : call.params;
  const lines = ["buf curl --protocol grpc", "-H 'A2A-Version: 1.0'"];
  for (const [name, value] of Object.entries(call.headers)) if (!NOT_IN_GRPC.has(name)) lines.push(`-H ${quoted(`${name}: ${value}`)}`);
  for (const name of call.secret) lines.push(`-H "${name}: ${SECRET}"`);
  return [...lines, `-d ${quoted(JSON.stringify(params))}`, quoted(`${url}/lf.a2a.v1.A2AService/${call.operation}`)].join(" \\\n  ");
}

function python(call) {
  const headers = headersOf(call).map(([name, value]) =>
    `    ${JSON.stringify(name)}: ${value === SECRET ? 'os.environ["CREDENTIALS"]' : JSON.stringify(value)},`);
  const body = call.body ? `json.loads(r'''${JSON.stringify(call.body).replaceAll("'''", "\\u0027\\u0027\\u0027")}''')` : "None";
  return [
    "import json", "import os", "import urllib.request", "",
    `body = ${body}`, "headers = {", ...headers, "}",
    "request = urllib.request.Request(",
    `    ${JSON.stringify(call.url)}, json.dumps(body).encode() if body else None, headers, method=${JSON.stringify(call.verb)}`,
    ")", "for line in urllib.request.urlopen(request):", "    print(line.decode(), end=\"\")",
  ].join("\n");
}

function typescript(call) {
  const headers = headersOf(call).map(([name, value]) =>
    `    ${JSON.stringify(name)}: ${value === SECRET ? "process.env.CREDENTIALS!" : JSON.stringify(value)},`);
  return [
    `const reply = await fetch(${JSON.stringify(call.url)}, {`,
    `  method: ${JSON.stringify(call.verb)},`, "  headers: {", ...headers, "  },",
    ...(call.body ? [`  body: JSON.stringify(${JSON.stringify(call.body)}),`] : []),
    "});", "for await (const chunk of reply.body!.pipeThrough(new TextDecoderStream())) console.log(chunk);",
  ].join("\n");
}

/** Ways to write a call down: name and what writes it, given the exchange and the card. */
export const SNIPPETS = { curl, "buf curl": buf, Python: python, TypeScript: typescript };
