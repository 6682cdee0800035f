// The schema judge, judged: node --test judge.test.mjs, with INTEROP_SUITE naming the suite's tools.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import test from "node:test";
import { judgeClient } from "./judge-client.mjs";
import { bench, judge, Judge, schemasIn } from "./judge.mjs";

const tools = process.env.INTEROP_SUITE;
const bundle = join(tools, "node_modules/@modelcontextprotocol/conformance/dist/index.js");
const schemas = schemasIn(readFileSync(bundle, "utf8"));
const require = createRequire(join(tools, "package.json"));

/** What the judge says about one answer to one request. */
function verdict(revision, method, answer, params) {
  const link = "stdio-1";
  const records = [
    { from: "client", link, message: { jsonrpc: "2.0", id: 1, method, params } },
    { from: "server", link, message: { jsonrpc: "2.0", ...answer } },
  ];
  return judge(records, new Judge(require, schemas[revision]), revision).violations;
}

const tool = { name: "a", inputSchema: { type: "object" } };

test("the suite has a schema of every revision it tests", () => {
  const revisions = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
  assert.deepEqual(Object.keys(schemas).sort(), revisions);
});

const accepted = [
  ["2025-03-26", "tools/list", { id: 1, result: { tools: [tool] } }],
  ["2025-06-18", "tools/list", { id: 1, result: { tools: [{ ...tool, title: "A" }] } }],
  ["2025-11-25", "ping", { id: 1, result: {} }],
  ["2025-11-25", "tools/list", { id: 1, error: { code: -32602, message: "no" } }],
  ["2025-11-25", "tools/call", { method: "notifications/message", params: { level: "info", data: 1 } }],
  [
    "2026-07-28",
    "tools/list",
    { id: 1, result: { resultType: "complete", ttlMs: 0, cacheScope: "public", tools: [tool] } },
  ],
];

for (const [revision, method, answer] of accepted) {
  test(`${revision} ${method} is accepted: ${JSON.stringify(answer)}`, () => {
    assert.deepEqual(verdict(revision, method, answer), []);
  });
}

const refused = [
  ["2025-03-26", "tools/list", { id: 1, result: { tools: [{ ...tool, title: "A" }] } }, /`title` is not of/],
  ["2025-03-26", "tools/call", { id: 1, result: { content: [{ type: "resource_link", uri: "a:b", name: "a" }] } }, /content/],
  ["2025-11-25", "tools/list", { id: 1, result: { tools: [{ name: "a" }] } }, /inputSchema/],
  ["2025-11-25", "tools/list", { id: 1, result: {} }, /tools/],
  ["2025-11-25", "tools/list", { id: 1, result: { tools: [], resultType: "complete" } }, /`resultType` is not of/],
  ["2025-11-25", "tools/list", { id: 2, result: { tools: [] } }, /answers nothing/],
  ["2025-11-25", "tools/list", { id: null, error: { code: 1, message: "no" } }, /id/],
  ["2025-11-25", "tools/list", { id: 1, error: { message: "no" } }, /code/],
  ["2025-11-25", "tools/call", { method: "notifications/nonsense" }, /no server notification/],
  ["2025-11-25", "server/discover", { id: 1, result: {} }, /not of this revision/],
  ["2026-07-28", "tools/list", { id: 1, result: { tools: [] } }, /ttlMs|resultType|cacheScope/],
  ["2026-07-28", "tools/call", { id: 9, method: "roots/list" }, /no server request/],
  ["2026-07-28", "tools/list", { id: 1, result: { resultType: "input_required", inputRequests: {} } }, /must not ask/],
];

for (const [revision, method, answer, what] of refused) {
  test(`${revision} ${method} is refused: ${JSON.stringify(answer)}`, () => {
    const found = verdict(revision, method, answer);
    assert.ok(found.length > 0, "nothing was found");
    assert.match(found.join("\n"), what);
  });
}

