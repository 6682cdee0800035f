// @modelcontextprotocol/client 2.x: every revision, both eras.

import { createRequire } from "node:module";
import { join } from "node:path";
import { capabilities, roots, run } from "./checks.mjs";

const require = createRequire(join(process.env.INTEROP_TOOLS, "package.json"));
const sdk = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

function transport(lane) {
  if (lane.command) {
    const [command, ...args] = lane.command;
    return new StdioClientTransport({ command, args, stderr: "inherit" });
  }
  const Transport = lane.transport === "sse" ? sdk.SSEClientTransport : sdk.StreamableHTTPClientTransport;
  return new Transport(new URL(lane.url));
}

run(async (lane) => {
  const client = new sdk.Client(
    { name: "interop-ts-2", version: "1" },
    {
      capabilities: capabilities(lane.revision),
      supportedProtocolVersions: [lane.revision],
      versionNegotiation: { mode: lane.modern ? { pin: lane.revision } : "legacy" },
    },
  );
  const seen = { logs: [], updated: [], toolsChanged: 0 };
  const answers = {};
  client.setNotificationHandler("notifications/message", ({ params }) => void seen.logs.push(params));
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => void seen.updated.push(params.uri));
  client.setNotificationHandler("notifications/tools/list_changed", () => void seen.toolsChanged++);
  if (lane.revision >= "2025-06-18") {
    client.setRequestHandler("elicitation/create", async ({ params }) => answers.elicit(params));
  }
  client.setRequestHandler("sampling/createMessage", async ({ params }) => answers.sample(params));
  client.setRequestHandler("roots/list", async () => ({ roots }));
  await client.connect(transport(lane));
  return {
    seen,
    answers,
    version: () => client.getNegotiatedProtocolVersion(),
    serverName: () => client.getServerVersion()?.name,
    tools: async () => (await client.listTools()).tools,
    resources: async () => (await client.listResources()).resources,
    templates: async () => (await client.listResourceTemplates()).resourceTemplates,
    prompts: async () => (await client.listPrompts()).prompts,
    call: (name, args, { meta, ...options } = {}) =>
      client.callTool({ name, arguments: args, ...(meta && { _meta: meta }) }, options),
    read: (uri) => client.readResource({ uri }),
    prompt: (name, args) => client.getPrompt({ name, arguments: args }),
    complete: (ref, argument, context) => client.complete({ ref, argument, ...(context && { context }) }),
    ping: () => client.ping(),
    level: (level) => client.setLoggingLevel(level),
    subscribe: (uri) => client.subscribeResource({ uri }),
    unsubscribe: (uri) => client.unsubscribeResource({ uri }),
    listen: (filter) => client.listen(filter),
    close: () => client.close(),
  };
});
