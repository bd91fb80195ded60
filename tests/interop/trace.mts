// Asks an agent, with a trace of its own and a webhook. Usage: node trace.mjs URL WEBHOOK TRACEPARENT
declare const process: { argv: string[] };

const [url, webhook, traceparent] = process.argv.slice(2) as [string, string, string];
const reply = await fetch(`${url}/message:send`, {
  method: "POST",
  headers: { "A2A-Version": "1.0", "Content-Type": "application/json", traceparent },
  body: JSON.stringify({
    message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text: "Where is order 1001?" }] },
    configuration: { taskPushNotificationConfig: { url: webhook } },
  }),
});
const { task }: { task: { status: { state: string } } } = await reply.json();
console.log(JSON.stringify({ step: "send", state: task.status.state }));
