// What every JavaScript client is asked to do with the everything server. `client` is the small
// face that ts-1.mjs and ts-2.mjs give to their SDK:
//
//   tools() resources() templates() prompts()          lists
//   call(name, args, {onprogress, signal, meta})       read(uri) prompt(name, args)
//   complete(ref, argument, context) ping() level(l)
//   subscribe(uri) unsubscribe(uri) listen(filter)     close()
//   version() serverName() canDo(feature)
//   tasks: make(name, args) whole(name, args) get(id) result(id) list() cancel(id), if the SDK has them
//   seen.logs seen.updated seen.toolsChanged           what arrived so far
//   answers.elicit(params) answers.sample(params)      what to answer with, set by the checks

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

const CHECK_MS_MAX = 25_000;
const UPDATE_MS_MAX = 9_000;
const ROOT = { uri: "file:///interop/root", name: "interop root" };
const TEXT = "demo://resource/dynamic/text/";
const BLOB = "demo://resource/dynamic/blob/";

/** Thrown by a check that the client or the revision cannot do; the message says why. */
class LeftOut extends Error {}

export function leaveOut(why) {
  throw new LeftOut(why);
}

/** The texts of a result. */
export const text = (result) => result.content.map((block) => block.text ?? "").join("\n");

async function until(condition, ms, what) {
  const end = Date.now() + ms;
  while (!condition()) {
    if (Date.now() > end) assert.fail(`${what} did not come within ${ms} ms`);
    await sleep(20);
  }
}

/** A call that must fail: as a tool error or as a JSON-RPC error. */
export async function fails(promise) {
  let result;
  try {
    result = await promise;
  } catch (error) {
    assert.ok(error.message.length > 0);
    return error.message;
  }
  assert.equal(result.isError, true, `no error: ${JSON.stringify(result).slice(0, 200)}`);
  assert.ok(text(result).length > 0, "an error without words");
  return text(result);
}

function form(params) {
  assert.equal(params.requestedSchema.type, "object");
  const fields = Object.keys(params.requestedSchema.properties);
  assert.ok(fields.length >= 8, `only ${fields.length} fields`);
  assert.ok(params.message.length > 0);
}

const RESEARCH = "simulate-research-query";

/** The face for tasks, where client and revision have them. */
function tasksOf(client, lane) {
  if (lane.revision !== "2025-11-25") leaveOut("tasks of this form are of 2025-11-25");
  if (!client.tasks) leaveOut("this client has no tasks");
  if (lane.through === "modern") leaveOut("a bridge does not translate tasks between eras");
  return client.tasks;
}

