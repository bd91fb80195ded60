// Takes the scenario through @a2a-js/sdk 0.3.x. Usage: client.mjs BASE_URL BINDING; prints one JSON line a step.
import * as sdk from "@a2a-js/sdk/client";
import { GrpcTransportFactory } from "@a2a-js/sdk/client/grpc";

const [url, binding] = process.argv.slice(2);
const hook = "https://hooks.example/a2a";
const bytes = "00ff6869";

const show = (step, facts) => console.log(JSON.stringify({ step, ...facts }));
const text = (artifacts) => (artifacts ?? []).flatMap(({ parts }) => parts.map((part) => part.text ?? "")).join("");

const params = (words, blocking = true, more = []) => ({
  message: {
    kind: "message",
    messageId: `node03-${words}`,
    role: "user",
    parts: words ? [{ kind: "text", text: words }, ...more] : [],
  },
  configuration: { blocking },
});

async function follow(step, events, first) {
  let [kinds, told, words, final] = [[], "", "", undefined];
  for await (const event of events) {
    kinds.push(event.kind);
    if (kinds.length === 1 && first) await first();
    if (event.kind === "task") [told, words] = [event.status.state, text(event.artifacts)];
    if (event.kind === "status-update") [told, final] = [event.status.state, event.final];
    if (event.kind === "artifact-update") words += text([event.artifact]);
  }
  show(step, { first: kinds[0], state: told, text: words, final });
}

async function error(step, call) {
  await call.then(
    (answer) => show(step, { answer }),
    (fault) => show(step, { error: fault.constructor.name, text: fault.message }),
  );
}

async function parts(client) {
  const content = Buffer.from(bytes, "hex").toString("base64");
  const file = { kind: "file", file: { bytes: content, mimeType: "image/png", name: "a.bin" } };
  const done = await client.sendMessage(params("parts", true, [{ kind: "data", data: { n: [1, true] } }, file]));
  const [first, { file: second }] = done.artifacts[0].parts;
  const seen = { name: second.name ?? "", media: second.mimeType };
  show("parts", { data: first.data, bytes: Buffer.from(second.bytes, "base64").toString("hex"), ...seen });
}

async function push(client, taskId) {
  const config = { id: "hook", url: hook, token: "t" };
  const made = await client.setTaskPushNotificationConfig({ taskId, pushNotificationConfig: config });
  const named = { id: taskId, pushNotificationConfigId: "hook" };
  const got = await client.getTaskPushNotificationConfig(named);
  for (const [step, row] of [["push-create", made], ["push-get", got]]) {
    const { id, url, token } = row.pushNotificationConfig;
    show(step, { task: row.taskId === taskId, id, url, token });
  }
  const list = () => client.listTaskPushNotificationConfig({ id: taskId });
  show("push-list", { ids: (await list()).map((row) => row.pushNotificationConfig.id) });
  await client.deleteTaskPushNotificationConfig(named);
  show("push-delete", { left: (await list()).length });
}

// A2A_METADATA in the environment is NAME=VALUE, to be sent with every call.
const [, shownName, shownValue] = /^([^=]+)=(.*)$/.exec(process.env.A2A_METADATA ?? "") ?? [];
const interceptor = {
  before: async (args) => {
    const serviceParameters = { ...args.options?.serviceParameters, [shownName]: shownValue };
    args.options = { ...args.options, serviceParameters };
  },
  after: async () => {},
};
const factory = new sdk.ClientFactory({
  clientConfig: { interceptors: shownName ? [interceptor] : [] },
  transports: [new sdk.JsonRpcTransportFactory(), new sdk.RestTransportFactory(), new GrpcTransportFactory()],
  preferredTransports: [binding],
});
const client = await factory.createFromUrl(url);
const card = await client.getAgentCard();
show("card", { name: card.name, versions: [card.protocolVersion] });

const done = await client.sendMessage(params("hello"));
show("send", { state: done.status.state, text: text(done.artifacts) });
await parts(client);
await follow("stream", client.sendMessageStream(params("hello")));
const got = await client.getTask({ id: done.id, historyLength: 5 });
show("get", { state: got.status.state, text: text(got.artifacts), history: got.history.length > 0 });
const running = await client.sendMessage(params("wait", false));
show("send-now", { state: running.status.state });
await push(client, running.id);
const named = { id: running.id };
const stop = async () => show("cancel", { state: (await client.cancelTask(named)).status.state });
await follow("subscribe", client.resubscribeTask(named), stop);
await error("cancel-finished", client.cancelTask(named));
await error("unknown-task", client.getTask({ id: "nobody" }));
await error("bad-message", client.sendMessage(params("")));
await error("bad-stream", follow("bad-stream", client.sendMessageStream(params(""))));
process.exit(0); // the gRPC channel would hold it
