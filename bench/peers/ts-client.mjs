// The client of the TypeScript SDK 2.4 under load; takes the arguments of `bench-client`.
// INTEROP_TOOLS is the folder that holds its node_modules.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const require = createRequire(join(process.env.INTEROP_TOOLS, "package.json"));
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

const [what, era, counted, seconds, ...target] = process.argv.slice(2);
const [count, secs] = [Number(counted), Number(seconds)];
const revision = era === "2026" ? "2026-07-28" : "2025-11-25";

async function open() {
  const client = new Client(
    { name: "bench", version: "1" },
    {
      supportedProtocolVersions: [revision],
      versionNegotiation: { mode: era === "2026" ? { pin: revision } : "legacy" },
    },
  );
  const http = target.length === 1 && target[0].startsWith("http");
  const [command, ...args] = target;
  await client.connect(
    http ? new StreamableHTTPClientTransport(new URL(target[0])) : new StdioClientTransport({ command, args }),
  );
  return client;
}

async function call(client) {
  const result = await client.callTool({ name: "echo", arguments: { message: "hello" } });
  if (!result.content[0].text) throw new Error("the echo is empty");
}

async function window(client, limit) {
  const end = performance.now() + limit * 1e3;
  const worker = async () => {
    let done = 0;
    for (; performance.now() < end; done++) await call(client);
    return done;
  };
  const all = await Promise.all(Array.from({ length: count }, worker));
  return all.reduce((a, b) => a + b, 0);
}

// CPU time of this process with all its threads, children excluded.
const cpu = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};
const rss = () => Number(readFileSync("/proc/self/statm", "utf8").split(" ")[1]) * 4096;

async function run() {
  if (what === "calls") {
    const client = await open();
    await window(client, Math.max(secs / 4, 0.5)); // The compiler wants more than the others' warming up.
    const [before, began] = [cpu(), performance.now()];
    const calls = await window(client, secs);
    const wall = (performance.now() - began) / 1e3;
    return { calls_per_s: calls / wall, cpu_us: ((cpu() - before) * 1e6) / calls, calls };
  }
  if (what === "idle") {
    const held = [await open()];
    const before = rss();
    for (let n = 0; n < count; n++) held.push(await open());
    await new Promise((done) => setTimeout(done, 300));
    return { bytes_each: (rss() - before) / count };
  }
  const times = [];
  for (let n = 0; n < count; n++) {
    const began = performance.now();
    const client = await open();
    await call(client);
    times.push(performance.now() - began);
    await client.close();
  }
  times.sort((a, b) => a - b);
  return { ms: times[Math.floor(times.length / 2)], fastest: times[0] };
}

console.log(JSON.stringify(await run()));
process.exit(0);
