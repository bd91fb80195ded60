// Calls an agent through stubs that ts-proto made from the protos of this project.
// Usage: node client.js HOST:PORT. Prints one JSON line a step.
import { credentials, type Metadata, type ServiceError } from "@grpc/grpc-js";
import * as v03 from "./a2a/v1/a2a.js";
import { ErrorInfo } from "./google/rpc/error_details.js";
import { Status } from "./google/rpc/status.js";
import * as v1 from "./lf/a2a/v1/a2a.js";

type Done<T> = (fault: ServiceError | null, answer: T) => void;
type Texts = { parts: { text?: string | undefined }[] };

const show = (step: string, facts: object) => console.log(JSON.stringify({ step, ...facts }));
const text = (artifacts: Texts[]) =>
  artifacts.flatMap(({ parts }) => parts.map((part) => part.text ?? "")).join("");

const call = <T>(start: (done: Done<T>) => unknown) =>
  new Promise<T>((resolve, reject) => start((fault, answer) => (fault ? reject(fault) : resolve(answer))));

const details = (metadata: Metadata) =>
  metadata.get("grpc-status-details-bin").flatMap((bytes) => Status.decode(bytes as Buffer).details);

async function showError(step: string, started: Promise<unknown>) {
  const fault = await started.then(
    () => Promise.reject(new Error(`${step} was no error`)),
    (fault: ServiceError) => fault,
  );
  const found = details(fault.metadata).find((detail) => detail.typeUrl.endsWith("/google.rpc.ErrorInfo"));
  const { reason, domain } = ErrorInfo.decode(found!.value);
  show(step, { status: fault.code, reason, domain });
}

async function current(address: string) {
  const client = new v1.A2AServiceClient(address, credentials.createInsecure());
  const request = (messageId: string) =>
    v1.SendMessageRequest.fromPartial({
      message: { messageId, role: v1.Role.ROLE_USER, parts: [{ text: "hello" }, { data: { n: 1 } }] },
    });
  const { task } = await call<v1.SendMessageResponse>((done) => client.sendMessage(request("ts-1"), done));
  show("send", { state: v1.taskStateToJSON(task!.status!.state), text: text(task!.artifacts) });
  let [streamed, state] = ["", ""];
  for await (const event of client.sendStreamingMessage(request("ts-2")) as AsyncIterable<v1.StreamResponse>) {
    if (event.artifactUpdate) streamed += text([event.artifactUpdate.artifact!]);
    if (event.statusUpdate) state = v1.taskStateToJSON(event.statusUpdate.status!.state);
  }
  show("stream", { state, text: streamed });
  const unknown = v1.GetTaskRequest.fromPartial({ id: "nobody" });
  await showError("error", call((done) => client.getTask(unknown, done)));
  client.close();
}

async function old(address: string) {
  const client = new v03.A2AServiceClient(address, credentials.createInsecure());
  const request = (messageId: string) =>
    v03.SendMessageRequest.fromPartial({
      request: { messageId, role: v03.Role.ROLE_USER, content: [{ text: "hello" }] },
      configuration: { blocking: true },
    });
  const { task } = await call<v03.SendMessageResponse>((done) => client.sendMessage(request("ts-3"), done));
  show("send 0.3", { state: v03.taskStateToJSON(task!.status!.state), text: text(task!.artifacts) });
  let [streamed, state, final] = ["", "", false];
  for await (const event of client.sendStreamingMessage(request("ts-4")) as AsyncIterable<v03.StreamResponse>) {
    if (event.artifactUpdate) streamed += text([event.artifactUpdate.artifact!]);
    const update = event.statusUpdate;
    if (update) [state, final] = [v03.taskStateToJSON(update.status!.state), update.final];
  }
  show("stream 0.3", { state, text: streamed, final });
  const unknown = v03.GetTaskRequest.fromPartial({ name: "tasks/nobody" });
  await showError("error 0.3", call((done) => client.getTask(unknown, done)));
  client.close();
}

await current(process.argv[2]!);
await old(process.argv[2]!);