const CHECKS = {
  connect(client, lane) {
    assert.equal(client.version(), lane.revision);
    assert.ok(client.serverName());
  },
  async ping(client, lane) {
    if (lane.modern) leaveOut("2026-07-28 has no ping");
    await client.ping();
  },
  async "tools-list"(client) {
    const tools = await client.tools();
    for (const name of ["echo", "get-sum", "get-structured-content", "get-tiny-image"]) {
      const tool = tools.find((tool) => tool.name === name);
      assert.ok(tool, `no tool ${name}`);
      assert.equal(tool.inputSchema.type, "object");
    }
  },
  async "resources-list"(client) {
    const resources = await client.resources();
    assert.ok(resources.length > 0);
    for (const { uri, name } of resources) assert.ok(uri && name);
  },
  async "templates-list"(client) {
    const uris = (await client.templates()).map((template) => template.uriTemplate);
    assert.ok(uris.includes(`${TEXT}{resourceId}`), uris.join(" "));
    assert.ok(uris.includes(`${BLOB}{resourceId}`), uris.join(" "));
  },
  async "prompts-list"(client) {
    const prompts = await client.prompts();
    const args = prompts.find((prompt) => prompt.name === "args-prompt");
    assert.equal(args.arguments.find((argument) => argument.name === "city").required, true);
    assert.ok(prompts.some((prompt) => prompt.name === "simple-prompt"));
  },
  async "call-text"(client) {
    const message = "grüße 你好 \u{1F600} \"quoted\" \\ \u2028 end";
    assert.equal(text(await client.call("echo", { message })), `Echo: ${message}`);
  },
  async "call-numbers"(client) {
    assert.match(text(await client.call("get-sum", { a: 2, b: 40 })), /\b42\b/);
  },
  async "call-structured"(client, lane) {
    const result = await client.call("get-structured-content", { location: "Chicago" });
    const told = JSON.parse(text(result));
    assert.equal(typeof told.temperature, "number");
    if (lane.revision >= "2025-06-18") assert.deepEqual(result.structuredContent, told);
    else if (!lane.reference) assert.equal(result.structuredContent, undefined);
  },
  async "call-image"(client) {
    const { content } = await client.call("get-tiny-image", {});
    const image = content.find((block) => block.type === "image");
    assert.equal(image.mimeType, "image/png");
    assert.equal(Buffer.from(image.data, "base64").subarray(1, 4).toString(), "PNG");
  },
  async "call-embedded"(client) {
    const { content } = await client.call("get-resource-reference", { resourceType: "Text", resourceId: 1 });
    const block = content.find((block) => block.type === "resource");
    assert.equal(block.resource.uri, `${TEXT}1`);
    assert.ok(block.resource.text);
  },
  async "call-links"(client, lane) {
    const { content } = await client.call("get-resource-links", { count: 2 });
    const links = content.filter((block) => block.type === "resource_link");
    if (lane.revision >= "2025-06-18") assert.equal(links.length, 2);
    else if (!lane.reference) assert.equal(links.length, 0, "resource_link came with 2025-06-18");
  },
  async "call-error"(client) {
    assert.match(await fails(client.call("echo", {})), /message/);
  },
  async "call-unknown"(client) {
    assert.match(await fails(client.call("no-such-tool", {})), /no-such-tool/);
  },
  async "read-text"(client) {
    const { contents } = await client.read(`${TEXT}7`);
    assert.equal(contents[0].uri, `${TEXT}7`);
    assert.match(contents[0].text, /7/);
  },
  async "read-blob"(client) {
    const { contents } = await client.read(`${BLOB}8`);
    assert.ok(Buffer.from(contents[0].blob, "base64").length > 0);
  },
  async "read-listed"(client) {
    const [{ uri }] = await client.resources();
    const { contents } = await client.read(uri);
    assert.equal(contents[0].uri, uri);
  },
  async "read-unknown"(client) {
    await assert.rejects(client.read("demo://no/such/resource"), /./);
  },
  async "prompt-simple"(client) {
    const { messages } = await client.prompt("simple-prompt");
    assert.equal(messages[0].role, "user");
    assert.ok(messages[0].content.text);
  },
  async "prompt-args"(client) {
    const { messages } = await client.prompt("args-prompt", { city: "Oslo", state: "Viken" });
    assert.match(messages[0].content.text, /Oslo/);
    assert.match(messages[0].content.text, /Viken/);
    await assert.rejects(client.prompt("args-prompt", {}), /./);
  },
  async "prompt-resource"(client) {
    const asked = { resourceType: "Text", resourceId: "3" };
    const { messages } = await client.prompt("resource-prompt", asked);
    const block = messages.map((message) => message.content).find((block) => block.type === "resource");
    assert.equal(block.resource.uri, `${TEXT}3`);
  },
  async "complete-prompt"(client, lane) {
    const ref = { type: "ref/prompt", name: "completable-prompt" };
    const first = await client.complete(ref, { name: "department", value: "E" });
    assert.deepEqual(first.completion.values, ["Engineering"]);
    if (lane.revision < "2025-06-18") return;
    const context = { arguments: { department: "Sales" } };
    const second = await client.complete(ref, { name: "name", value: "D" }, context);
    assert.deepEqual(second.completion.values, ["David"]);
  },
  async "complete-template"(client) {
    const ref = { type: "ref/resource", uri: `${TEXT}{resourceId}` };
    const found = await client.complete(ref, { name: "resourceId", value: "7" });
    assert.deepEqual(found.completion.values, ["7"]);
  },
  async "log-level"(client, lane) {
    if (lane.modern) leaveOut("2026-07-28 has no logging/setLevel; see log-per-request");
    await client.level("debug");
    const before = client.seen.logs.length;
    await client.call("toggle-simulated-logging", {});
    await until(() => client.seen.logs.length > before, UPDATE_MS_MAX, "a log message");
    await client.call("toggle-simulated-logging", {});
    assert.ok(client.seen.logs.at(-1).level);
    await client.level("emergency");
    const quiet = client.seen.logs.length;
    await client.call("toggle-simulated-logging", {});
    await sleep(300);
    await client.call("toggle-simulated-logging", {});
    for (const { level } of client.seen.logs.slice(quiet)) assert.equal(level, "emergency");
  },
  async "log-per-request"(client, lane) {
    if (!lane.modern) leaveOut("a legacy session sets its level once; see log-level");
    const before = client.seen.logs.length;
    await client.call("toggle-simulated-logging", {});
    await client.call("toggle-simulated-logging", {});
    await sleep(200);
    assert.equal(client.seen.logs.length, before, "a message that no request asked for");
    const meta = { "io.modelcontextprotocol/logLevel": "debug" };
    await client.call("toggle-simulated-logging", {}, { meta });
    await until(() => client.seen.logs.length > before, UPDATE_MS_MAX, "a log message");
    await client.call("toggle-simulated-logging", {});
  },
  async progress(client) {
    const steps = [];
    const options = { onprogress: (step) => steps.push(step) };
    const name = "trigger-long-running-operation";
    const result = await client.call(name, { duration: 1, steps: 4 }, options);
    assert.match(text(result), /Long running operation completed/);
    assert.ok(steps.length >= 3, `${steps.length} notifications`);
    steps.reduce((last, step) => {
      assert.ok(step.progress > last, "progress must rise");
      assert.equal(step.total, 4);
      return step.progress;
    }, 0);
  },
  async cancel(client) {
    const aborter = new AbortController();
    const args = { duration: 60, steps: 60 };
    const options = { signal: aborter.signal };
    const running = client.call("trigger-long-running-operation", args, options);
    const ended = assert.rejects(running, /./);
    await sleep(400);
    aborter.abort("enough");
    const since = Date.now();
    await ended;
    assert.equal(text(await client.call("echo", { message: "next" })), "Echo: next");
    assert.ok(Date.now() - since < 3_000, "the next call had to wait");
  },
  async "elicit-accept"(client, lane) {
    if (lane.revision < "2025-06-18") leaveOut("elicitation came with 2025-06-18");
    client.answers.elicit = (params) => {
      form(params);
      return { action: "accept", content: { name: "Ada Lovelace", check: true, integer: 42 } };
    };
    const result = await client.call("trigger-elicitation-request", {});
    assert.notEqual(result.isError, true, text(result));
    assert.match(text(result), /Ada Lovelace/);
  },
  async "elicit-decline"(client, lane) {
    if (lane.revision < "2025-06-18") leaveOut("elicitation came with 2025-06-18");
    client.answers.elicit = () => ({ action: "decline" });
    const result = await client.call("trigger-elicitation-request", {});
    assert.notEqual(result.isError, true, text(result));
    assert.match(text(result), /declin/i);
  },
  async sampling(client) {
    client.answers.sample = (params) => {
      assert.match(JSON.stringify(params.messages), /a question/);
      assert.equal(params.maxTokens, 50);
      const content = { type: "text", text: "sampled words" };
      return { model: "interop-model", role: "assistant", content };
    };
    const args = { prompt: "a question", maxTokens: 50 };
    const result = await client.call("trigger-sampling-request", args);
    assert.match(text(result), /sampled words/);
  },
  async roots(client) {
    const result = await client.call("get-roots-list", {});
    assert.ok(text(result).includes(ROOT.uri), text(result));
  },
  async subscribe(client, lane) {
    if (lane.modern) leaveOut("2026-07-28 has subscriptions/listen; see listen");
    // Where its clients have no sessions, the server announces listed resources only.
    const uri = lane.through === "modern" ? (await client.resources())[0].uri : `${TEXT}11`;
    await client.subscribe(uri);
    await client.call("toggle-subscriber-updates", {});
    await until(() => client.seen.updated.includes(uri), UPDATE_MS_MAX, "an update");
    await client.call("toggle-subscriber-updates", {});
    await client.unsubscribe(uri);
  },
  async listen(client, lane) {
    if (!lane.modern) leaveOut("subscriptions/listen came with 2026-07-28");
    const [{ uri }] = await client.resources();
    const stream = await client.listen({ resourceSubscriptions: [uri], toolsListChanged: true });
    assert.deepEqual(stream.honoredFilter.resourceSubscriptions, [uri]);
    assert.equal(stream.honoredFilter.toolsListChanged, true);
    await client.call("toggle-subscriber-updates", {});
    await until(() => client.seen.updated.includes(uri), UPDATE_MS_MAX, "an update");
    await client.call("toggle-subscriber-updates", {});
    await stream.close();
  },
  async "list-changed"(client, lane) {
    if (lane.reference) leaveOut("the reference has no tool that changes the list");
    const stream = lane.modern ? await client.listen({ toolsListChanged: true }) : null;
    const has = async () => (await client.tools()).some((tool) => tool.name === "everything_extra");
    const before = await has();
    for (const expected of [!before, before]) {
      const told = client.seen.toolsChanged;
      await client.call("everything_toggle_extra", {});
      await until(() => client.seen.toolsChanged > told, UPDATE_MS_MAX, "a change");
      assert.equal(await has(), expected);
    }
    await stream?.close();
  },
  async parallel(client) {
    const slow = { duration: 0.5, steps: 2 };
    const calls = Array.from({ length: 40 }, async (_, index) => {
      if (index % 10 === 0) await client.call("trigger-long-running-operation", slow);
      const message = `number ${index}`;
      assert.equal(text(await client.call("echo", { message })), `Echo: ${message}`);
    });
    await Promise.all(calls);
  },
  async task(client, lane) {
    const tasks = tasksOf(client, lane);
    const { task } = await tasks.make(RESEARCH, { topic: "otters" });
    assert.equal(task.status, "working");
    assert.ok(task.ttl > 0 && task.pollInterval > 0, JSON.stringify(task));
    const looked = await tasks.get(task.taskId);
    assert.deepEqual([looked.taskId, looked.createdAt], [task.taskId, task.createdAt]);
    // Over HTTP nobody has logged in, and there is no list; behind a bridge is a pipe.
    if (lane.transport === "stdio" || lane.through || lane.reference) {
      const { tasks: listed } = await tasks.list();
      assert.ok(listed.some(({ taskId }) => taskId === task.taskId), JSON.stringify(listed));
    } else {
      await assert.rejects(tasks.list());
    }
    for (let again = 0; again < 2; again++) {
      const result = await tasks.result(task.taskId);
      assert.match(text(result), /otters/);
      assert.equal(result._meta["io.modelcontextprotocol/related-task"].taskId, task.taskId);
    }
    assert.equal((await tasks.get(task.taskId)).status, "completed");
  },
  async "task-ask"(client, lane) {
    const tasks = tasksOf(client, lane);
    let asked;
    client.answers.elicit = (params) => {
      asked = params;
      return { action: "accept", content: { interpretation: "snake" } };
    };
    const seen = [];
    const result = await tasks.whole(RESEARCH, { topic: "python", ambiguous: true }, (status) => seen.push(status));
    assert.match(text(result), /Clarification\*\*: snake/);
    assert.match(asked.message, /python/);
    assert.ok(asked._meta["io.modelcontextprotocol/related-task"].taskId, "the question names no task");
    assert.ok(seen.includes("input_required"), seen.join());
  },
  async "task-cancel"(client, lane) {
    const tasks = tasksOf(client, lane);
    const { task } = await tasks.make(RESEARCH, { topic: "otters" });
    assert.equal((await tasks.cancel(task.taskId)).status, "cancelled");
    assert.equal((await tasks.get(task.taskId)).status, "cancelled");
    await assert.rejects(tasks.cancel(task.taskId));
    await assert.rejects(tasks.result(task.taskId));
    await assert.rejects(tasks.get("never-was"));
  },
  async close(client) {
    await client.close();
  },
};

