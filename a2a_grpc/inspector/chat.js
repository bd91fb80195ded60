/* The chat: one conversation, streamed, with pauses answered by forms and streams that are taken up again.
   Laws: what is shown is made from tasks and messages of v1.0; a conversation is one contextId. */

import { badge, button, h, tell } from "./dom.js";
import { ENDED, fold, PAUSED, stateWords } from "./fold.js";
import { answerForm } from "./forms.js";
import { partsShown, SCHEMA } from "./parts.js";

/** How many pixels above its end a conversation still counts as being read there. */
const NEAR = 80;

const said = (who, parts) => h("div", { class: `said ${who}` }, h("p", { class: "who" }, who === "user" ? "You" : "Agent"), partsShown(parts));

const artifactShown = ({ name, parts }) => h("article", { class: "artifact", "aria-label": name || "Artifact" },
  name && h("p", { class: "who" }, name), partsShown(parts));

/** A turn in the transcript: one task, or a message instead of one. */
class Turn {
  constructor(chat) {
    this.chat = chat;
    this.task = null;
    this.last = undefined;
    this.drawn = [];
    this.waits = false;
    this.artifacts = h("div", {});
    this.body = h("div", {});
    this.line = h("p", { class: "state" });
    this.element = h("li", { class: "turn" }, this.artifacts, this.body, this.line);
  }

  take({ id, event }) {
    if (id) this.last = id;
    if (event.message) {
      this.chat.contextId = event.message.contextId;
      this.body.replaceChildren(said("agent", event.message.parts));
      this.chat.toEnd();
    } else {
      this.task = fold(this.task, event);
      this.chat.contextId = this.task.contextId;
      this.#soon();
    }
    this.show();
  }

  /** Events may come faster than anybody can see. */
  #soon() {
    if (!this.waits) requestAnimationFrame(() => { this.waits = false; this.#draw(); });
    this.waits = true;
  }

  /** Draw what has changed, and leave alone what somebody may be reading, or be at with the keyboard. */
  #draw() {
    const { status, artifacts = [] } = this.task;
    const follow = this.chat.atEnd;
    artifacts.forEach((artifact, index) => {
      const there = this.artifacts.children[index];
      if (there && this.drawn[index] === artifact) return;
      if (there) there.replaceWith(artifactShown(artifact));
      else this.artifacts.append(artifactShown(artifact));
    });
    while (this.artifacts.children.length > artifacts.length) this.artifacts.lastChild.remove();
    this.drawn = artifacts;
    if (this.status !== status) {
      this.status = status;
      this.body.replaceChildren(...this.#last(status));
    }
    if (follow) this.chat.toEnd();
  }

  #last({ state, message }) {
    return [
      message && h("div", { class: `status ${stateWords(state).replaceAll(" ", "-")}` }, partsShown(message.parts)),
      PAUSED.has(state) && this.#form(message),
    ].filter(Boolean);
  }

  #form(message) {
    const asked = message?.parts?.find(({ mediaType }) => mediaType === SCHEMA)?.data ?? { type: "string", title: "Answer" };
    return answerForm(asked, (value) => {
      const part = typeof value === "string" ? { text: value } : { data: value };
      this.chat.send([part], this.task.id).catch(tell);
    });
  }

  /** The state of the task, and what can be done with it. */
  show() {
    const running = this.chat.reading === this;
    const state = this.task?.status?.state;
    const open = this.task && !ENDED.has(state);
    this.element.setAttribute("aria-busy", running);
    // The buttons stay where they are while nothing changes, or nobody could press one.
    const now = [running, this.task?.id, state].join();
    if (this.shown === now) return;
    this.shown = now;
    this.line.replaceChildren(...[
      this.task && badge(stateWords(state)),
      running && button("Stop reading", () => this.chat.stop()),
      !running && open && !PAUSED.has(state) && button("Resume", () => this.chat.resume(this)),
      open && button("Cancel task", () => this.chat.cancel(this)),
      this.task && h("a", { href: `#tasks/${this.task.id}` }, "Details"),
    ].filter(Boolean));
  }
}