test("an answer may cross a cancellation and must not follow it", () => {
  const one = new Judge(require, schemas["2025-11-25"]);
  const link = "stdio-1";
  const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } };
  const answered = (at) =>
    judge(
      [
        { at: 0, from: "client", link, message: { jsonrpc: "2.0", id: 1, method: "ping" } },
        { at: 100, from: "client", link, message: cancel },
        { at, from: "server", link, message: { jsonrpc: "2.0", id: 1, result: {} } },
      ],
      one,
      "2025-11-25",
    ).violations.length;
  assert.equal(answered(110), 0);
  assert.equal(answered(2_000), 1);
});

test("what is no message, and an end that is not clean, are found", () => {
  const one = new Judge(require, schemas["2025-11-25"]);
  const exit = (fields) => ({
    from: "server",
    link: "stdio-1",
    exit: { code: 0, signal: null, afterEnd: 10, killed: false, ...fields },
  });
  const found = (...records) => judge(records, one, "2025-11-25").violations.length;
  assert.equal(found(exit({})), 0);
  assert.equal(found(exit({ code: 1 })), 1);
  assert.equal(found(exit({ afterEnd: 60_000 })), 1);
  assert.equal(found({ from: "server", link: "stdio-1", text: "starting…" }), 1);
});

/** What the judge of the client says about a message of ours, after a question of the server. */
function verdictOnClient(revision, message, question) {
  const records = question ? [{ from: "server", message: { jsonrpc: "2.0", ...question } }] : [];
  records.push({ from: "client", message: { jsonrpc: "2.0", ...message } });
  return judgeClient(records, bench(tools), revision);
}

const name = "io.modelcontextprotocol/";
const envelope = { [`${name}protocolVersion`]: "2026-07-28", [`${name}clientInfo`]: { name: "a", version: "1" }, [`${name}clientCapabilities`]: {} };
const meta = { _meta: envelope };
const ask = { id: 7, method: "elicitation/create", params: { message: "?", requestedSchema: { type: "object", properties: {} } } };
const accept = (content) => ({ id: 7, result: { action: "accept", content } });

const fromUs = [
  ["2025-11-25", { id: 1, method: "tools/call", params: { name: "a", _meta: { progressToken: 1 } } }],
  ["2025-03-26", { id: 1, method: "tools/call", params: { name: "a", _meta: { progressToken: 1 } } }],
  ["2025-11-25", { method: "notifications/cancelled", params: { requestId: 1 } }],
  ["2025-11-25", accept({ size: 1.5 }), ask],
  ["2026-07-28", { id: 1, method: "tools/call", params: { name: "a", ...meta } }],
  // Before anything is agreed on, each question is of the revision that it names.
  ["2025-11-25", { id: 1, method: "server/discover", params: meta }],
  ["2026-07-28", { id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "a", version: "1" } } }],
];

for (const [revision, message, question] of fromUs) {
  test(`${revision} of a client is accepted: ${JSON.stringify(message)}`, () => {
    const { sent, violations } = verdictOnClient(revision, message, question);
    assert.deepEqual({ sent, violations }, { sent: 1, violations: [] });
  });
}

const notFromUs = [
  ["2025-11-25", { id: 1, method: "tools/call", params: {} }, /name/],
  ["2025-11-25", { id: 1, method: "server/discover" }, /no client request/],
  ["2026-07-28", { id: 1, method: "tools/call", params: { name: "a" } }, /_meta/],
  ["2026-07-28", { id: 1, method: "ping", params: meta }, /no client request/],
  ["2025-11-25", { method: "notifications/nonsense" }, /no client notification/],
  ["2025-11-25", { id: 7, result: {} }, /answers nothing/],
  ["2025-11-25", accept({ deep: {} }), /content/, ask],
  ["2025-06-18", accept({ many: ["a"] }), /content/, ask],
];

for (const [revision, message, what, question] of notFromUs) {
  test(`${revision} of a client is refused: ${JSON.stringify(message)}`, () => {
    assert.match(verdictOnClient(revision, message, question).violations.join("\n"), what);
  });
}