/** The roots a client offers, for its `roots/list` handler. */
export const roots = [ROOT];

/** What a client may declare in a revision. */
export function capabilities(revision) {
  const all = { roots: { listChanged: true }, sampling: {} };
  if (revision >= "2025-11-25") all.elicitation = { form: {} };
  else if (revision >= "2025-06-18") all.elicitation = {};
  if (revision >= "2026") delete all.roots.listChanged;
  return all;
}

/** Connects with `connect(lane)`, makes every check and prints one JSON line for each. */
export async function run(connect, checks = CHECKS) {
  const lane = JSON.parse(process.argv[2]);
  lane.modern = lane.revision >= "2026";
  const report = (check, status, detail = "") =>
    console.log(JSON.stringify({ check, status, detail: String(detail).slice(0, 600) }));
  let client;
  try {
    client = await within(connect(lane), CHECK_MS_MAX);
  } catch (error) {
    report("connect", "fail", error.stack ?? error);
    process.exit(0);
  }
  for (const [name, check] of Object.entries(checks)) {
    try {
      await within(check(client, lane), CHECK_MS_MAX);
      report(name, "pass");
    } catch (error) {
      if (error instanceof LeftOut) report(name, "skip", error.message);
      else report(name, "fail", error.message ?? error);
    }
  }
  process.exit(0);
}

async function within(promise, ms) {
  const aborter = new AbortController();
  const late = sleep(ms, undefined, { signal: aborter.signal }).then(() => {
    throw new Error(`not done within ${ms} ms`);
  });
  late.catch(() => {});
  try {
    return await Promise.race([promise, late]);
  } finally {
    aborter.abort();
  }
}
