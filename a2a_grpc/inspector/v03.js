/* v0.3 JSON, as JSON-RPC (with `kind`) and REST (ProtoJSON) write it, to and from the JSON of v1.0.
   Laws: the only file that names a member of v0.3; objects in, new objects out. */

const COMPAT = "data_part_compat";
const MARKER = "a2a_grpc.v1";

const stateUp = (state) => {
  if (/^TASK_STATE_/.test(state)) return state === "TASK_STATE_CANCELLED" ? "TASK_STATE_CANCELED" : state;
  return state && state !== "unknown" ? `TASK_STATE_${state.toUpperCase().replace("-", "_")}` : undefined;
};
const roleUp = (role) => (/^ROLE_/.test(role) ? role : `ROLE_${(role || "").toUpperCase()}`);

function partUp(part) {
  const { kind, metadata, ...rest } = part;
  const markers = metadata?.[MARKER] ?? {};
  if ("text" in rest) return { text: rest.text, ...markers };
  if (rest.file) {
    const { bytes, fileWithBytes, uri, fileWithUri, mimeType, name } = rest.file;
    const raw = bytes ?? fileWithBytes;
    const content = raw !== undefined ? { raw } : { url: uri ?? fileWithUri };
    return { ...content, ...(mimeType && { mediaType: mimeType }), ...(name && { filename: name }) };
  }
  const data = kind ? rest.data : rest.data?.data;
  return { data: metadata?.[COMPAT] ? data.value : data, ...markers };
}

function partDown(part, rest) {
  if ("text" in part) return rest ? { text: part.text } : { kind: "text", text: part.text };
  if ("data" in part) {
    const plain = part.data !== null && typeof part.data === "object" && !Array.isArray(part.data);
    const data = plain ? part.data : { value: part.data };
    const extra = plain ? {} : { metadata: { [COMPAT]: true } };
    return rest ? { data: { data }, ...extra } : { kind: "data", data, ...extra };
  }
  const more = { ...(part.mediaType && { mimeType: part.mediaType }), ...(part.filename && { name: part.filename }) };
  const content = rest
    ? ("raw" in part ? { fileWithBytes: part.raw } : { fileWithUri: part.url })
    : ("raw" in part ? { bytes: part.raw } : { uri: part.url });
  return rest ? { file: { ...content, ...more } } : { kind: "file", file: { ...content, ...more } };
}

function messageUp(message) {
  const { kind, role, parts, content, ...rest } = message;
  return { ...rest, role: roleUp(role), parts: (parts ?? content ?? []).map(partUp) };
}

function messageDown(message, rest) {
  const { parts, role, ...more } = message;
  const lowered = parts.map((part) => partDown(part, rest));
  if (rest) return { ...more, role, content: lowered };
  return { ...more, kind: "message", role: role.replace("ROLE_", "").toLowerCase(), parts: lowered };
}

function statusUp(status) {
  const said = status.message ?? status.update;
  return {
    state: stateUp(status.state),
    ...(said && { message: messageUp(said) }),
    ...(status.timestamp && { timestamp: status.timestamp }),
  };
}

const artifactUp = (artifact) => ({ ...artifact, parts: (artifact.parts ?? []).map(partUp) });

/** A task of v0.3 as v1.0 writes it. */
function taskUp(task) {
  const { kind, status, artifacts, history, ...rest } = task;
  return {
    ...rest,
    status: statusUp(status ?? {}),
    artifacts: (artifacts ?? []).map(artifactUp),
    history: (history ?? []).map(messageUp),
  };
}

const statusUpdateUp = ({ kind, final, status, ...rest }) => ({ ...rest, status: statusUp(status) });
const artifactUpdateUp = ({ kind, artifact, ...rest }) => ({ ...rest, artifact: artifactUp(artifact) });

/** An answer to a send, or an event of a stream: {task}, {message}, {statusUpdate} or {artifactUpdate}. */
export function eventUp(event) {
  const kinds = {
    task: (value) => ({ task: taskUp(value) }),
    message: (value) => ({ message: messageUp(value) }),
    msg: (value) => ({ message: messageUp(value) }),
    "status-update": (value) => ({ statusUpdate: statusUpdateUp(value) }),
    "artifact-update": (value) => ({ artifactUpdate: artifactUpdateUp(value) }),
    statusUpdate: (value) => ({ statusUpdate: statusUpdateUp(value) }),
    artifactUpdate: (value) => ({ artifactUpdate: artifactUpdateUp(value) }),
  };
  const kind = event.kind ?? Object.keys(event).find((name) => name in kinds);
  return kinds[kind](event.kind ? event : event[kind]);
}

function configUp(config) {
  const { pushNotificationConfig, taskId, name } = config;
  return { taskId: taskId ?? name?.split("/")[1], ...pushNotificationConfig };
}

function configDown({ taskId, id, url, token }, rest) {
  const config = { ...(id && { id }), url, ...(token && { token }) };
  if (!rest) return { taskId, pushNotificationConfig: config };
  return { name: `tasks/${taskId}/pushNotificationConfigs/${id ?? ""}`, pushNotificationConfig: config };
}

const sendDown = ({ message, configuration = {} }, rest) => ({
  message: messageDown(message, rest),
  configuration: {
    blocking: !configuration.returnImmediately,
    ...(configuration.historyLength !== undefined && { historyLength: configuration.historyLength }),
  },
});

const DOWN = {
  SendMessage: sendDown,
  SendStreamingMessage: sendDown,
  CreateTaskPushNotificationConfig: configDown,
  ListTaskPushNotificationConfigs: ({ taskId }) => ({ id: taskId }),
  DeleteTaskPushNotificationConfig: ({ taskId, id }) => ({ id: taskId, pushNotificationConfigId: id }),
};

/** The parameters of a call as v0.3 wants them. rest: as ProtoJSON, in a body; else as JSON-RPC. */
export const paramsDown = (operation, params, rest) => (DOWN[operation] ?? ((same) => same))(params, rest);

const listUp = (answer) => ({ configs: (Array.isArray(answer) ? answer : (answer?.configs ?? [])).map(configUp) });

const UP = {
  SendMessage: eventUp,
  SendStreamingMessage: eventUp,
  SubscribeToTask: eventUp,
  GetTask: taskUp,
  CancelTask: taskUp,
  CreateTaskPushNotificationConfig: configUp,
  ListTaskPushNotificationConfigs: listUp,
  DeleteTaskPushNotificationConfig: () => ({}),
};

/** An answer of v0.3, of whichever wire, as v1.0 writes it. */
export const answerUp = (operation, answer) => UP[operation](answer);
