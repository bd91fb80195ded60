// An agent on stubs that ts-proto made from the protos of this project, and on nothing else: v1.0 over gRPC alone.
// Usage: node server.js. Prints HOST:PORT. Texts are said again in pieces; "refuse" is answered by an error of its own,
// and "wait" works until it is canceled.
import * as grpc from "@grpc/grpc-js";
import { Any } from "./google/protobuf/any.js";
import { ErrorInfo } from "./google/rpc/error_details.js";
import { Status } from "./google/rpc/status.js";
import * as v1 from "./lf/a2a/v1/a2a.js";

const tasks = new Map<string, v1.Task>();
const stops = new Map<string, () => void>();

function failed(code: grpc.status, reason: string, text: string): grpc.ServiceError {
  const info = ErrorInfo.encode(ErrorInfo.fromPartial({ reason, domain: "a2a-protocol.org", metadata: { at: "ts" } }));
  const typeUrl = "type.googleapis.com/google.rpc.ErrorInfo";
  const details = [Any.fromPartial({ typeUrl, value: Buffer.from(info.finish()) })];
  const metadata = new grpc.Metadata();
  const status = Status.encode(Status.fromPartial({ code, message: text, details }));
  metadata.set("grpc-status-details-bin", Buffer.from(status.finish()));
  return Object.assign(new Error(text), { code, details: text, metadata });
}

const missing = () => failed(grpc.status.NOT_FOUND, "TASK_NOT_FOUND", "no such task here");

function begun(message: v1.Message): v1.Task {
  const id = `ts-${tasks.size + 1}`;
  const status = { state: v1.TaskState.TASK_STATE_WORKING };
  const task = v1.Task.fromPartial({ id, contextId: message.contextId || "ts", status });
  tasks.set(id, task);
  return task;
}

async function work(message: v1.Message, tell: (event: v1.StreamResponse) => void): Promise<v1.Task> {
  const text = message.parts.map((part) => part.text ?? "").join("");
  if (text === "refuse") throw failed(grpc.status.INVALID_ARGUMENT, "CONTENT_TYPE_NOT_SUPPORTED", "not that");
  const task = begun(message);
  const about = { taskId: task.id, contextId: task.contextId };
  tell(v1.StreamResponse.fromPartial({ task }));
  if (text === "wait") {
    await new Promise<void>((stop) => stops.set(task.id, stop));
  } else {
    const words = text.split(" ");
    for (const [at, word] of words.entries()) {
      const artifact = { artifactId: "said", parts: [{ text: at ? ` ${word}` : word }] };
      const lastChunk = at === words.length - 1;
      tell(v1.StreamResponse.fromPartial({ artifactUpdate: { ...about, artifact, append: at > 0, lastChunk } }));
    }
    task.artifacts = [v1.Artifact.fromPartial({ artifactId: "said", parts: [{ text }] })];
    task.status = v1.TaskStatus.fromPartial({ state: v1.TaskState.TASK_STATE_COMPLETED });
  }
  tell(v1.StreamResponse.fromPartial({ statusUpdate: { ...about, status: task.status } }));
  return task;
}

const server = new grpc.Server();
server.addService(v1.A2AServiceService, {
  sendMessage(
    call: grpc.ServerUnaryCall<v1.SendMessageRequest, v1.SendMessageResponse>,
    done: grpc.sendUnaryData<v1.SendMessageResponse>,
  ) {
    work(call.request.message!, () => {}).then(
      (task) => done(null, v1.SendMessageResponse.fromPartial({ task })),
      (fault) => done(fault),
    );
  },
  sendStreamingMessage(call: grpc.ServerWritableStream<v1.SendMessageRequest, v1.StreamResponse>) {
    work(call.request.message!, (event) => call.write(event)).then(
      () => call.end(),
      (fault) => call.emit("error", fault),
    );
  },
  getTask(call: grpc.ServerUnaryCall<v1.GetTaskRequest, v1.Task>, done: grpc.sendUnaryData<v1.Task>) {
    const task = tasks.get(call.request.id);
    return task ? done(null, task) : done(missing());
  },
  cancelTask(call: grpc.ServerUnaryCall<v1.CancelTaskRequest, v1.Task>, done: grpc.sendUnaryData<v1.Task>) {
    const task = tasks.get(call.request.id);
    if (!task) return done(missing());
    if (task.status?.state !== v1.TaskState.TASK_STATE_WORKING)
      return done(failed(grpc.status.FAILED_PRECONDITION, "TASK_NOT_CANCELABLE", "it has ended"));
    task.status = v1.TaskStatus.fromPartial({ state: v1.TaskState.TASK_STATE_CANCELED });
    stops.get(task.id)?.();
    done(null, task);
  },
} as grpc.UntypedServiceImplementation);
server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (fault, port) => {
  if (fault) throw fault;
  console.log(`127.0.0.1:${port}`);
});
