// The schema judge for the other direction: every message of our client against the specification's own schema.
//
//   node judge-client.mjs TOOLS REVISION LOG
//
// LOG is what the client's tap saw; REVISION is what was agreed on. A request that claims a revision of its own is judged
// by that one: the questions of an opening are asked before anything is agreed on. Prints one JSON object: how many
// messages of ours were judged (`sent`) and every violation, and the same for the server's messages (`heard`, `noted`),
// which are its makers' business.

import { pathToFileURL } from "node:url";
import { askedFor, bench, recordsOf } from "./judge.mjs";

const VERSION = "io.modelcontextprotocol/protocolVersion";

/** Judges both sides of a conversation; `judgeOf(revision, side)` makes judges. */
export function judgeClient(records, judgeOf, revision) {
  const judges = new Map();
  const judgeFor = (claimed, side) => {
    const key = `${claimed} ${side}`;
    if (!judges.has(key)) judges.set(key, judgeOf(claimed, side));
    return judges.get(key);
  };
  const asked = { client: new Map(), server: new Map() };
  const verdict = { revision, sent: 0, heard: 0, violations: [], noted: [] };
  const ids = new Set();
  const blamed = { client: new Map(), server: new Map() };
  const blame = (side, what, evidence) => {
    // The same thing said of every member of a list, or of every message, is said once.
    const kind = what.replace(/\/\d+/g, "/*");
    const known = blamed[side].get(kind) ?? { count: 0, shown: JSON.stringify(evidence).slice(0, 300) };
    blamed[side].set(kind, { ...known, count: known.count + 1 });
  };
  for (const { from, message, text } of records) {
    if (from !== "client" && from !== "server") continue;
    if (text !== undefined) blame(from, "not a JSON-RPC message", text);
    if (message === undefined) continue;
    for (const one of [message].flat()) {
      const isRequest = typeof one?.method === "string" && "id" in one;
      const key = JSON.stringify(one?.id);
      const opening = one?.method === "initialize" ? one.params?.protocolVersion : undefined;
      const claimed = one?.params?._meta?.[VERSION] ?? opening ?? revision;
      if (isRequest) {
        asked[from].set(key, { method: askedFor(one), claimed });
        if (from === "client" && ids.size === ids.add(key).size) blame(from, "an id is used twice", one);
      }
      const other = from === "client" ? "server" : "client";
      const question = "method" in one ? undefined : asked[other].get(key);
      const side = from === "client" ? "Client" : "Server";
      const judge = judgeFor(question?.claimed ?? claimed, side);
      verdict[from === "client" ? "sent" : "heard"]++;
      for (const what of judge.violations(one, (id) => asked[other].get(JSON.stringify(id))?.method)) {
        // Every request may have it: the older schemas say so once, of all requests, and not again of each.
        if (!what.endsWith("/params: `_meta` is not of this revision")) blame(from, what, one);
      }
    }
  }
  const told = (side) => [...blamed[side]].map(([kind, { count, shown }]) => `${kind} (${count} times) :: ${shown}`);
  return { ...verdict, violations: told("client"), noted: told("server") };
}

function main() {
  const [tools, revision, log] = process.argv.slice(2);
  console.log(JSON.stringify(judgeClient(recordsOf(log), bench(tools), revision)));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) main();
