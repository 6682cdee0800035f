// What every client must manage, whatever it is: log in, go on with another scope, refresh, and log in again after a revocation.

import assert from "node:assert/strict";
import { Person } from "./person.mjs";

/** Where answers go: nobody listens, so the user says where the browser ended. */
export const REDIRECT = "http://127.0.0.1:9/callback";

/** Clients that the server knows beforehand. */
export const PRE_REGISTERED = {
  public: { client_id: "public", redirect_uris: [REDIRECT] },
  confidential: { client_id: "confidential", client_secret: "s3cret", redirect_uris: [REDIRECT] },
};

/** A person who counts what clients ask for. */
class Asked {
  scopes = [];
  clients = [];

  async logIn(url) {
    const asked = new URL(url).searchParams;
    this.scopes.push(asked.get("scope"));
    this.clients.push(asked.get("client_id"));
    return await new Person().visit(url, (at) => at.href.startsWith(REDIRECT));
  }
}

async function revoke(lane, token, client) {
  const { origin } = new URL(lane.url);
  const form = new URLSearchParams({ token, client_id: client.client_id });
  if (client.client_secret) form.set("client_secret", client.client_secret);
  const response = await fetch(`${origin}/revoke`, { method: "POST", body: form });
  assert.equal(response.status, 200, await response.text());
}

/** Runs the checks and prints each as a line of JSON. `connect(person)` gives `call`, `tokens`, `client` and `close`. */
export async function run(lane, connect) {
  const person = new Asked();
  const client = await connect(person);
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
  const asked = lane.checks.includes("step-up") ? 2 : 1;
  await check("login", async () => {
    assert.equal(await client.call("whoami"), "ada");
    assert.equal(person.scopes.length, 1);
    assert.ok(!person.scopes[0]?.includes("notes:write"), person.scopes[0]);
    if (lane.way === "document") assert.equal(person.clients[0], lane.document);
  });
  await check("step-up", async () => {
    assert.equal(await client.call("write"), "written");
    assert.ok(person.scopes.at(-1).includes("notes:write"), person.scopes.at(-1));
    assert.equal(person.scopes.length, 2);
  });
  await check("refresh", async () => {
    const before = client.tokens().access_token;
    await new Promise((resolve) => setTimeout(resolve, lane.lifeMs + 200));
    assert.equal(await client.call("whoami"), "ada");
    assert.notEqual(client.tokens().access_token, before);
    assert.equal(person.scopes.length, asked, "nobody is asked again");
  });
  await check("revocation", async () => {
    await revoke(lane, client.tokens().refresh_token, client.client());
    assert.equal(await client.call("whoami"), "ada");
    assert.ok(person.scopes.length > asked, "the user is asked again");
  });
  await client.close();
}
