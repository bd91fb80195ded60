/* Tasks: a list with filters and pages, and one task with its time line and push notification configs.
   Laws: everything shown was read from the server just now; an open time line follows the task. */

import { badge, button, choice, field, h, tell } from "./dom.js";
import { ENDED, fold, stateWords } from "./fold.js";
import { has } from "./operations.js";
import { partsShown, partsText, tree } from "./parts.js";

const PAGE = 50;
const STATES = ["SUBMITTED", "WORKING", "INPUT_REQUIRED", "AUTH_REQUIRED", "COMPLETED", "FAILED", "CANCELED", "REJECTED"]
  .map((word) => `TASK_STATE_${word}`);

const when = (timestamp) => (timestamp ? h("time", { datetime: timestamp }, new Date(timestamp).toLocaleString()) : "");

function row(task) {
  const status = task.status ?? {};
  return h("tr", {},
    h("td", {}, h("a", { href: `#tasks/${encodeURIComponent(task.id)}` }, h("code", {}, task.id))),
    h("td", {}, badge(stateWords(status.state))), h("td", {}, when(status.timestamp)),
    h("td", { class: "said-last" }, partsText(status.message?.parts).slice(0, 120)), h("td", {}, h("code", {}, task.contextId)));
}

/** The list. connection: has `caller`, and `lister`, which is a caller of a version that can list, or null. */
export function tasksView(connection) {
  const status = choice([["", "any"], ...STATES.map((state) => [state, stateWords(state)])]);
  const context = h("input", { size: 20, spellcheck: "false" });
  const rows = h("tbody", {});
  const told = h("p", { role: "status" });
  const tokens = [""];
  const page = async () => {
    tell(null);
    const filters = { pageSize: PAGE, status: status.value, contextId: context.value, pageToken: tokens.at(-1) };
    const given = Object.fromEntries(Object.entries(filters).filter(([, value]) => value));
    const answer = await connection.lister.call("ListTasks", given);
    const tasks = answer.tasks ?? [];
    rows.replaceChildren(...tasks.map(row));
    const first = (tokens.length - 1) * PAGE;
    told.textContent = tasks.length ? `${first + 1} to ${first + tasks.length} of ${answer.totalSize ?? "?"} tasks` : "No tasks";
    back.disabled = tokens.length === 1;
    next.disabled = !answer.nextPageToken;
    next.token = answer.nextPageToken;
  };
  const again = () => {
    tokens.length = 1;
    return page();
  };
  const back = button("Earlier page", () => { tokens.pop(); return page(); }, { disabled: true });
  const next = button("Next page", () => { tokens.push(next.token); return page(); }, { disabled: true });
  const form = h("form", { class: "row", "aria-label": "Filters", onsubmit: (event) => { event.preventDefault(); again().catch(tell); } },
    field("State", status), field("Context", context), h("button", {}, "Show"));
  if (!connection.lister) {
    return h("section", { "aria-label": "Tasks" }, h("p", {}, "This agent speaks v0.3 alone, which cannot list tasks."));
  }
  again().catch(tell);
  return h("section", { "aria-label": "Tasks" }, form, told,
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "List of tasks" }, h("table", {},
      h("thead", {}, h("tr", {}, ["Task", "State", "Since", "Last word", "Context"].map((text) => h("th", { scope: "col" }, text)))), rows)),
    h("p", { class: "row" }, back, next));
}

/** What an event says, in a word and a text. */
function summary(event) {
  if (event.task) return ["task", stateWords(event.task.status?.state), ""];
  if (event.message) return ["message", "", partsText(event.message.parts)];
  const { statusUpdate, artifactUpdate } = event;
  if (statusUpdate) return ["status", stateWords(statusUpdate.status.state), partsText(statusUpdate.status.message?.parts)];
  const { artifact, append, lastChunk } = artifactUpdate;
  return ["artifact", `${append ? "more of " : ""}${artifact.name || artifact.artifactId}${lastChunk ? ", its end" : ""}`, partsText(artifact.parts)];
}

