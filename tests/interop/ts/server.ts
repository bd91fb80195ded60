// An agent on stubs that ts-proto made from the protos of this project, and on nothing else: v1.0 over gRPC alone.
// Usage: node server.js. Prints HOST:PORT. Texts are said again in pieces; "refuse" is answered by an error of its own.
import * as grpc from "@grpc/grpc-js";
import { Any } from "./google/protobuf/any.js";
import { ErrorInfo } from "./google/rpc/error_details.js";
import { Status } from "./google/rpc/status.js";
import * as v1 from "./lf/a2a/v1/a2a.js";

const tasks = new Map<string, v1.Task>();

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

const said = (message: v1.Message) => message.parts.map((part) => part.text ?? "").join("");

function* work(task: v1.Task, text: string): Generator<v1.StreamResponse> {
  const about = { taskId: task.id, contextId: task.contextId };
  const words = text.split(" ");
  yield v1.StreamResponse.fromPartial({ task });
  for (const [at, word] of words.entries()) {
    const artifact = { artifactId: "said", parts: [{ text: at ? ` ${word}` : word }] };
    yield v1.StreamResponse.fromPartial({
      artifactUpdate: { ...about, artifact, append: at > 0, lastChunk: at === words.length - 1 },
    });
  }
  task.artifacts = [v1.Artifact.fromPartial({ artifactId: "said", parts: [{ text }] })];
  task.status = v1.TaskStatus.fromPartial({ state: v1.TaskState.TASK_STATE_COMPLETED });
  yield v1.StreamResponse.fromPartial({ statusUpdate: { ...about, status: task.status } });
}

const server = new grpc.Server();
server.addService(v1.A2AServiceService, {
  sendMessage(
    call: grpc.ServerUnaryCall<v1.SendMessageRequest, v1.SendMessageResponse>,
    done: grpc.sendUnaryData<v1.SendMessageResponse>,
  ) {
    const text = said(call.request.message!);
    if (text === "refuse") return done(failed(grpc.status.INVALID_ARGUMENT, "CONTENT_TYPE_NOT_SUPPORTED", "not that"));
    const task = begun(call.request.message!);
    for (const _ of work(task, text));
    done(null, v1.SendMessageResponse.fromPartial({ task }));
  },
  sendStreamingMessage(call: grpc.ServerWritableStream<v1.SendMessageRequest, v1.StreamResponse>) {
    for (const event of work(begun(call.request.message!), said(call.request.message!))) call.write(event);
    call.end();
  },
  getTask(call: grpc.ServerUnaryCall<v1.GetTaskRequest, v1.Task>, done: grpc.sendUnaryData<v1.Task>) {
    const task = tasks.get(call.request.id);
    return task ? done(null, task) : done(missing());
  },
} as grpc.UntypedServiceImplementation);
server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (fault, port) => {
  if (fault) throw fault;
  console.log(`127.0.0.1:${port}`);
});
