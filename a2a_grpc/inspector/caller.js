/* Calls on one interface of an agent: one answer, or events as they come.
   Laws: answers and events are those of v1.0, whatever was spoken; every exchange is shown to a recorder. */

import { OLD, REST, RPC, request } from "./operations.js";
import { events } from "./sse.js";
import { answerUp } from "./v03.js";

/** What a server answered instead of a result, in its own words. */
export class AgentError extends Error {
  constructor(text, { code, reason = "", violations = [] } = {}) {
    super(text);
    Object.assign(this, { code, reason, violations });
  }

  /** All of it in one line. */
  get told() {
    const head = [this.code, this.reason].filter((word) => word !== undefined && word !== "").join(" ");
    const fields = this.violations.map(({ field, description }) => `${field}: ${description}`).join("; ");
    const more = fields && !this.message.includes(fields) ? ` (${fields})` : "";
    return `${head ? `${head}: ` : ""}${this.message}${more}`;
  }
}

/** The error in a reply of any wire, null when there is none. */
export function errorIn(status, body) {
  const error = body?.error ?? (status >= 400 ? (body ?? {}) : null);
  if (!error) return null;
  const details = error.details ?? error.data ?? [];
  const list = Array.isArray(details) ? details : [];
  return new AgentError(error.message ?? body?.detail ?? body?.title ?? `HTTP status ${status}`, {
    code: error.code ?? status,
    reason: list.find((detail) => detail.reason)?.reason,
    violations: list.flatMap((detail) => detail.fieldViolations ?? []),
  });
}

/** Headers for credentials. scheme: "", "bearer", "basic" or "key". */
export function credentialHeaders({ scheme, name, secret }) {
  if (!scheme || !secret) return {};
  if (scheme === "key") return { [name]: secret };
  const bytes = new TextEncoder().encode(secret);
  const value = scheme === "basic" ? `Basic ${btoa(String.fromCharCode(...bytes))}` : `Bearer ${secret}`;
  return { Authorization: value };
}

/** An exchange that begins now, as a recorder is shown it. secret: headers with credentials. */
function begun({ operation, params, verb, url, headers, secret, body, place }) {
  return {
    operation, params, verb, url, headers, secret: Object.keys(secret), body, place,
    begun: performance.now(), status: null, answer: null, events: [], took: null,
  };
}

function ended(exchange, record) {
  exchange.took = Math.round(performance.now() - exchange.begun);
  record(exchange);
}

/** What is at an address, which is no operation: its body as JSON. name: what the call is called. Throws AgentError. */
export async function fetched(name, url, credentials, record) {
  const secret = credentialHeaders(credentials);
  const exchange = begun({
    operation: name, params: null, verb: "GET", url, headers: {}, secret, body: null, place: { url, binding: "HTTP", version: "" },
  });
  record(exchange);
  try {
    // A browser would take headers of one's own along to wherever a redirect leads.
    const redirect = exchange.secret.length ? "error" : "follow";
    const reply = await fetch(url, { headers: secret, redirect, cache: "no-cache" });
    exchange.status = reply.status;
    const body = await readJson(reply, exchange);
    const error = errorIn(reply.status, body);
    if (error) throw error;
    return body;
  } catch (fault) {
    if (fault instanceof AgentError) throw fault;
    exchange.answer = String(fault);
    throw new AgentError(`${url} cannot be reached from this page (${fault.message}); it may not allow other origins`);
  } finally {
    ended(exchange, record);
  }
}

export class Caller {
  /** place: {url, binding, version, tenant}; credentials: see credentialHeaders; record: told of each exchange. */
  constructor(place, credentials, record) {
    Object.assign(this, { place, credentials, record });
  }

  #begin(operation, params, more = {}) {
    const { verb, url, body } = request(this.place, operation, params);
    const secret = credentialHeaders(this.credentials);
    const headers = { "A2A-Version": this.place.version, ...(body && { "Content-Type": "application/json" }), ...more };
    const exchange = begun({ operation, params, verb, url, headers, secret, body, place: this.place });
    this.record(exchange);
    return { exchange, init: { method: verb, headers: { ...headers, ...secret }, body: body && JSON.stringify(body) } };
  }

  async #fetch(exchange, init, signal) {
    try {
      const reply = await fetch(exchange.url, { ...init, signal, cache: "no-store", redirect: "error" });
      exchange.status = reply.status;
      return reply;
    } catch (fault) {
      if (fault.name === "AbortError") throw fault;
      exchange.answer = String(fault);
      throw new AgentError(`${exchange.url} cannot be reached from this page (${fault.message})`);
    }
  }

  #up(operation, answer) {
    return this.place.version === OLD ? answerUp(operation, answer) : answer;
  }

  /** The answer to one call. Throws AgentError. */
  async call(operation, params) {
    const { exchange, init } = this.#begin(operation, params);
    try {
      const reply = await this.#fetch(exchange, init);
      const body = await readJson(reply, exchange);
      const error = errorIn(reply.status, body);
      if (error) throw error;
      return this.#up(operation, this.place.binding === RPC ? body.result : body);
    } finally {
      ended(exchange, this.record);
    }
  }

  /** The events of a stream, as {id, event}. after: number of the last event seen. Throws AgentError, AbortError. */
  async *stream(operation, params, { signal, after } = {}) {
    const more = { Accept: "text/event-stream", ...(after !== undefined && { "Last-Event-ID": String(after) }) };
    const { exchange, init } = this.#begin(operation, params, more);
    try {
      const reply = await this.#fetch(exchange, init, signal);
      if (!(reply.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
        const body = await readJson(reply, exchange);
        throw errorIn(reply.status, body) ?? new AgentError("The answer is no event stream", { code: reply.status });
      }
      for await (const { id, type, data } of events(reply.body)) {
        const body = parse(data);
        exchange.events.push({ id, type, body });
        this.record(exchange);
        const error = errorIn(type === "error" ? 500 : 200, body);
        if (error) throw error;
        yield { id, event: this.#up(operation, this.place.binding === REST ? body : body.result) };
      }
    } finally {
      ended(exchange, this.record);
    }
  }
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new AgentError(`This is no JSON: ${text.slice(0, 200)}`);
  }
}

async function readJson(reply, exchange) {
  const text = await reply.text();
  exchange.answer = text;
  const body = text ? parseOr(text, null) : {};
  if (body === null && reply.ok) throw new AgentError(`The answer is no JSON: ${text.slice(0, 200)}`);
  exchange.answer = body ?? text;
  return body;
}

function parseOr(text, otherwise) {
  try {
    return JSON.parse(text);
  } catch {
    return otherwise;
  }
}
