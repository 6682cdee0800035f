// npm's `oidc-provider` as somebody else's provider: `node provider.mjs PORT CALLBACK RESOURCE`, with INTEROP_TOOLS naming its set.
//
// As upstream it knows one client of ours; as issuer of a guard it signs access tokens for RESOURCE and registers clients. Its own
// pages for development take every name and password.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.env.INTEROP_TOOLS, "package.json"));
const { default: Provider } = await import(pathToFileURL(require.resolve("oidc-provider")).href);
const [port, callback, resource] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const opaque = process.env.PROVIDER_TOKENS === "opaque";

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "linchpin",
      client_secret: "our-secret",
      redirect_uris: [callback],
      application_type: "native",
      grant_types: ["authorization_code", "refresh_token"],
    },
  ],
  scopes: ["openid", "offline_access", "notes:read", "notes:write"],
  claims: { openid: ["sub", "email", "email_verified"] },
  conformIdTokenClaims: false,
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@acme.example`, email_verified: true }),
  }),
  issueRefreshToken: (_, client) => client.grantTypeAllowed("refresh_token"),
  ttl: { AccessToken: 900, Grant: 86_400, IdToken: 900, Interaction: 600, Session: 86_400, RefreshToken: 86_400 },
  features: {
    devInteractions: { enabled: true },
    dPoP: { enabled: true },
    introspection: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope: "notes:read notes:write",
        audience: resource,
        accessTokenFormat: opaque ? "opaque" : "jwt",
      }),
    },
  },
});
provider.on("server_error", (_, error) => console.error(error));
provider.listen(Number(port), "127.0.0.1", () => console.error(`provider ready on ${issuer}`));
