// A server written with @modelcontextprotocol/server 2.x, for both eras: `node ts.mjs stdio` or `node ts.mjs http PORT`,
// with `stateless` at the end without sessions.
//
// The same offer as `py.py` and `rmcp/`: what each tool does is in `README.md`.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.env.INTEROP_TOOLS, "package.json"));
const { createMcpHandler, completable, inputRequired, inputResponse, isLegacyRequest, McpServer, ResourceTemplate } =
  require("@modelcontextprotocol/server");
const { serveStdio } = require("@modelcontextprotocol/server/stdio");
const { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } = require("@modelcontextprotocol/node");
const z = require("zod");

const [kind, port, manner] = process.argv.slice(2);
const people = ["ada", "alan", "grace"];
const text = (said) => ({ content: [{ type: "text", text: String(said) }] });
const pause = (ms, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms, false);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve(true)));
  });

// What lives longer than a server object: over HTTP each stateless request has a new one.
const world = { stopped: 0, note: 0, grown: false, sessions: new Map() };
const servers = new Set();
let notify = null;

/** Tells everybody: sessions one by one, listen streams through the handler. */
function tell(kind) {
  for (const server of servers) {
    if (!server.isConnected()) continue;
    if (kind === "tools") server.sendToolListChanged();
    else server.server.sendResourceUpdated({ uri: "note://board" }).catch(() => {});
  }
  if (kind === "tools") notify?.toolsChanged();
  else notify?.resourceUpdated("note://board");
}

