// The skills in `../skills`, served with @modelcontextprotocol/server 2.x, for both eras: `node skills.mjs stdio` or
// `node skills.mjs http PORT`.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.env.INTEROP_TOOLS, "package.json"));
const { createMcpHandler, McpServer } = require("@modelcontextprotocol/server");
const { serveStdio } = require("@modelcontextprotocol/server/stdio");
const { loadSkills } = require("@modelcontextprotocol/server/ext/skills/node");
const { toNodeHandler } = require("@modelcontextprotocol/node");

const skills = await loadSkills(join(import.meta.dirname, "../skills"), { strict: true });

function build() {
  const server = new McpServer({ name: "interop-ts-skills", version: "1.0.0" });
  skills.attach(server);
  return server;
}

const [kind, port] = process.argv.slice(2);
if (kind === "stdio") serveStdio(build);
else createServer(toNodeHandler(createMcpHandler(build))).listen(Number(port), "127.0.0.1");
