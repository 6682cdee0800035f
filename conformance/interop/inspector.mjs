// The MCP Inspector's command line: one request per run, so one process per check.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const RUN_MS_MAX = 30_000;
const lane = JSON.parse(process.argv[2]);
const program = join(process.env.INTEROP_TOOLS, "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");
const TEXT = "demo://resource/dynamic/text/";

/** Runs the Inspector once and returns the result it prints. */
async function ask(method, ...options) {
  const target = lane.command ?? ["--server-url", lane.url, "--transport", lane.transport];
  const era = lane.revision >= "2026" ? "modern" : "legacy";
  const flags = ["--cli", "--format", "json", "--quiet", "--protocol-era", era, "--method", method, ...options];
  const args = lane.command ? [...flags, "--", ...target] : [...flags, ...target];
  const { stdout, stderr } = await new Promise((resolve) => {
    const settings = { timeout: RUN_MS_MAX, maxBuffer: 16 << 20 };
    const child = execFile(process.execPath, [program, ...args], settings, (error, stdout, stderr) =>
      resolve({ stdout, stderr: stderr || String(error ?? "") }),
    );
    child.stdin.end();
  });
  let said;
  try {
    said = JSON.parse(stdout || stderr);
  } catch {
    throw new Error(`no JSON: ${(stdout + stderr).slice(0, 300)}`);
  }
  if (said.error) throw new Error(said.error.message);
  return said.result;
}

const call = (name, args) =>
  ask("tools/call", "--tool-name", name, "--tool-args-json", JSON.stringify(args));
const text = (result) => result.content.map((block) => block.text ?? "").join("\n");

const CHECKS = {
  async connect() {
    const { protocolVersion } = await ask("initialize");
    if (protocolVersion !== undefined) assert.equal(protocolVersion, lane.revision);
  },
  async "tools-list"() {
    const names = (await ask("tools/list")).tools.map((tool) => tool.name);
    for (const name of ["echo", "get-sum", "get-tiny-image"]) assert.ok(names.includes(name), name);
  },
  async "resources-list"() {
    assert.ok((await ask("resources/list")).resources.length > 0);
  },
  async "templates-list"() {
    const { resourceTemplates } = await ask("resources/templates/list");
    assert.ok(resourceTemplates.some((template) => template.uriTemplate === `${TEXT}{resourceId}`));
  },
  async "prompts-list"() {
    const names = (await ask("prompts/list")).prompts.map((prompt) => prompt.name);
    assert.ok(names.includes("args-prompt"), names.join(" "));
  },
  async "call-text"() {
    const message = "grüße 你好 \"quoted\"";
    assert.equal(text(await call("echo", { message })), `Echo: ${message}`);
  },
  async "call-numbers"() {
    assert.match(text(await call("get-sum", { a: 2, b: 40 })), /\b42\b/);
  },
  async "call-structured"() {
    const result = await call("get-structured-content", { location: "Chicago" });
    assert.equal(typeof result.structuredContent.temperature, "number");
  },
  async "call-image"() {
    const { content } = await call("get-tiny-image", {});
    assert.equal(content.find((block) => block.type === "image").mimeType, "image/png");
  },
  async "call-embedded"() {
    const { content } = await call("get-resource-reference", { resourceType: "Text", resourceId: 1 });
    assert.equal(content.find((block) => block.type === "resource").resource.uri, `${TEXT}1`);
  },
  async "call-links"() {
    const { content } = await call("get-resource-links", { count: 2 });
    assert.equal(content.filter((block) => block.type === "resource_link").length, 2);
  },
  async "call-error"() {
    let said;
    try {
      const result = await call("echo", {});
      assert.equal(result.isError, true);
      said = text(result);
    } catch (error) {
      said = error.message;
    }
    assert.match(said, /message/);
  },
  async "read-text"() {
    const { contents } = await ask("resources/read", "--uri", `${TEXT}7`);
    assert.equal(contents[0].uri, `${TEXT}7`);
  },
  async "read-blob"() {
    const { contents } = await ask("resources/read", "--uri", "demo://resource/dynamic/blob/8");
    assert.ok(contents[0].blob);
  },
  async "read-listed"() {
    const [{ uri }] = (await ask("resources/list")).resources;
    assert.equal((await ask("resources/read", "--uri", uri)).contents[0].uri, uri);
  },
  async "read-unknown"() {
    await assert.rejects(ask("resources/read", "--uri", "demo://no/such/resource"), /./);
  },
  async "prompt-simple"() {
    const { messages } = await ask("prompts/get", "--prompt-name", "simple-prompt");
    assert.ok(messages[0].content.text);
  },
  async "prompt-args"() {
    const { messages } = await ask("prompts/get", "--prompt-name", "args-prompt", "--prompt-args", "city=Oslo");
    assert.match(messages[0].content.text, /Oslo/);
  },
  async "prompt-resource"() {
    const args = ["resourceType=Text", "resourceId=3"];
    const { messages } = await ask("prompts/get", "--prompt-name", "resource-prompt", "--prompt-args", ...args);
    assert.ok(messages.some(({ content }) => content.resource?.uri === `${TEXT}3`));
  },
  async "log-level"() {
    if (lane.revision >= "2026") return "2026-07-28 has no logging/setLevel";
    await ask("logging/setLevel", "--log-level", "debug");
  },
};

const WHY = "the Inspector's command line makes one request per run and answers none";
const catalog = JSON.parse(readFileSync(new URL("checks.json", import.meta.url), "utf8"));
for (const { name } of catalog) {
  const report = (status, detail = "") => console.log(JSON.stringify({ check: name, status, detail }));
  if (!CHECKS[name]) {
    report("skip", WHY);
    continue;
  }
  try {
    const leftOut = await CHECKS[name]();
    if (leftOut) report("skip", leftOut);
    else report("pass");
  } catch (error) {
    report("fail", String(error.message ?? error).slice(0, 600));
  }
}