export class Chat {
  /** connection: has `caller` and `card`. */
  constructor(connection) {
    this.connection = connection;
    this.contextId = "";
    this.reading = null;
    this.files = [];
    this.log = h("ol", {});
    this.scroll = h("div", { class: "transcript", role: "log", "aria-label": "Conversation", tabindex: 0 }, this.log);
    this.text = h("textarea", {
      id: "message", rows: 2, required: true, placeholder: "Say something",
      onkeydown: (event) => {
        if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
          event.preventDefault();
          this.form.requestSubmit();
        }
      },
    });
    this.whole = h("input", { type: "checkbox" });
    this.attach = h("input", { type: "file", multiple: true });
    this.form = h("form", { class: "composer", "aria-label": "Message", onsubmit: (event) => this.#submit(event) },
      h("label", { for: "message" }, "Message"), this.text,
      h("div", { class: "row" },
        h("label", {}, "Files ", this.attach), h("label", {}, this.whole, " answer in one piece"),
        button("New conversation", () => this.clear()), h("button", { class: "main" }, "Send")));
    this.element = h("section", { class: "chat", "aria-label": "Chat" }, this.scroll, this.form);
  }

  /** Whether the end can be seen, so that whoever reads further up is left there. */
  get atEnd() {
    return this.scroll.scrollHeight - this.scroll.scrollTop - this.scroll.clientHeight < NEAR;
  }

  toEnd() {
    this.scroll.scrollTop = this.scroll.scrollHeight;
  }

  /** Forget the conversation; tasks go on. */
  clear() {
    this.stop();
    this.contextId = "";
    this.log.replaceChildren();
    this.text.focus();
  }

  async #submit(event) {
    event.preventDefault();
    const text = this.text.value.trim();
    const files = await Promise.all([...this.attach.files].map(filePart));
    if (!text && !files.length) return;
    this.text.value = this.attach.value = "";
    await this.send([...(text ? [{ text }] : []), ...files]).catch(tell);
  }

  /** Send a message, on a task that waits for one if taskId says so, and show what comes. */
  async send(parts, taskId) {
    tell(null);
    this.stop();
    const turn = new Turn(this);
    this.log.append(h("li", {}, said("user", parts)), turn.element);
    this.toEnd();
    const message = {
      messageId: crypto.randomUUID?.() ?? String(Math.random()).slice(2), role: "ROLE_USER", parts,
      ...(this.contextId && { contextId: this.contextId }), ...(taskId && { taskId }),
    };
    if (this.whole.checked || this.connection.card.capabilities?.streaming === false) {
      turn.take({ event: await this.connection.caller.call("SendMessage", { message }) });
      return;
    }
    await this.#read(turn, "SendStreamingMessage", { message });
  }

  async #read(turn, operation, params, after) {
    const control = new AbortController();
    this.control = control;
    this.reading = turn;
    turn.show();
    try {
      for await (const one of this.connection.caller.stream(operation, params, { signal: control.signal, after })) {
        turn.take(one);
      }
    } catch (fault) {
      if (fault.name !== "AbortError") throw fault;
    } finally {
      if (this.reading === turn) this.reading = null;
      turn.show();
    }
  }

  /** Read no further; the task goes on. */
  stop() {
    this.control?.abort();
    this.reading = null;
  }

  /** Go on reading after the last event that was seen. */
  async resume(turn) {
    tell(null);
    await this.#read(turn, "SubscribeToTask", { id: turn.task.id }, turn.last);
  }

  async cancel(turn) {
    tell(null);
    const task = await this.connection.caller.call("CancelTask", { id: turn.task.id });
    if (this.reading !== turn) turn.take({ event: { task } });
  }
}

async function filePart(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return { raw: btoa(text), mediaType: file.type || "application/octet-stream", filename: file.name };
}
