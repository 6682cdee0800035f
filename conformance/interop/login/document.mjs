// A client metadata document at https://localhost:PORT/client.json: `node document.mjs PORT CERTIFICATE KEY`.

import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { REDIRECT } from "./checks.mjs";

const [port, cert, key] = process.argv.slice(2);
const document = {
  client_id: `https://localhost:${port}/client.json`,
  client_name: "Interop with a document",
  redirect_uris: [REDIRECT],
  grant_types: ["authorization_code", "refresh_token"],
  response_types: ["code"],
  token_endpoint_auth_method: "none",
};
createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (_, response) =>
  response.setHeader("content-type", "application/json").end(JSON.stringify(document)),
).listen(Number(port), "127.0.0.1");
