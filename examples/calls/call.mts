// call.mts
// Asks an agent over REST, and prints the answer as it comes. Usage: node call.mjs http://HOST:PORT WORDS
declare const process: { argv: string[] };

type Part = { text?: string; data?: unknown };
type Event = {
  task?: { id: string };
  artifactUpdate?: { artifact: { parts: Part[] } };
  statusUpdate?: { status: { state: string } };
};

const [url, text] = process.argv.slice(2);
const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }] };
const reply = await fetch(`${url}/message:stream`, {
  method: "POST",
  headers: { "A2A-Version": "1.0", "Content-Type": "application/json" },
  body: JSON.stringify({ message }),
});
if (!reply.ok) throw new Error((await reply.json()).error.message);

let rest = "";
const decoder = new TextDecoder();
const reader = reply.body!.getReader();
for (let read = await reader.read(); !read.done; read = await reader.read()) {
  const lines = (rest + decoder.decode(read.value, { stream: true })).split("\n");
  rest = lines.pop()!;
  for (const line of lines.filter((line) => line.startsWith("data: "))) {
    const { artifactUpdate, statusUpdate }: Event = JSON.parse(line.slice("data: ".length));
    for (const part of artifactUpdate?.artifact.parts ?? []) console.log(part.text ?? part.data);
    if (statusUpdate) console.log(statusUpdate.status.state);
  }
}
