// @modelcontextprotocol/sdk 1.x: the legacy revisions.

import { createRequire } from "node:module";
import { join } from "node:path";
import { capabilities, roots, run } from "./checks.mjs";

const require = createRequire(join(process.env.INTEROP_TOOLS, "package.json"));
const at = (path) => require(`@modelcontextprotocol/sdk/${path}.js`);
const { Client } = at("client/index");
const types = at("types");

function transport(lane) {
  if (lane.command) {
    const [command, ...args] = lane.command;
    return new (at("client/stdio").StdioClientTransport)({ command, args, stderr: "inherit" });
  }
  const Transport =
    lane.transport === "sse"
      ? at("client/sse").SSEClientTransport
      : at("client/streamableHttp").StreamableHTTPClientTransport;
  return new Transport(new URL(lane.url));
}

/** This client always asks for its latest revision; an older one is asked for on its behalf. */
function asking(transport, revision) {
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    if (message.method === "initialize") message.params.protocolVersion = revision;
    return send(message, options);
  };
  return transport;
}

run(async (lane) => {
  const client = new Client(
    { name: "interop-ts-1", version: "1" },
    { capabilities: capabilities(lane.revision) },
  );
  const seen = { logs: [], updated: [], toolsChanged: 0 };
  const answers = {};
  let negotiated;
  client.setNotificationHandler(types.LoggingMessageNotificationSchema, ({ params }) => void seen.logs.push(params));
  client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, ({ params }) => void seen.updated.push(params.uri));
  client.setNotificationHandler(types.ToolListChangedNotificationSchema, () => void seen.toolsChanged++);
  if (lane.revision >= "2025-06-18") {
    client.setRequestHandler(types.ElicitRequestSchema, async ({ params }) => answers.elicit(params));
  }
  client.setRequestHandler(types.CreateMessageRequestSchema, async ({ params }) => answers.sample(params));
  client.setRequestHandler(types.ListRootsRequestSchema, async () => ({ roots }));
  const wire = asking(transport(lane), lane.revision);
  const setVersion = wire.setProtocolVersion?.bind(wire);
  wire.setProtocolVersion = (version) => {
    negotiated = version;
    setVersion?.(version);
  };
  await client.connect(wire);
  const task = { ttl: 60_000 };
  return {
    seen,
    answers,
    version: () => negotiated,
    serverName: () => client.getServerVersion()?.name,
    tools: async () => (await client.listTools()).tools,
    resources: async () => (await client.listResources()).resources,
    templates: async () => (await client.listResourceTemplates()).resourceTemplates,
    prompts: async () => (await client.listPrompts()).prompts,
    call: (name, args, { meta, ...options } = {}) =>
      client.callTool({ name, arguments: args, ...(meta && { _meta: meta }) }, undefined, options),
    read: (uri) => client.readResource({ uri }),
    prompt: (name, args) => client.getPrompt({ name, arguments: args }),
    complete: (ref, argument, context) => client.complete({ ref, argument, ...(context && { context }) }),
    ping: () => client.ping(),
    level: (level) => client.setLoggingLevel(level),
    subscribe: (uri) => client.subscribeResource({ uri }),
    unsubscribe: (uri) => client.unsubscribeResource({ uri }),
    tasks: {
      make: (name, args) =>
        client.request({ method: "tools/call", params: { name, arguments: args } }, types.CreateTaskResultSchema, { task }),
      whole: async (name, args, told) => {
        const params = { name, arguments: args };
        const stream = client.experimental.tasks.callToolStream(params, types.CallToolResultSchema, { task });
        for await (const message of stream) {
          if (message.type === "taskStatus") told(message.task.status);
          if (message.type === "result") return message.result;
          if (message.type === "error") throw message.error;
        }
        throw new Error("the stream ended without a result");
      },
      get: (id) => client.experimental.tasks.getTask(id),
      result: (id) => client.experimental.tasks.getTaskResult(id, types.CallToolResultSchema),
      list: () => client.experimental.tasks.listTasks(),
      cancel: (id) => client.experimental.tasks.cancelTask(id),
    },
    close: () => client.close(),
  };
});
