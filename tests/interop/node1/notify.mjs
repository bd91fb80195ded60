// Sends push notifications as servers on @a2a-js/sdk 1.x do. Usage: notify.mjs URL TOKEN.
import { StreamResponse } from "@a2a-js/sdk";
import { DefaultPushNotificationSender } from "@a2a-js/sdk/server";

const [url, token] = process.argv.slice(2);
const configs = { loadWithMetadata: async () => [{ config: { url, token }, wireVersion: "1.0" }] };
const about = { taskId: "t", contextId: "c" };
const artifact = { artifactId: "a", parts: [{ text: "one" }] };
for (const event of [
  { task: { id: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" } } },
  { artifactUpdate: { ...about, artifact } },
  { statusUpdate: { ...about, status: { state: "TASK_STATE_COMPLETED" } } },
]) {
  await new DefaultPushNotificationSender(configs).send(StreamResponse.fromJSON(event), {});
}
