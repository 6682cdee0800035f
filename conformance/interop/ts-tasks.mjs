// @modelcontextprotocol/ext-tasks on @modelcontextprotocol/client 2.x: tasks of both generations.

import assert from "node:assert/strict";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { capabilities, fails, leaveOut, run, text } from "./checks.mjs";

// As modules: what `require` returns of the client is another one than the package's own.
const load = (path) => import(join(process.env.INTEROP_TOOLS, "node_modules/@modelcontextprotocol", path));
const { Client, StreamableHTTPClientTransport } = await load("client/dist/index.mjs");
const { StdioClientTransport } = await load("client/dist/stdio.mjs");
const { createTaskSessionFromClient, toolDeclarationFromMcpTool } = await load("ext-tasks/dist/client/index.js");

const RESEARCH = "simulate-research-query";
const clientInfo = { name: "interop-ts-tasks", version: "1" };

function transport(lane) {
  if (!lane.command) return new StreamableHTTPClientTransport(new URL(lane.url));
  const [command, ...args] = lane.command;
  return new StdioClientTransport({ command, args, stderr: "inherit" });
}

/** What the client refuses to carry: requests on its transport that it does not know of. */
function dispatcher(wire) {
  const waiting = new Map();
  wire.onmessage = ({ id, result, error }) => {
    waiting.get(id)?.(error ? { kind: "error", error } : { kind: "result", result });
    waiting.delete(id);
  };
  let last = 0;
  return (request) =>
    new Promise((resolve, reject) => {
      const id = `raw-${++last}`;
      waiting.set(id, resolve);
      wire.send({ jsonrpc: "2.0", id, ...request }).catch(reject);
    });
}

const CHECKS = {
  connect({ client }, lane) {
    assert.equal(client.getNegotiatedProtocolVersion(), lane.revision);
  },
  async task({ session, call }) {
    const execution = await call({ topic: "otters" });
    assert.equal(execution.kind, "task");
    const one = session.task(execution.handle.taskId);
    const view = await one.snapshot();
    assert.equal(view.status, "working");
    assert.ok(view.retentionMs > 0 && view.suggestedPollIntervalMs > 0, JSON.stringify(view));
    // Let go of, and taken up again as after a restart.
    let reference;
    await execution.handoff((made) => void (reference = made));
    await sleep(10);
    const { outcome } = await (await session.resumeTask(reference)).settle();
    for (const { status, result } of [outcome, await one.result()]) {
      assert.equal(status, "completed");
      assert.match(text(result), /otters/);
    }
  },
  async ask({ call, asked }, lane) {
    // It polls, and never asks for the result, on whose stream questions come.
    if (!lane.modern) leaveOut("the package does not wait for the result of a task of 2025-11-25 that asks");
    const execution = await call({ topic: "python", ambiguous: true });
    const seen = new Set();
    const { outcome } = await execution.settle({ onEvent: ({ task }) => void seen.add(task?.status) });
    assert.equal(outcome.status, "completed", String(outcome.error));
    assert.match(text(outcome.result), /Clarification\*\*: snake/);
    assert.ok(seen.has("input_required"), [...seen].join());
    assert.equal(asked.length, 1);
    assert.match(asked[0].params.message, /python/);
  },
  async cancel({ session, call }) {
    const execution = await call({ topic: "otters" });
    await execution.cancel();
    const { outcome } = await execution.settle();
    assert.equal(outcome.status, "cancelled");
    assert.equal((await session.task(execution.handle.taskId).snapshot()).status, "cancelled");
  },
  async unknown({ session }) {
    await assert.rejects(session.task("never-was").snapshot(), (error) => error.code === -32602);
  },
  async "bad-arguments"({ call }, lane) {
    const said = await fails(
      call({ topic: 7 }).then(async (execution) => {
        const { outcome } = await execution.settle();
        if (outcome.status === "failed") throw outcome.error;
        return outcome.result;
      }),
    );
    // The reference answers without a task, which is all that is said then.
    if (!lane.reference) assert.match(said, /topic/);
  },
  async undeclared({ client }, lane) {
    if (lane.reference) leaveOut("the reference answers without a task");
    // The SDK's client alone declares no tasks.
    const code = lane.modern ? -32021 : -32601;
    const call = client.callTool({ name: RESEARCH, arguments: { topic: "otters" } });
    await assert.rejects(call, (error) => error.code === code);
  },
  async close({ session, client }) {
    await session.close();
    await client.close();
  },
};

run(async (lane) => {
  const clientCapabilities = { elicitation: capabilities(lane.revision).elicitation };
  const client = new Client(clientInfo, {
    capabilities: clientCapabilities,
    supportedProtocolVersions: [lane.revision],
    versionNegotiation: { mode: lane.modern ? { pin: lane.revision } : "legacy" },
  });
  const wire = transport(lane);
  const rawDispatch = dispatcher(wire);
  await client.connect(wire);
  const asked = [];
  const session = createTaskSessionFromClient(client, {
    endpointId: "interop",
    ...(lane.modern && {
      rawDispatch,
      v2RequestFraming: { protocolVersion: lane.revision, clientInfo, clientCapabilities },
    }),
    onInputRequest: async (request) => {
      asked.push(request);
      return { action: "accept", content: { interpretation: "snake" } };
    },
  });
  const tool = (await client.listTools()).tools.find(({ name }) => name === RESEARCH);
  const declaration = toolDeclarationFromMcpTool(tool);
  const call = (args) => session.callTool(RESEARCH, args, { declaration });
  return { client, session, asked, call };
}, CHECKS);
