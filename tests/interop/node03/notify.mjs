// Sends push notifications as servers on @a2a-js/sdk 0.3 do. Usage: notify.mjs URL TOKEN.
import { DefaultPushNotificationSender } from "@a2a-js/sdk/server";

const [url, token] = process.argv.slice(2);
const configs = { load: async () => [{ url, token }] };
for (const state of ["working", "completed"]) {
  await new DefaultPushNotificationSender(configs).send({ kind: "task", id: "t", contextId: "c", status: { state } });
}
