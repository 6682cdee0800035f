// The TypeScript SDK's clients log in: `node ts.mjs '{ sdk, url, way, lifeMs }'`, with INTEROP_TOOLS naming their set.

import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { join } from "node:path";
import { PRE_REGISTERED, REDIRECT, run } from "./checks.mjs";

const require = createRequire(join(process.env.INTEROP_TOOLS, "package.json"));
const lane = JSON.parse(process.argv[2]);
const first = lane.sdk === "1";
const sdk = first
  ? {
      ...require("@modelcontextprotocol/sdk/client/index.js"),
      ...require("@modelcontextprotocol/sdk/client/auth.js"),
      ...require("@modelcontextprotocol/sdk/client/streamableHttp.js"),
    }
  : require("@modelcontextprotocol/client");

/** What a host keeps of a login. */
class Kept {
  redirectUrl = REDIRECT;
  clientMetadata = {
    client_name: `Interop TypeScript ${lane.sdk}`,
    redirect_uris: [REDIRECT],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  };
  clientMetadataUrl = lane.way === "document" ? lane.document : undefined;

  constructor(person) {
    this.person = person;
    this.client = PRE_REGISTERED[lane.way];
  }
  state = () => "a state";
  clientInformation = () => this.client;
  saveClientInformation = (client) => void (this.client = client);
  tokens = () => this.kept;
  saveTokens = (tokens) => void (this.kept = tokens);
  // A request and the stream may log in at the same time: each login has its own verifier.
  verifiers = new Map();
  saveCodeVerifier(verifier) {
    this.verifiers.set(createHash("sha256").update(verifier).digest("base64url"), verifier);
  }
  codeVerifier = () => this.verifiers.get(this.challenge);
  redirectToAuthorization(url) {
    this.login = { challenge: new URL(url).searchParams.get("code_challenge"), landed: this.person.logIn(url) };
  }
  invalidateCredentials(scope) {
    if (["all", "tokens"].includes(scope)) this.kept = undefined;
  }
}

await run(lane, async (person) => {
  const kept = new Kept(person);
  let client;
  const open = () => new sdk.StreamableHTTPClientTransport(new URL(lane.url), { authProvider: kept });
  /** Does something, and once more after a login where that is wanted. */
  const loggedIn = async (what) => {
    try {
      return await what();
    } catch (error) {
      if (!(error instanceof sdk.UnauthorizedError) && error.cause?.constructor !== sdk.UnauthorizedError) throw error;
      const { challenge, landed } = kept.login;
      const params = (await landed).searchParams;
      kept.challenge = challenge;
      await open().finishAuth(...(first ? [params.get("code")] : [params]));
      await client?.close();
      client = undefined;
      return await what();
    }
  };
  const call = (name) =>
    loggedIn(async () => {
      if (!client) {
        const next = new sdk.Client({ name: "interop-login", version: "1" });
        await next.connect(open());
        client = next;
      }
      return (await client.callTool({ name, arguments: {} })).content[0].text;
    });
  return { call, tokens: () => kept.kept, client: () => kept.client, close: () => client.close() };
});