function moment({ id, event }) {
  const [kind, what, text] = summary(event);
  const stamp = (event.statusUpdate ?? event.task)?.status?.timestamp;
  return h("li", { class: `moment of-${kind}` },
    h("details", {}, h("summary", {}, h("span", { class: "number" }, id ?? ""), ` ${kind} `, h("strong", {}, what), " ",
      h("span", { class: "said-last" }, text.slice(0, 160)), " ", when(stamp)), tree(event)));
}

/** One task. signal: ends the time line's stream when the view is left. */
export function taskView(connection, id, signal) {
  const { caller } = connection;
  const line = h("ol", { class: "timeline", "aria-label": "Time line" });
  const state = h("span", {});
  const body = h("div", {});
  let task = null;
  const show = () => {
    state.replaceChildren(badge(stateWords(task.status?.state)));
    cancel.hidden = ENDED.has(task.status?.state);
    body.replaceChildren(
      h("h3", {}, "Artifacts"), ...(task.artifacts ?? []).map((artifact) => h("article", { class: "artifact" },
        h("p", { class: "who" }, artifact.name || artifact.artifactId), partsShown(artifact.parts))),
      h("h3", {}, "History"), ...(task.history ?? []).map((message) =>
        h("div", { class: `said ${message.role === "ROLE_USER" ? "user" : "agent"}` }, partsShown(message.parts))),
      h("h3", {}, "As it is now"), tree(task));
  };
  const cancel = button("Cancel task", async () => { task = await caller.call("CancelTask", { id }); show(); }, { hidden: true });
  let drawn = true;
  const draw = () => {
    if (drawn) requestAnimationFrame(() => { drawn = true; show(); });
    drawn = false;
  };
  const follow = async () => {
    let folded = null;
    try {
      for await (const one of caller.stream("SubscribeToTask", { id }, { signal, after: 0 })) {
        line.append(moment(one));
        if (one.event.message) continue;
        task = folded = fold(folded, one.event);
        draw();
      }
    } catch (fault) {
      if (fault.name !== "AbortError") line.append(h("li", {}, `No further events: ${fault.told ?? fault.message}`));
    }
  };
  caller.call("GetTask", { id }).then((found) => { task = found; show(); return follow(); }).catch(tell);
  return h("section", { "aria-labelledby": "task-title" },
    h("p", {}, h("a", { href: "#tasks" }, "All tasks")),
    h("h2", { id: "task-title" }, "Task ", h("code", {}, id), " ", state), h("p", { class: "row" }, cancel),
    h("h3", {}, "Time line"), line, body, pushView(connection, id));
}

function pushView({ caller, card }, taskId) {
  const list = h("ul", { class: "configs" });
  const title = h("h3", {}, "Push notification configs");
  if (!card.capabilities?.pushNotifications) return h("div", {}, title, h("p", {}, "This agent sends no push notifications."));
  const fill = async () => {
    const { configs = [] } = await caller.call("ListTaskPushNotificationConfigs", { taskId });
    list.replaceChildren(...configs.map((config) => h("li", {}, h("code", {}, config.id), ` ${config.url} `,
      button("Delete", async () => { await caller.call("DeleteTaskPushNotificationConfig", { taskId, id: config.id }); await fill(); },
        { "aria-label": `Delete config ${config.id}` }))));
  };
  const url = h("input", { type: "url", required: true, size: 30 });
  const token = h("input", { size: 12, autocomplete: "off" });
  const add = async (event) => {
    event.preventDefault();
    tell(null);
    try {
      await caller.call("CreateTaskPushNotificationConfig", { taskId, url: url.value, ...(token.value && { token: token.value }) });
      await fill();
    } catch (fault) {
      tell(fault);
    }
  };
  fill().catch(tell);
  return h("div", {}, title, list, h("form", { class: "row", "aria-label": "New config", onsubmit: add },
    field("Webhook", url), field("Token", token), h("button", {}, "Add")));
}

/** A caller that can list, for the places of a card: the chosen one, or the first of v1.0. */
export const listerOf = (caller, places, make) => {
  if (has("ListTasks", caller.place.version)) return caller;
  const place = places.find(({ version }) => has("ListTasks", version));
  return place ? make(place) : null;
};