function build(lasting) {
  const server = new McpServer(
    { name: "interop-ts", version: "1.0.0" },
    { capabilities: { logging: {}, resources: { subscribe: true }, tools: { listChanged: true } }, instructions: "Try everything." },
  );
  if (lasting) {
    servers.add(server);
    server.server.onclose = () => servers.delete(server);
    server.server.setRequestHandler("resources/subscribe", async () => ({}));
    server.server.setRequestHandler("resources/unsubscribe", async () => ({}));
  }
  tools(server);
  questions(server);
  server.registerResource("board", "note://board", { mimeType: "text/plain" }, async (uri) => ({
    contents: [{ uri: uri.href, mimeType: "text/plain", text: `note ${world.note}` }],
  }));
  const template = new ResourceTemplate("person://{name}", {
    list: undefined,
    complete: { name: (value) => people.filter((name) => name.startsWith(value)) },
  });
  server.registerResource("person", template, { mimeType: "text/plain" }, async (uri, { name }) => ({
    contents: [{ uri: uri.href, mimeType: "text/plain", text: `about ${name}` }],
  }));
  const name = completable(z.string(), (value) => people.filter((name) => name.startsWith(value)));
  server.registerPrompt("greet", { description: "Greets", argsSchema: z.object({ name }) }, ({ name }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Say hello to ${name}.` } }],
  }));
  return server;
}

function tools(server) {
  const add = {
    description: "Adds",
    inputSchema: z.object({ a: z.number(), b: z.number() }),
    outputSchema: z.object({ sum: z.number() }),
  };
  server.registerTool("add", add, async ({ a, b }) => ({
    ...text(`${a + b}`),
    structuredContent: { sum: a + b },
  }));
  server.registerTool("fail", { description: "Fails" }, async () => ({ ...text("it broke"), isError: true }));
  server.registerTool("steps", { description: "Counts", inputSchema: z.object({ n: z.number().int() }) }, async ({ n }, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    await ctx.mcpReq.log("info", "counting begins");
    for (let progress = 1; progress <= n; progress++) {
      if (progressToken !== undefined) {
        await ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: n } });
      }
      await pause(10, ctx.mcpReq.signal);
    }
    return text(`${n} steps`);
  });
  server.registerTool("slow", { description: "Takes a minute" }, async (ctx) => {
    if (await pause(60_000, ctx.mcpReq.signal)) world.stopped++;
    return text("done");
  });
  server.registerTool("stopped", { description: "How many slow calls were stopped" }, async () => text(world.stopped));
  server.registerTool("drop", { description: "Closes its stream before it answers" }, async (ctx) => {
    await pause(100, ctx.mcpReq.signal);
    ctx.http?.closeSSE?.();
    await pause(300, ctx.mcpReq.signal);
    return text("came back");
  });
  server.registerTool("forget", { description: "Forgets all sessions" }, async () => {
    setTimeout(() => world.sessions.clear(), 100);
    return text("forgotten");
  });
  server.registerTool("touch", { description: "Changes the note" }, async () => {
    world.note++;
    tell("resource");
    return text("touched");
  });
  server.registerTool("grow", { description: "Adds a tool" }, async () => {
    world.grown = true;
    for (const other of servers) if (!other.grown) grown(other);
    tell("tools");
    return text("grown");
  });
  if (world.grown) grown(server);
}

function grown(server) {
  server.grown = true;
  server.registerTool("grown", { description: "Was not there before" }, async () => text("here"));
}

function questions(server) {
  const form = z.object({ name: z.string(), age: z.number().int().optional() });
  server.registerTool("ask", { description: "Asks for a name" }, async (ctx) => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, "who");
    if (answer.kind === "missing") {
      const who = inputRequired.elicit({ message: "Who are you?", requestedSchema: form });
      return inputRequired({ inputRequests: { who } });
    }
    return text(answer.action === "accept" ? `hello ${answer.content.name}` : `no name: ${answer.action}`);
  });
  server.registerTool("sample", { description: "Asks the model" }, async (ctx) => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, "model");
    if (answer.kind === "missing") {
      const messages = [{ role: "user", content: { type: "text", text: "What is the answer?" } }];
      return inputRequired({ inputRequests: { model: inputRequired.createMessage({ messages, maxTokens: 50 }) } });
    }
    return text(`sampled: ${JSON.stringify(answer)}`);
  });
  server.registerTool("roots", { description: "Asks for the roots" }, async (ctx) => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, "where");
    if (answer.kind === "missing") return inputRequired({ inputRequests: { where: inputRequired.listRoots() } });
    return text(`roots: ${JSON.stringify(answer)}`);
  });
}

/** Keeps what was sent on streams, for those who come back. */
function eventStore() {
  const events = [];
  return {
    async storeEvent(stream, message) {
      return `${stream}_${events.push({ stream, message })}`;
    },
    async replayEventsAfter(last, { send }) {
      const at = Number(last.slice(last.lastIndexOf("_") + 1));
      const { stream } = events[at - 1];
      for (let next = at; next < events.length; next++) {
        if (events[next].stream === stream) await send(`${stream}_${next + 1}`, events[next].message);
      }
      return stream;
    },
  };
}

function http() {
  const handler = createMcpHandler(() => build(false), { legacy: "reject" });
  notify = handler.notify;
  const modern = toNodeHandler(handler);
  const { sessions } = world;
  async function withSession(req, res) {
    const id = req.headers["mcp-session-id"];
    if (id !== undefined) {
      const known = sessions.get(id);
      if (known) return known.handleRequest(req, res, req.body);
      res.writeHead(404, { "content-type": "application/json" });
      return res.end('{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}');
    }
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      eventStore: eventStore(),
      retryInterval: 50,
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    const server = build(true);
    await server.connect(transport);
    transport.onclose = () => (sessions.delete(transport.sessionId), servers.delete(server));
    return transport.handleRequest(req, res, req.body);
  }
  createServer(async (req, res) => {
    const chunks = [];
    for await (const chunk of req) chunks.push(chunk);
    try {
      req.body = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks)) : undefined;
      const old = await isLegacyRequest(await toWebRequest(req, req.body), req.body);
      await (old ? withSession(req, res) : modern(req, res, req.body));
    } catch (error) {
      console.error(error);
      if (!res.headersSent) res.writeHead(400);
      res.end();
    }
  }).listen(Number(port), "127.0.0.1");
}

/** As the SDK does it by itself: every request of the older revisions is stateless too. */
function stateless() {
  const handler = createMcpHandler(() => build(false));
  notify = handler.notify;
  createServer(toNodeHandler(handler)).listen(Number(port), "127.0.0.1");
}

if (kind === "stdio") serveStdio(() => build(true));
else if (manner === "stateless") stateless();
else http();
