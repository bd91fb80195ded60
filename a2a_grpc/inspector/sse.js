/* Events of a text/event-stream body, as they arrive.
   Laws: bytes in, {id, type, data} out; what data means is not known here. */

/** The events of a body; id is that of the last event that had one. */
export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let id = "";
  let type = "";
  let data = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        if (line === "") {
          if (data.length) yield { id, type, data: data.join("\n") };
          type = "";
          data = [];
          continue;
        }
        const [, name, text] = /^([^:]*):? ?(.*)$/s.exec(line);
        if (name === "data") data.push(text);
        else if (name === "id") id = text;
        else if (name === "event") type = text;
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
