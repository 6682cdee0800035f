// What extensions add to a revision, as definitions beside those of the core: the suite has no schema of them.

const ref = (name) => ({ $ref: `#/$defs/${name}` });
const text = { type: "string" };
const count = { type: "integer", minimum: 0 };
const list = (items) => ({ type: "array", items });
const object = (properties, required) => ({ type: "object", properties, required });
const request = (method, params, required) =>
  object(
    { jsonrpc: { const: "2.0" }, id: ref("RequestId"), method: { const: method }, params: object(params, required) },
    ["jsonrpc", "id", "method", ...(required.length > 0 ? ["params"] : [])],
  );

/** Adds the tasks extension to the definitions of 2026-07-28. */
function tasks(defs) {
  const status = { enum: ["working", "input_required", "completed", "failed", "cancelled"] };
  const time = { type: "string", format: "date-time" };
  const task = {
    taskId: text,
    status,
    statusMessage: text,
    createdAt: time,
    lastUpdatedAt: time,
    ttlMs: { type: ["integer", "null"], minimum: 0 },
    pollIntervalMs: count,
  };
  const always = ["taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"];
  // What comes with a status comes with it always, and with no other.
  const details = { inputRequests: ref("InputRequests"), result: ref("CallToolResult"), error: ref("Error") };
  const belongs = { input_required: "inputRequests", completed: "result", failed: "error" };
  const only = status.enum.map((value) => {
    const others = Object.keys(details).filter((name) => name !== belongs[value]);
    const then = {
      required: belongs[value] ? [belongs[value]] : [],
      properties: Object.fromEntries(others.map((name) => [name, false])),
    };
    return { if: { properties: { status: { const: value } } }, then };
  });
  const meta = ref("ResultMetaObject");
  defs.CreatedTask = object({ resultType: { const: "task" }, _meta: meta, ...task }, ["resultType", ...always]);
  defs.GetTaskResult = {
    ...object({ resultType: { const: "complete" }, _meta: meta, ...task, ...details }, ["resultType", ...always]),
    allOf: only,
  };
  const params = { ...object({ _meta: ref("NotificationMetaObject"), ...task, ...details }, always), allOf: only };
  defs.TaskNotification = object(
    { jsonrpc: { const: "2.0" }, method: { const: "notifications/tasks" }, params },
    ["jsonrpc", "method", "params"],
  );
  const named = { _meta: ref("RequestMetaObject"), taskId: text };
  defs.GetTaskRequest = request("tasks/get", named, ["_meta", "taskId"]);
  defs.CancelTaskRequest = request("tasks/cancel", named, ["_meta", "taskId"]);
  const answers = { ...named, inputResponses: ref("InputResponses") };
  defs.UpdateTaskRequest = request("tasks/update", answers, ["_meta", "taskId", "inputResponses"]);
  defs.SubscriptionFilter.properties.taskIds = list(text);
  defs.ClientRequest.anyOf.push(ref("GetTaskRequest"), ref("CancelTaskRequest"), ref("UpdateTaskRequest"));
  defs.ServerNotification.anyOf.push(ref("TaskNotification"));
}

/** Adds the skills extension to a revision's definitions. */
function skills(defs, isModern) {
  const file = object({ uri: text, digest: { type: "string", pattern: "^sha256:[0-9a-f]{64}$" }, size: count }, [
    "uri",
    "digest",
    "size",
  ]);
  // The rest of it is the author's.
  const front = { ...object({ name: text, description: text }, ["name", "description"]), additionalProperties: true };
  const skill = object(
    { _meta: { type: "object" }, uri: text, frontmatter: front, resources: { anyOf: [list(file), { const: "dynamic" }] } },
    ["uri", "frontmatter", "resources"],
  );
  const meta = { type: "object" };
  const age = { ttlMs: count, cacheScope: { enum: ["public", "private"] } };
  const result = (properties, required, isCached) => {
    if (!isModern) return object({ _meta: meta, ...properties }, required);
    const all = { resultType: { const: "complete" }, _meta: meta, ...age, ...properties };
    return object(all, ["resultType", ...(isCached ? Object.keys(age) : []), ...required]);
  };
  const ask = (method, properties, required) =>
    request(method, { _meta: isModern ? ref("RequestMetaObject") : meta, ...properties }, [
      ...(isModern ? ["_meta"] : []),
      ...required,
    ]);
  defs.ListSkillsRequest = ask("skills/list", { cursor: text }, []);
  defs.ListSkillsResult = result({ skills: list(skill), nextCursor: text }, ["skills"], true);
  defs.GetSkillRequest = ask("skills/get", { uri: text }, ["uri"]);
  defs.GetSkillResult = result({ skill }, ["skill"], true);
  defs.ReadResourceDirectoryRequest = ask("resources/directory/read", { uri: text, cursor: text }, ["uri"]);
  defs.ReadResourceDirectoryResult = result({ resources: list(ref("Resource")), nextCursor: text }, ["resources"], false);
  defs.ClientRequest.anyOf.push(...["ListSkills", "GetSkill", "ReadResourceDirectory"].map((name) => ref(`${name}Request`)));
}

/** Adds what the extensions have to the definitions of a revision. */
export function extend(defs, revision) {
  if (revision >= "2026") tasks(defs);
  if (revision >= "2025-11-25") skills(defs, revision >= "2026");
}
