/* A task as its events leave it.
   Laws: the events are those of v1.0; a new task is given back, the one before is left alone. */

export const ENDED = new Set(["COMPLETED", "FAILED", "CANCELED", "REJECTED"].map((word) => `TASK_STATE_${word}`));
export const PAUSED = new Set(["INPUT_REQUIRED", "AUTH_REQUIRED"].map((word) => `TASK_STATE_${word}`));

/** A state in plain words, such as "input required". */
export const stateWords = (state = "") => state.replace("TASK_STATE_", "").replaceAll("_", " ").toLowerCase();

function withArtifact(artifacts, { artifact, append }) {
  const at = artifacts.findIndex(({ artifactId }) => artifactId === artifact.artifactId);
  if (at < 0) return [...artifacts, artifact];
  const before = artifacts[at];
  const parts = append ? joined(before.parts ?? [], artifact.parts ?? []) : artifact.parts;
  return artifacts.with(at, { ...before, ...artifact, parts });
}

/** Chunks of text follow each other as one text. */
function joined(parts, more) {
  const last = parts.at(-1);
  const [first, ...others] = more;
  const same = last && first && "text" in last && "text" in first && last.mediaType === first.mediaType;
  return same ? [...parts.slice(0, -1), { ...last, text: last.text + first.text }, ...others] : [...parts, ...more];
}

/** The task after one more event; task: null before the first. */
export function fold(task, event) {
  if (event.task) return event.task;
  const { statusUpdate, artifactUpdate } = event;
  const { taskId: id, contextId } = statusUpdate ?? artifactUpdate;
  const before = task ?? { id, contextId, status: {}, artifacts: [] };
  if (artifactUpdate) return { ...before, artifacts: withArtifact(before.artifacts ?? [], artifactUpdate) };
  const said = before.status?.message;
  const history = said ? [...(before.history ?? []), said] : before.history;
  return { ...before, status: statusUpdate.status, history };
}
