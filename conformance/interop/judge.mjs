// The schema judge: every recorded message of a server against the specification's own schema.
//
//   node judge.mjs TOOLS REVISION LOG
//
// TOOLS is the folder with the conformance suite's node_modules: its bundle carries the schema of
// each revision. Prints one JSON object: how many messages were judged, and every violation.
//
// Judged are: the shape of each request, notification, result and error; that a server sends only
// what servers may send; that fields and content kinds of other revisions are not sent; that
// stdout carries nothing but messages; that a process ends by itself, with 0, when its input ends.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import vm from "node:vm";
import { extend } from "./extensions.mjs";

/** How long a server may take to end after its input ended, in milliseconds. */
const EXIT_MS_MAX = 5_000;
/** An answer may cross a cancellation on the wire; after this many milliseconds it did not. */
const CROSSING_MS_MAX = 250;

/** How a call is remembered that was asked for as a task, whose answer is the task. */
const AS_TASK = "tools/call as a task";

/** What a request asks for. */
export const askedFor = ({ method, params }) => (method === "tools/call" && params?.task ? AS_TASK : method);

/** The object literals in the suite's bundle that are schemas, by revision. */
export function schemasIn(bundle) {
  const found = {};
  for (const match of bundle.matchAll(/=(\{\$schema:`https?:)/g)) {
    const start = match.index + 1;
    const end = literalEnd(bundle, start);
    const head = bundle.slice(start, start + 200);
    if (!/\$schema:`[^`]*`,(definitions|\$defs):\{/.test(head)) continue;
    const schema = vm.runInNewContext(`(${bundle.slice(start, end)})`);
    const defs = schema.$defs ?? schema.definitions;
    if (!defs.JSONRPCRequest) continue;
    mend(defs);
    const revision = revisionOf(defs);
    extend(defs, revision);
    found[revision] = schema;
  }
  return found;
}

/** The suite's copies are older than a correction upstream: the bounds of a number, and what fills it in, are numbers. */
function mend(defs) {
  const filled = defs.ElicitResult?.properties?.content?.additionalProperties;
  for (const branch of [filled, ...(filled?.anyOf ?? [])]) {
    if (Array.isArray(branch?.type)) branch.type = branch.type.map((type) => (type === "integer" ? "number" : type));
  }
  for (const bound of Object.values(defs.NumberSchema?.properties ?? {})) {
    if (bound.type === "integer") bound.type = "number";
  }
}

/** The revision whose vocabulary these definitions are. */
function revisionOf(defs) {
  if (defs.DiscoverRequest) return "2026-07-28";
  if (defs.Task) return "2025-11-25";
  if (defs.ElicitRequest) return "2025-06-18";
  if (defs.JSONRPCBatchRequest) return "2025-03-26";
  throw new Error("a schema of an unknown revision is in the suite");
}

/** The end of the object literal at `start`, minding the strings in it. */
function literalEnd(text, start) {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const c = text[at];
    if (c === "`" || c === '"' || c === "'") {
      for (at++; text[at] !== c; at++) if (text[at] === "\\") at++;
    } else if (c === "{" || c === "[") depth++;
    else if (c === "}" || c === "]") {
      depth--;
      if (depth === 0) return at + 1;
    }
  }
  throw new Error("a schema in the suite has no end");
}

/** Validates messages that one side sends in one revision. */
export class Judge {
  constructor(require, schema, side = "Server") {
    const isNew = schema.$schema.includes("2020-12");
    const Ajv = isNew ? require("ajv/dist/2020.js") : require("ajv");
    this.ajv = new (Ajv.default ?? Ajv)({ strict: false, allErrors: true });
    const formats = require("ajv-formats");
    (formats.default ?? formats)(this.ajv);
    this.schema = schema;
    this.key = isNew ? "$defs" : "definitions";
    this.defs = schema[this.key];
    this.ajv.addSchema(schema, "mcp");
    this.methods = new Map();
    for (const [name, def] of Object.entries(this.defs)) {
      const method = def.properties?.method?.const;
      if (method) this.methods.set(method, name);
    }
    this.side = side;
    this.sent = { request: this.union(`${side}Request`), notification: this.union(`${side}Notification`) };
  }

  /** The methods of the members of a union. */
  union(name) {
    const members = this.defs[name]?.anyOf ?? (this.defs[name] ? [this.defs[name]] : []);
    const methods = members.map((member) => this.resolve(member).properties?.method?.const);
    return new Set(methods.filter(Boolean));
  }

  resolve(schema) {
    while (schema.$ref) schema = this.defs[schema.$ref.split("/").at(-1)];
    return schema;
  }

  errors(def, value) {
    const validate = this.ajv.getSchema(`mcp#/${this.key}/${def}`);
    if (validate(value)) return [];
    // Every branch of a union complains; the deepest complaint is about the branch that was meant.
    const depth = (error) => error.instancePath.split("/").length;
    const deepest = Math.max(...validate.errors.map(depth));
    const told = validate.errors.filter((error) => depth(error) === deepest);
    const one = told.map((error) => `${error.instancePath}: ${error.message}`);
    return [`${def}${[...new Set(one)].slice(0, 4).join("; ")}`];
  }

  first(...names) {
    return names.find((name) => this.defs[name]);
  }

  /** What is wrong with a message; `methodOf(id)` is what the other side asked. */
  violations(message, methodOf) {
    if (Array.isArray(message)) {
      if (!this.defs.JSONRPCBatchResponse) return ["this revision has no batches"];
      return message.flatMap((member) => this.violations(member, methodOf));
    }
    if (message === null || typeof message !== "object") return ["not an object"];
    if (typeof message.method === "string") return this.said(message);
    if (message.error !== undefined) return this.failed(message);
    return this.answered(message, methodOf(message.id));
  }

  said(message) {
    const kind = "id" in message ? "request" : "notification";
    const { method } = message;
    if (!this.sent[kind].has(method)) return [`no ${this.side.toLowerCase()} ${kind} of this revision is ${method}`];
    const def = this.methods.get(method);
    // The older schemas leave the envelope's own members out of each message.
    const { jsonrpc, id, ...rest } = message;
    return [...this.errors(def, message), ...this.undeclared({ $ref: def }, rest, def)];
  }

  failed(message) {
    const def = this.first("JSONRPCErrorResponse", "JSONRPCError");
    const errors = this.errors(def, message);
    for (const [name, special] of Object.entries(this.defs)) {
      const code = special.properties?.error?.allOf?.[1]?.properties?.code?.const
        ?? special.properties?.error?.properties?.code?.const;
      if (code !== undefined && code === message.error?.code) errors.push(...this.errors(name, message));
    }
    return errors;
  }

  answered(message, method) {
    const frame = this.first("JSONRPCResultResponse", "JSONRPCResponse");
    const errors = this.errors(frame, message);
    if (errors.length > 0) return errors;
    if (method === undefined) return ["answers nothing that was asked"];
    const isTask = method === AS_TASK && this.defs.CreateTaskResult;
    if (method === AS_TASK) method = "tools/call";
    const request = this.methods.get(method);
    if (!request) return [`${method} is not of this revision, yet it was answered with a result`];
    const stem = request.replace(/Request$/, "");
    let def = isTask ? "CreateTaskResult" : this.first(`${stem}Result`, "EmptyResult");
    // Where there are tasks, they are calls of tools.
    if (def === "GetTaskPayloadResult") def = "CallToolResult";
    if (method === "tools/call" && message.result?.resultType === "task") def = this.first("CreatedTask", def);
    if (message.result?.resultType === "input_required" && this.defs.InputRequiredResult) {
      const rounds = ["tools/call", "prompts/get", "resources/read"];
      if (!rounds.includes(method)) return [`${method} must not ask for input`];
      def = "InputRequiredResult";
    }
    return [
      ...this.errors(def, message.result),
      ...this.undeclared({ $ref: def }, message.result, def),
    ];
  }

  /** Properties that this revision does not know, where it declares what it knows. */
  undeclared(schema, value, place) {
    if (value === null || typeof value !== "object") return [];
    const def = this.resolve(schema);
    const branches = def.anyOf ?? def.oneOf;
    if (branches) {
      const fitting = branches.filter((branch) => this.fits(branch, value));
      const found = fitting.map((branch) => this.undeclared(branch, value, place));
      return found.sort((a, b) => a.length - b.length)[0] ?? [];
    }
    if (Array.isArray(value)) {
      if (!def.items) return [];
      return value.flatMap((item, index) => this.undeclared(def.items, item, `${place}/${index}`));
    }
    if (!def.properties) return [];
    const found = [];
    for (const [name, inner] of Object.entries(value)) {
      // What these hold is the author's, or a schema of its own.
      if (["_meta", "inputSchema", "outputSchema", "requestedSchema", "capabilities", "data", "arguments", "structuredContent"].includes(name) && def.properties[name]) continue;
      const known = def.properties[name];
      if (known) found.push(...this.undeclared(known, inner, `${place}/${name}`));
      else if (def.additionalProperties === undefined || place.endsWith("Result")) {
        found.push(`${place}: \`${name}\` is not of this revision`);
      }
    }
    return found;
  }

  fits(branch, value) {
    if (branch.$ref) return this.errors(branch.$ref.split("/").at(-1), value).length === 0;
    return branch.type === undefined || branch.type === (Array.isArray(value) ? "array" : typeof value);
  }
}

/** Reads a recording and judges what the server said in it. */
export function judge(records, judgeOne, revision) {
  const asked = new Map();
  const cancelled = new Map();
  const verdict = { revision, messages: 0, violations: [] };
  const blamed = new Map();
  // The same thing said about every member of a list is said once, with the first as evidence.
  const blame = (what, evidence) => {
    const kind = what.replace(/\/\d+/g, "/*");
    const shown = typeof evidence === "string" ? evidence : JSON.stringify(evidence);
    const known = blamed.get(kind) ?? { count: 0, shown: shown.slice(0, 300) };
    blamed.set(kind, { ...known, count: known.count + 1 });
  };
  for (const entry of records) {
    const scope = entry.link.startsWith("stdio") ? entry.link : "http";
    const key = (link, id) => `${link} ${JSON.stringify(id)}`;
    if (entry.from === "client" && entry.message !== undefined) {
      for (const message of [entry.message].flat()) {
        if (message?.method === "notifications/cancelled") {
          cancelled.set(key(scope, message.params?.requestId), entry.at);
        }
        if (typeof message?.method !== "string" || !("id" in message)) continue;
        const method = askedFor(message);
        asked.set(key(scope, message.id), method);
        asked.set(key(entry.link, message.id), method);
      }
    }
    if (entry.from !== "server") continue;
    if (entry.text !== undefined) blame("not a JSON-RPC message", entry.text);
    if (entry.exit) {
      const { code, afterEnd, killed } = entry.exit;
      // A process that was told to end by a signal is judged by its own tests.
      const isClean = code === 0 && afterEnd !== null && afterEnd <= EXIT_MS_MAX;
      if (!killed && !isClean) blame("did not end cleanly with its input", entry.exit);
    }
    if (entry.message === undefined) continue;
    const methodOf = (id) => asked.get(key(entry.link, id)) ?? asked.get(key(scope, id));
    verdict.messages += [entry.message].flat().length;
    for (const what of judgeOne.violations(entry.message, methodOf)) blame(what, entry.message);
    const stopped = cancelled.get(key(scope, entry.message?.id));
    // The answer of a stopped listen stream is the one that is allowed.
    const isAnswer = entry.message?.method === undefined && methodOf(entry.message?.id) !== "subscriptions/listen";
    if (stopped !== undefined && isAnswer && entry.at - stopped > CROSSING_MS_MAX) {
      blame("a cancelled request is answered", entry.message);
    }
    const version = entry.message?.result?.protocolVersion;
    if (version && methodOf(entry.message.id) === "initialize" && version !== revision) {
      blame(`${revision} was asked for and ${version} negotiated`, entry.message);
    }
  }
  for (const [kind, { count, shown }] of blamed) {
    verdict.violations.push(`${kind} (${count} times) :: ${shown}`);
  }
  return verdict;
}

/** Makes judges from the schemas in the suite that is installed in TOOLS. */
export function bench(tools) {
  const require = createRequire(join(tools, "package.json"));
  const bundle = join(tools, "node_modules/@modelcontextprotocol/conformance/dist/index.js");
  const schemas = schemasIn(readFileSync(bundle, "utf8"));
  return (revision, side) => {
    // The suite has no schema of 2024-11-05. 2025-03-26 only added to it, so what is wrong there
    // is wrong here too; what is new there is looked for by name.
    const isFirst = revision === "2024-11-05";
    const schema = structuredClone(schemas[isFirst ? "2025-03-26" : revision]);
    if (!schema) throw new Error(`the suite has no schema of ${revision}`);
    if (isFirst) withoutNews(schema.definitions);
    return new Judge(require, schema, side);
  };
}

/** The records of a recording. */
export function recordsOf(log) {
  return readFileSync(log, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

function main() {
  const [tools, revision, log] = process.argv.slice(2);
  console.log(JSON.stringify(judge(recordsOf(log), bench(tools)(revision, "Server"), revision)));
}

/** Takes out of 2025-03-26 what 2024-11-05 did not have. */
function withoutNews(defs) {
  delete defs.JSONRPCBatchRequest;
  delete defs.JSONRPCBatchResponse;
  delete defs.Tool.properties.annotations;
  delete defs.ServerCapabilities.properties.completions;
  delete defs.ProgressNotification.properties.params.properties.message;
  for (const def of Object.values(defs)) dropAudio(def);
}

function dropAudio(node) {
  if (node === null || typeof node !== "object") return;
  if (Array.isArray(node.anyOf)) {
    node.anyOf = node.anyOf.filter((branch) => branch.$ref !== "#/definitions/AudioContent");
  }
  Object.values(node).forEach(dropAudio);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) main();
