// An agent on @a2a-js/sdk 1.x, on every wire and version that it serves. Usage: server.mjs HTTP_PORT GRPC_PORT; prints
// one line when it is ready. It obeys as the servers in Python do, and keeps its tasks in memory.
import { Role, TaskState } from "@a2a-js/sdk";
import { LegacyA2AService, legacyGrpcService } from "@a2a-js/sdk/compat/v0_3/server/grpc";
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } from "@a2a-js/sdk/server/express";
import { A2AService, grpcService } from "@a2a-js/sdk/server/grpc";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import express from "express";

const [http, grpc] = process.argv.slice(2);
const pieces = Array.from({ length: 40 }, (_, number) => `${number} `);
const part = (value) => ({ content: { $case: "text", value }, filename: "", mediaType: "" });
const say = (taskId, contextId, words) => ({
  messageId: `said-${words}-${Math.random()}`,
  taskId,
  contextId,
  role: Role.ROLE_AGENT,
  parts: [part(words)],
  extensions: [],
  referenceTaskIds: [],
});
const canceled = new Set();

class Obedient {
  async execute({ userMessage, taskId, contextId, task }, bus) {
    const word = userMessage.parts[0].content.value;
    if (word === "reply") {
      bus.publish(AgentEvent.message(say("", contextId, "said")));
      return bus.finished();
    }
    const status = (state, message) => ({ state, message, timestamp: new Date().toISOString() });
    const update = (state, message) =>
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(state, message), metadata: undefined }));
    const fresh = { id: taskId, contextId, status: status(TaskState.TASK_STATE_SUBMITTED), artifacts: [] };
    bus.publish(AgentEvent.task(task ?? { ...fresh, history: [userMessage], metadata: undefined }));
    update(TaskState.TASK_STATE_WORKING);
    if (word === "ask" || word === "auth") {
      const state = word === "ask" ? TaskState.TASK_STATE_INPUT_REQUIRED : TaskState.TASK_STATE_AUTH_REQUIRED;
      update(state, say(taskId, contextId, "Which?"));
      return bus.finished();
    }
    while (word === "wait" && !canceled.has(taskId)) await new Promise((done) => setTimeout(done, 20));
    if (canceled.has(taskId)) {
      update(TaskState.TASK_STATE_CANCELED);
      return bus.finished();
    }
    const told = word === "slow" ? pieces : ["echo ", word];
    for (const [number, piece] of told.entries()) {
      if (word === "slow") await new Promise((done) => setTimeout(done, 30));
      const about = { artifactId: "answer", name: "", description: "", extensions: [], metadata: undefined };
      const [append, lastChunk] = [number > 0, number === told.length - 1];
      const artifact = { ...about, parts: [part(piece)] };
      bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append, lastChunk, metadata: undefined }));
    }
    update(TaskState.TASK_STATE_COMPLETED);
    bus.finished();
  }

  async cancelTask(taskId) {
    canceled.add(taskId);
  }
}

const urls = { JSONRPC: `http://127.0.0.1:${http}/rpc`, "HTTP+JSON": `http://127.0.0.1:${http}/rest` };
const entry = (protocolVersion) => ([protocolBinding, url]) => ({ url, protocolBinding, protocolVersion, tenant: "" });
const modes = ["text/plain"];
const skill = { id: "obey", name: "Obey", description: "Obeys.", tags: ["test"], examples: [] };
const card = {
  name: "Official",
  description: "Obeys.",
  version: "1",
  supportedInterfaces: ["1.0", "0.3"].flatMap((version) =>
    Object.entries({ ...urls, GRPC: `127.0.0.1:${grpc}` }).map(entry(version)),
  ),
  capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: false, extensions: [] },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: modes,
  defaultOutputModes: modes,
  skills: [{ ...skill, inputModes: modes, outputModes: modes, securityRequirements: [] }],
  signatures: [],
};

const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Obedient());
const options = { requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat: { enabled: true } };
const app = express();
app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler, ...options }));
app.use("/rpc", jsonRpcHandler(options));
app.use("/rest", restHandler(options));
const server = new Server();
server.addService(A2AService, grpcService(options));
server.addService(LegacyA2AService, legacyGrpcService(options));
server.bindAsync(`127.0.0.1:${grpc}`, ServerCredentials.createInsecure(), () =>
  app.listen(Number(http), "127.0.0.1", () => console.log("ready")),
);