test("an id that a client uses twice is found, and what a server does wrong is only noted", () => {
  const ping = { from: "client", message: { jsonrpc: "2.0", id: 1, method: "ping" } };
  const wrong = { from: "server", message: { jsonrpc: "2.0", id: 5, result: {} } };
  const { violations, noted } = judgeClient([ping, ping, wrong], bench(tools), "2025-11-25");
  assert.equal(violations.length, 1);
  assert.equal(noted.length, 1);
});

test("a call as a task is answered with a task, and its result is that of the call", () => {
  const time = "2026-01-01T00:00:00Z";
  const task = { taskId: "t", status: "working", createdAt: time, lastUpdatedAt: time, ttl: 1 };
  const content = [{ type: "text", text: "done" }];
  const asTask = { task: { ttl: 1 } };
  const said = (method, params, result) => verdict("2025-11-25", method, { id: 1, result }, params);
  assert.deepEqual(said("tools/call", asTask, { task }), []);
  assert.deepEqual(said("tasks/get", { taskId: "t" }, task), []);
  assert.deepEqual(said("tasks/result", { taskId: "t" }, { content }), []);
  assert.match(said("tools/call", asTask, { content }).join(), /task/);
  assert.match(said("tools/call", asTask, { task: { ...task, status: "open" } }).join(), /status/);
  assert.match(said("tools/call", {}, { task }).join(), /content/);
  assert.match(said("tasks/result", { taskId: "t" }, { text: "done" }).join(), /content/);
});

test("a task of the extension has what belongs to its status, and nothing else", () => {
  const time = "2026-01-01T00:00:00Z";
  const task = { taskId: "t", createdAt: time, lastUpdatedAt: time, ttlMs: null };
  const result = { resultType: "complete", content: [] };
  const said = (method, more) => verdict("2026-07-28", method, { id: 1, result: { ...task, ...more } });
  assert.deepEqual(said("tools/call", { resultType: "task", status: "working" }), []);
  assert.deepEqual(said("tasks/get", { resultType: "complete", status: "working" }), []);
  assert.deepEqual(said("tasks/get", { resultType: "complete", status: "completed", result }), []);
  assert.match(said("tools/call", { resultType: "task", status: "working", result }).join(), /result/);
  assert.match(said("tools/call", { resultType: "task", status: "open" }).join(), /status/);
  assert.match(said("tasks/get", { resultType: "task", status: "working" }).join(), /resultType/);
  assert.match(said("tasks/get", { resultType: "complete", status: "completed" }).join(), /result/);
  assert.match(said("tasks/get", { resultType: "complete", status: "working", result }).join(), /result/);
  assert.match(said("tasks/get", { resultType: "complete", status: "failed", error: { code: 1 } }).join(), /message/);
  assert.match(verdict("2025-11-25", "tools/call", { id: 1, result: { ...task, resultType: "task" } }).join(), /content/);
});

test("a skill has its front matter, and its files have digests", () => {
  const digest = `sha256:${"0".repeat(64)}`;
  const uri = "skill://a/SKILL.md";
  const skill = { uri, frontmatter: { name: "a", description: "b", license: "c" }, resources: [{ uri, digest, size: 1 }] };
  const fresh = { resultType: "complete", ttlMs: 0, cacheScope: "public" };
  const said = (revision, result) => verdict(revision, "skills/list", { id: 1, result });
  assert.deepEqual(said("2026-07-28", { ...fresh, skills: [skill, { ...skill, resources: "dynamic" }] }), []);
  assert.deepEqual(said("2025-11-25", { skills: [skill] }), []);
  assert.match(said("2026-07-28", { skills: [skill] }).join(), /resultType/);
  assert.match(said("2025-11-25", { ...fresh, skills: [skill] }).join(), /ttlMs/);
  assert.match(said("2025-11-25", { skills: [{ ...skill, resources: [{ uri, digest: "0", size: 1 }] }] }).join(), /pattern/);
  assert.match(said("2025-06-18", { skills: [skill] }).join(), /not of this revision/);
});
