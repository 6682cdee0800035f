// The pages of an issuer in a real browser, which `linchpin serve browser` drives: `node pages.mjs '{ url, program }'`.
//
// Consent and denial, wrong passwords, devices, errors; on a telephone's width, with the keyboard alone, and without a script: the form goes on
// to where the client waits.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createHash, randomBytes } from "node:crypto";

const require = createRequire(join(process.env.INTEROP_TOOLS, "package.json"));
const { Client } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");
const lane = JSON.parse(process.argv[2]);
const { origin } = new URL(lane.url);
const WIDTH = 360;

const say = (name, error) =>
  console.log(JSON.stringify({ name, status: error ? "fail" : "pass", detail: String(error?.stack ?? error ?? "") }));
const check = async (name, what) => {
  if (!lane.checks.includes(name)) return;
  try {
    await what();
    say(name);
  } catch (error) {
    say(name, error);
  }
};

// Where the client waits, after two redirects of its own: `form-action` would hold those of a form.
let landed;
const client = createServer((request, response) => {
  const url = new URL(request.url, "http://127.0.0.1");
  const hops = Number(url.searchParams.get("hops") ?? 0);
  if (url.pathname === "/callback" && hops < 2) {
    url.searchParams.set("hops", hops + 1);
    return response.writeHead(302, { location: url.pathname + url.search }).end();
  }
  if (url.pathname === "/callback") landed(url.searchParams);
  response.setHeader("content-type", "text/html").end("<title>Done</title><h1>You can close this page</h1>");
});
await new Promise((resolve) => client.listen(0, "127.0.0.1", resolve));

const args = ["serve", "browser", "--allow-private-host", "127.0.0.1", "--no-sandbox"];
const browser = new Client({ name: "interop-pages", version: "1" });
await browser.connect(new StdioClientTransport({ command: lane.program, args, stderr: "ignore", env: process.env }));
const tool = async (name, args) => {
  const result = await browser.callTool({ name: `browser_${name}`, arguments: args });
  const text = result.content.map((block) => block.text ?? "").join("\n");
  if (result.isError) throw new Error(`${name}: ${text}`);
  return text;
};
const value = async (body) => JSON.parse(/\{.*\}/s.exec(await tool("evaluate", { function: `() => (${body})` }))[0].replaceAll("\\n", "\n"));
const press = (key) => tool("press_key", { key });
const type = async (text) => {
  for (const key of text) await press(key);
};
/** Goes on with Tab until what has the focus fits. */
async function tabTo(selector) {
  for (let n = 0; n < 20; n++) {
    const { found } = await value(`{ found: document.activeElement.matches(${JSON.stringify(selector)}) }`);
    if (found) return;
    await press("Tab");
  }
  throw new Error(`nobody gets to ${selector} with Tab`);
}

/** Opens the address that a client would, and says where its answer will come. */
async function begin(changes = {}) {
  const verifier = randomBytes(32).toString("base64url");
  const answer = new Promise((resolve) => (landed = resolve));
  const params = {
    response_type: "code",
    client_id: "public",
    redirect_uri: `http://127.0.0.1:${client.address().port}/callback`,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
    scope: "notes:read notes:write",
    state: "s",
    ...changes,
  };
  await tool("navigate", { url: `${origin}/authorize?${new URLSearchParams(params)}` });
  // Not the promise itself, which would be waited for.
  return { answer };
}

/** What holds for every page: nothing is wider than a telephone, and there is one heading and a language. */
async function fits() {
  const seen = await value(`{
    width: document.documentElement.scrollWidth,
    headings: document.querySelectorAll("h1").length,
    language: document.documentElement.lang,
    scripts: document.scripts.length,
    unlabelled: [...document.querySelectorAll("input:not([type=hidden])")].filter((input) => input.labels.length === 0).length,
  }`);
  assert.deepEqual(seen, { ...seen, headings: 1, language: "en", scripts: 0, unlabelled: 0 });
  assert.ok(seen.width <= WIDTH, `${seen.width} wide`);
}

await tool("resize", { width: WIDTH, height: 640 });
await check("wrong password", async () => {
  await begin();
  await fits();
  await tabTo("[name=name]");
  await type("ada");
  await tabTo("[name=password]");
  await type("no");
  await press("Enter");
  const page = await tool("snapshot", {});
  assert.match(page, /Wrong name or password/);
  await fits();
});
await check("consent", async () => {
  const { answer } = await begin();
  await tabTo("[name=name]");
  await type("ada");
  await tabTo("[name=password]");
  await type("pw");
  await press("Enter");
  const page = await tool("snapshot", {});
  for (const shown of ["Notes", "read your notes", "change your notes", "a program on this computer"]) {
    assert.ok(page.includes(shown), `${shown} is not in ${page}`);
  }
  await fits();
  await tabTo("[value=allow]");
  await press("Enter");
  const params = await answer;
  assert.ok(params.get("code") && params.get("iss") === origin && params.get("state") === "s", params);
});
await check("denial", async () => {
  const { answer } = await begin();
  await tabTo("[value=deny]");
  await press("Enter");
  assert.equal((await answer).get("error"), "access_denied");
});
await check("device", async () => {
  const post = async (endpoint, form) => {
    const body = new URLSearchParams({ client_id: "public", ...form });
    return (await fetch(`${origin}/${endpoint}`, { method: "POST", body })).json();
  };
  const grant = "urn:ietf:params:oauth:grant-type:device_code";
  const asked = async (choice) => {
    const begun = await post("device_authorization", { scope: "notes:read" });
    await tool("navigate", { url: begun.verification_uri });
    await fits();
    await tabTo("[name=code]");
    await type("BBBB-BBBB");
    await press("Enter");
    assert.match(await tool("snapshot", {}), /Unknown code. Check it/);
    await tabTo("[name=code]");
    await type(begun.user_code);
    await press("Enter");
    const page = await tool("snapshot", {});
    for (const shown of ["Notes", "read your notes", "the device that shows this code", "127.0.0.1"]) {
      assert.ok(page.includes(shown), `${shown} is not in ${page}`);
    }
    await fits();
    await tabTo(`[value=${choice}]`);
    await press("Enter");
    const last = await tool("snapshot", {});
    await fits();
    return { last, told: await post("token", { grant_type: grant, device_code: begun.device_code }) };
  };
  const yes = await asked("allow");
  assert.match(yes.last, /You can continue on your device/);
  assert.ok(yes.told.access_token && yes.told.scope === "notes:read", JSON.stringify(yes.told));
  const no = await asked("deny");
  assert.match(no.last, /has been notified/);
  assert.equal(no.told.error, "access_denied");
});
await check("errors", async () => {
  await begin({ redirect_uri: "https://evil.example/cb" });
  assert.match(await tool("snapshot", {}), /address that it did not register/);
  await fits();
  await begin({ client_id: "nobody" });
  assert.match(await tool("snapshot", {}), /cannot be verified/);
  await fits();
});
await browser.close();
process.exit(0);
