/* What each operation is called on each wire and version.
   Laws: one row an operation; requests are computed from the rows. Parameters are those of v1.0 everywhere. */

import { paramsDown } from "./v03.js";

/** name: [v0.3 method, verb, path, whether it streams]; a null method: v0.3 has no such operation. */
export const ROWS = {
  SendMessage: ["message/send", "POST", "/message:send", false],
  SendStreamingMessage: ["message/stream", "POST", "/message:stream", true],
  GetTask: ["tasks/get", "GET", "/tasks/{id}", false],
  ListTasks: [null, "GET", "/tasks", false],
  CancelTask: ["tasks/cancel", "POST", "/tasks/{id}:cancel", false],
  SubscribeToTask: ["tasks/resubscribe", "GET", "/tasks/{id}:subscribe", true],
  CreateTaskPushNotificationConfig:
    ["tasks/pushNotificationConfig/set", "POST", "/tasks/{taskId}/pushNotificationConfigs", false],
  ListTaskPushNotificationConfigs:
    ["tasks/pushNotificationConfig/list", "GET", "/tasks/{taskId}/pushNotificationConfigs", false],
  DeleteTaskPushNotificationConfig:
    ["tasks/pushNotificationConfig/delete", "DELETE", "/tasks/{taskId}/pushNotificationConfigs/{id}", false],
};

export const OLD = "0.3";
export const RPC = "JSONRPC";
export const REST = "HTTP+JSON";

/** Whether a version has an operation. */
export const has = (operation, version) => version !== OLD || ROWS[operation][0] !== null;

let lastId = 0;

/** {verb, url, body} of a call. place: {url, binding, version, tenant}; params: as in v1.0. */
export function request(place, operation, params) {
  const [method, verb, path] = ROWS[operation];
  const old = place.version === OLD;
  const full = !old && place.tenant ? { tenant: place.tenant, ...params } : params;
  if (place.binding === RPC) {
    lastId += 1;
    const named = old ? { method, params: paramsDown(operation, full, false) } : { method: operation, params: full };
    return { verb: "POST", url: place.url, body: { jsonrpc: "2.0", id: lastId, ...named } };
  }
  const rest = { ...full };
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => {
    const value = encodeURIComponent(rest[name]);
    delete rest[name];
    return value;
  });
  const base = place.url.replace(/\/$/, "") + (old ? "/v1" : "");
  if (verb === "POST") {
    return { verb, url: base + filled, body: old ? paramsDown(operation, { ...full }, true) : rest };
  }
  const query = new URLSearchParams(Object.entries(rest).filter(([, value]) => value !== "" && value !== undefined));
  return { verb, url: base + filled + (query.size ? `?${query}` : ""), body: null };
}
