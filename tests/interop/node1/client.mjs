// Takes the scenario through @a2a-js/sdk 1.x. Usage: client.mjs BASE_URL BINDING VERSION CARD; prints one JSON line a
// step. CARD is the version in which the card is asked for: that of the SDK is 1.0. With an agent that offers both, 0.3
// is what makes the SDK choose its compatibility transports.
import { Role } from "@a2a-js/sdk";
import * as sdk from "@a2a-js/sdk/client";
import { GrpcTransportFactory } from "@a2a-js/sdk/client/grpc";

const [url, binding, version, cardVersion] = process.argv.slice(2);
const hook = "https://hooks.example/a2a";
const bytes = "00ff6869";
const states = Object.fromEntries(
  ["SUBMITTED", "WORKING", "COMPLETED", "FAILED", "CANCELED"].map((name, number) => [number + 1, `TASK_STATE_${name}`]),
);

const show = (step, facts) => console.log(JSON.stringify({ step, ...facts }));
const state = (status) => states[status.state];
const text = (artifacts) =>
  artifacts
    .flatMap(({ parts }) => parts)
    .map(({ content }) => (content.$case === "text" ? content.value : ""))
    .join("");

const part = ($case, value, filename = "", mediaType = "") => ({ content: { $case, value }, filename, mediaType });
const request = (words, returnImmediately = false, more = []) => ({
  tenant: "",
  message: {
    messageId: `node1-${words}`,
    contextId: "",
    taskId: "",
    role: Role.ROLE_USER,
    parts: words ? [part("text", words), ...more] : [],
    extensions: [],
    referenceTaskIds: [],
  },
  configuration: { acceptedOutputModes: [], returnImmediately },
});

async function follow(step, events, first) {
  let [kinds, told, words] = [[], "", ""];
  for await (const { payload } of events) {
    kinds.push(payload.$case);
    if (kinds.length === 1 && first) await first();
    if (payload.$case === "task") [told, words] = [state(payload.value.status), text(payload.value.artifacts)];
    if (payload.$case === "statusUpdate") told = state(payload.value.status);
    if (payload.$case === "artifactUpdate") words += text([payload.value.artifact]);
  }
  show(step, { first: kinds[0], state: told, text: words });
}

async function error(step, call) {
  await call.then(
    (answer) => show(step, { answer }),
    // Inside a stream the SDK wraps the error that it recognised.
    (fault) => show(step, { error: fault.name === "Error" ? fault.cause?.name : fault.name, text: fault.message }),
  );
}

async function parts(client) {
  const file = part("raw", Buffer.from(bytes, "hex"), "a.bin", "image/png");
  const done = await client.sendMessage(request("parts", false, [part("data", { n: [1, true] }), file]));
  const [first, second] = done.artifacts[0].parts;
  const seen = { name: second.filename, media: second.mediaType, bytes: second.content.value.toString("hex") };
  show("parts", { data: first.content.value, ...seen });
}

async function push(client, taskId) {
  const named = { tenant: "", taskId, id: "hook" };
  const config = await client.createTaskPushNotificationConfig({ ...named, url: hook, token: "t" });
  const got = await client.getTaskPushNotificationConfig(named);
  const page = { tenant: "", taskId, pageSize: 0, pageToken: "" };
  const list = async () => (await client.listTaskPushNotificationConfig(page)).configs;
  for (const [step, row] of [["push-create", config], ["push-get", got]])
    show(step, { task: row.taskId === taskId, id: row.id, url: row.url, token: row.token });
  show("push-list", { ids: (await list()).map((row) => row.id) });
  await client.deleteTaskPushNotificationConfig(named);
  show("push-delete", { left: (await list()).length });
}

const old = { legacyCompat: { enabled: true } };
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
  transports: [new sdk.JsonRpcTransportFactory(old), new sdk.RestTransportFactory(old), new GrpcTransportFactory(old)],
  preferredTransports: [binding],
  cardResolver: new sdk.DefaultAgentCardResolver({
    ...old,
    fetchImpl: (address) => fetch(address, { headers: { "A2A-Version": cardVersion } }),
  }),
});
const client = await factory.createFromUrl(url);
const card = await client.getAgentCard();
const versions = card.supportedInterfaces.map((row) => row.protocolVersion);
show("card", { name: card.name, versions: [...new Set(versions)].sort() });

const done = await client.sendMessage(request("hello"));
show("send", { state: state(done.status), text: text(done.artifacts) });
await parts(client);
await follow("stream", client.sendMessageStream(request("hello")));
const got = await client.getTask({ tenant: "", id: done.id, historyLength: 5 });
show("get", { state: state(got.status), text: text(got.artifacts), history: got.history.length > 0 });
if (version === "1.0") {
  const query = { tenant: "", contextId: done.contextId, status: 0, pageToken: "", includeArtifacts: true };
  await client.listTasks(query).then(
    (page) => show("list", { total: page.totalSize, text: text(page.tasks[0].artifacts) }),
    (fault) => show("list", { error: fault.constructor.name }), // as of an agent that lists none
  );
}
const running = await client.sendMessage(request("wait", true));
show("send-now", { state: state(running.status) });
await push(client, running.id);
const named = { tenant: "", id: running.id };
const stop = async () => show("cancel", { state: state((await client.cancelTask(named)).status) });
await follow("subscribe", client.resubscribeTask(named), stop);
await error("cancel-finished", client.cancelTask(named));
await error("unknown-task", client.getTask({ tenant: "", id: "nobody" }));
await error("bad-message", client.sendMessage(request("")));
await error("bad-stream", follow("bad-stream", client.sendMessageStream(request(""))));
process.exit(0); // the gRPC channel would hold it
