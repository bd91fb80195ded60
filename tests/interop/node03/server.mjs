// An agent on @a2a-js/sdk 0.3.x, on every wire that it serves. Usage: server.mjs HTTP_PORT GRPC_PORT; prints one line
// when it is ready. It obeys as the servers in Python do, and keeps its tasks in memory.
import { DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } from "@a2a-js/sdk/server/express";
import { A2AService, grpcService } from "@a2a-js/sdk/server/grpc";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import express from "express";

const [http, grpc] = process.argv.slice(2);
const pieces = Array.from({ length: 40 }, (_, number) => `${number} `);
const part = (text) => ({ kind: "text", text });
const say = (taskId, contextId, words) => ({
  kind: "message",
  messageId: `said-${words}-${Math.random()}`,
  taskId,
  contextId,
  role: "agent",
  parts: [part(words)],
});
const canceled = new Set();

class Obedient {
  async execute({ userMessage, taskId, contextId, task }, bus) {
    const word = userMessage.parts[0].text;
    if (word === "reply") {
      bus.publish(say(undefined, contextId, "said"));
      return bus.finished();
    }
    const update = (state, final = false, message = undefined) => {
      const status = { state, message, timestamp: new Date().toISOString() };
      bus.publish({ kind: "status-update", taskId, contextId, status, final });
    };
    if (!task) {
      const status = { state: "submitted", timestamp: new Date().toISOString() };
      bus.publish({ kind: "task", id: taskId, contextId, status, history: [userMessage], artifacts: [] });
    }
    update("working");
    if (word === "ask" || word === "auth") {
      update(word === "ask" ? "input-required" : "auth-required", true, say(taskId, contextId, "Which?"));
      return bus.finished();
    }
    while (word === "wait" && !canceled.has(taskId)) await new Promise((done) => setTimeout(done, 20));
    if (canceled.has(taskId)) {
      update("canceled", true);
      return bus.finished();
    }
    const told = word === "slow" ? pieces : ["echo ", word];
    for (const [number, piece] of told.entries()) {
      if (word === "slow") await new Promise((done) => setTimeout(done, 30));
      const artifact = { artifactId: "answer", parts: [part(piece)] };
      const [append, lastChunk] = [number > 0, number === told.length - 1];
      bus.publish({ kind: "artifact-update", taskId, contextId, artifact, append, lastChunk });
    }
    update("completed", true);
    bus.finished();
  }

  async cancelTask(taskId) {
    canceled.add(taskId);
  }
}

const urls = { JSONRPC: `http://127.0.0.1:${http}/rpc`, "HTTP+JSON": `http://127.0.0.1:${http}/rest` };
const card = {
  name: "Official",
  description: "Obeys.",
  version: "1",
  protocolVersion: "0.3.0",
  url: urls.JSONRPC,
  preferredTransport: "JSONRPC",
  additionalInterfaces: Object.entries({ ...urls, GRPC: `127.0.0.1:${grpc}` }).map(([transport, url]) => ({
    transport,
    url,
  })),
  capabilities: { streaming: true, pushNotifications: true },
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [{ id: "obey", name: "Obey", description: "Obeys.", tags: ["test"] }],
};

const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Obedient());
const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
const app = express();
app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler }));
app.use("/rpc", jsonRpcHandler(options));
app.use("/rest", restHandler(options));
const server = new Server();
server.addService(A2AService, grpcService(options));
server.bindAsync(`127.0.0.1:${grpc}`, ServerCredentials.createInsecure(), () =>
  app.listen(Number(http), "127.0.0.1", () => console.log("ready")),
);
