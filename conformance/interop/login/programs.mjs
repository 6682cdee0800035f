// Programs that log in by themselves, and open `BROWSER` or print an address for a user: `node programs.mjs '{ program, url, lifeMs, home }'`, where
// the program is mcp-remote or inspector, and INTEROP_TOOLS names its set.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { Person } from "./person.mjs";

const lane = JSON.parse(process.argv[2]);
const modules = join(process.env.INTEROP_TOOLS, "node_modules");
const env = { ...process.env, HOME: lane.home, MCP_REMOTE_CONFIG_DIR: join(lane.home, "mcp-remote") };
const later = () => new Promise((resolve) => setTimeout(resolve, lane.lifeMs + 200));
let asked = [];

const say = (name, error) =>
  console.log(JSON.stringify({ name, status: error ? "fail" : "pass", detail: String(error?.stack ?? error ?? "") }));
const check = async (name, what) => {
  try {
    await what();
    say(name);
  } catch (error) {
    say(name, error);
  }
};

/** Counts the addresses that a stream prints, and plays the user there where no browser is opened. */
function watch(stream, told, opened) {
  createInterface({ input: stream }).on("line", (line) => {
    told.push(line);
    const url = /https?:\/\/\S+\/authorize\?\S+/.exec(line)?.[0];
    if (url && !asked.includes(url)) {
      asked.push(url);
      if (!opened) new Person().visit(url).catch((error) => told.push(`the user: ${error.stack}`));
    }
  });
}

/** A bridge on stdio, for hosts that cannot log in. */
async function mcpRemote() {
  const told = [];
  const child = spawn(process.execPath, [join(modules, "mcp-remote/dist/proxy.js"), lane.url], { env: { ...env, BROWSER: "true" } });
  watch(child.stderr, told, false);
  const waiting = new Map();
  createInterface({ input: child.stdout }).on("line", (line) => {
    const message = JSON.parse(line);
    waiting.get(message.id)?.(message);
  });
  let id = 0;
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const ask = (method, params) =>
    new Promise((resolve, reject) => {
      waiting.set(++id, resolve);
      setTimeout(() => reject(new Error(`no answer to ${method}:\n${told.join("\n")}`)), 30_000).unref();
      send({ id, method, params });
    });
  const call = async (name) => {
    const answer = await ask("tools/call", { name, arguments: {} });
    assert.ok(answer.result, JSON.stringify(answer));
    return answer.result.content[0].text;
  };
  await check("login", async () => {
    const clientInfo = { name: "interop-login", version: "1" };
    await ask("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
    send({ method: "notifications/initialized" });
    assert.equal(await call("whoami"), "ada");
  });
  await check("refresh", async () => {
    await later();
    assert.equal(await call("whoami"), "ada");
    assert.equal(asked.length, 1, "nobody is asked again");
  });
  child.kill();
}

/** The Inspector's command line: a process for each call, which share what they keep. */
async function inspector() {
  const program = join(modules, "@modelcontextprotocol/inspector/clients/launcher/build/index.js");
  const call = (tool, ...more) =>
    new Promise((resolve, reject) => {
      const args = ["--cli", "--format", "json", "--quiet", "--method", "tools/call", "--tool-name", tool];
      const target = ["--server-url", lane.url, "--transport", "http", "--callback-url", lane.callback];
      const settings = { env: { ...env, MCP_AUTO_OPEN_ENABLED: "true" }, timeout: 30_000 };
      const child = execFile(process.execPath, [program, ...args, ...target, ...more], settings, (error, out, err) => {
        try {
          resolve(JSON.parse(out).result.content[0].text);
        } catch {
          reject(error ?? new Error(`${out}${err}`));
        }
      });
      watch(child.stderr, [], true);
      child.stdin.end("y\n");
    });
  await check("login", async () => {
    assert.equal(await call("whoami"), "ada");
    assert.equal(asked.length, 1);
  });
  await check("revocation", async () => {
    assert.equal(await call("whoami", "--relogin"), "ada");
    assert.equal(asked.length, 2);
  });
}

await { "mcp-remote": mcpRemote, inspector }[lane.program]();
process.exit(0);
