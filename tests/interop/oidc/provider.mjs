// An OpenID provider for tests: client credentials, tokens that are JWTs of one audience, keys that rotate.
//
// Usage: node provider.mjs PORT AUDIENCE. A line "rotate" on stdin puts a new key before the others and answers
// "rotated"; it prints "ready" once it listens. The keys of earlier lines are gone from the third on.
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { generateKeyPairSync } from "node:crypto";

import Provider from "oidc-provider";

const [port, audience] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const keys = [];
let handler;

function rotate() {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  keys.unshift({ ...privateKey.export({ format: "jwk" }), kid: `key-${Date.now()}-${keys.length}`, use: "sig", alg: "RS256" });
  keys.splice(2);
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: "orders",
        client_secret: "not-a-secret",
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
      },
    ],
    scopes: ["a2a", "other"],
    jwks: { keys },
    cookies: { keys: ["only-for-tests"] },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_, resource) => ({
          audience: resource,
          scope: "a2a other",
          accessTokenFormat: "jwt",
          accessTokenTTL: Number(process.env.TOKEN_SECONDS ?? 3600),
        }),
        defaultResource: () => audience,
        useGrantedResource: () => true,
      },
    },
  });
  handler = provider.callback();
}

rotate();
createServer((request, response) => handler(request, response)).listen(Number(port), "127.0.0.1", () => console.log("ready"));
createInterface({ input: process.stdin }).on("line", () => {
  rotate();
  console.log("rotated");
}).on("close", () => process.exit(0));
