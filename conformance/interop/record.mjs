// A recording proxy: what a client and a server say to each other, one JSON object per line.
//
//   node record.mjs stdio LOG -- COMMAND [ARG…]     stands where the server's command would stand
//   node record.mjs http LOG PORT TARGET            listens on 127.0.0.1:PORT, forwards to TARGET,
//                                                   with the token in RECORD_TOKEN, if any
//
// Bytes pass through unchanged and as they come. A record has `from` (client, server), `link` (the
// process or the HTTP exchange), `at` (milliseconds) and one of `message`, `text` (not JSON),
// `request`, `status`, `exit`.

import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import http from "node:http";

const [kind, log, ...rest] = process.argv.slice(2);

function record(entry) {
  appendFileSync(log, JSON.stringify({ at: Date.now(), ...entry }) + "\n");
}

function recordText(from, link, text) {
  if (text.trim() === "") return;
  try {
    record({ from, link, message: JSON.parse(text) });
  } catch {
    record({ from, link, text });
  }
}

/** Calls `each` with every complete line of the chunks it is given. */
function lines(each) {
  let rest = Buffer.alloc(0);
  return {
    push(chunk) {
      rest = Buffer.concat([rest, chunk]);
      let end;
      while ((end = rest.indexOf(10)) >= 0) {
        each(rest.subarray(0, end).toString("utf8"));
        rest = rest.subarray(end + 1);
      }
    },
    end() {
      if (rest.length > 0) each(rest.toString("utf8"));
      rest = Buffer.alloc(0);
    },
  };
}

function stdio() {
  const [command, ...args] = rest.slice(rest.indexOf("--") + 1);
  const link = `stdio-${process.pid}`;
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  let ended = null;
  const toServer = lines((line) => recordText("client", link, line));
  const toClient = lines((line) => recordText("server", link, line));
  process.stdin.on("data", (chunk) => {
    toServer.push(chunk);
    child.stdin.write(chunk);
  });
  process.stdin.on("end", () => {
    toServer.end();
    ended = Date.now();
    child.stdin.end();
  });
  child.stdin.on("error", () => {});
  process.stdout.on("error", () => {});
  child.stdout.on("data", (chunk) => {
    toClient.push(chunk);
    process.stdout.write(chunk);
  });
  child.stdout.on("end", () => toClient.end());
  let killed = false;
  for (const signal of ["SIGTERM", "SIGINT"]) {
    process.on(signal, () => {
      killed = true;
      child.kill(signal);
    });
  }
  child.on("exit", (code, signal) => {
    const afterEnd = ended === null ? null : Date.now() - ended;
    record({ from: "server", link, exit: { code, signal, afterEnd, killed } });
  });
  child.on("close", (code) => process.exit(code ?? 1));
}

/** Calls `each` with the data of every server-sent event, `event` being its type. */
function events(each) {
  let type = "message";
  let data = [];
  return lines((raw) => {
    const line = raw.replace(/\r$/, "");
    if (line === "") {
      if (data.length > 0) each(type, data.join("\n"));
      type = "message";
      data = [];
    } else if (line.startsWith("data:")) {
      data.push(line.slice(5).replace(/^ /, ""));
    } else if (line.startsWith("event:")) {
      type = line.slice(6).trim();
    }
  });
}

function proxy() {
  const [port, target] = rest;
  const upstream = new URL(target);
  const token = process.env.RECORD_TOKEN;
  let exchanges = 0;
  const server = http.createServer((request, response) => {
    const link = `http-${++exchanges}`;
    const { "mcp-session-id": session, "mcp-protocol-version": version } = request.headers;
    record({
      from: "client",
      link,
      request: { method: request.method, path: request.url, session, version },
    });
    const onward = http.request(
      {
        host: upstream.hostname,
        port: upstream.port,
        method: request.method,
        path: request.url,
        headers: { ...request.headers, host: upstream.host, ...(token && { authorization: `Bearer ${token}` }) },
      },
      (answer) => forward(link, answer, response),
    );
    onward.on("error", (error) => {
      if (!response.headersSent) response.writeHead(502);
      response.end();
      record({ from: "proxy", link, text: String(error) });
    });
    const body = [];
    request.on("data", (chunk) => {
      body.push(chunk);
      onward.write(chunk);
    });
    request.on("end", () => {
      recordText("client", link, Buffer.concat(body).toString("utf8"));
      onward.end();
    });
    // A client that goes away must be seen by the server: that is how HTTP calls are cancelled.
    response.on("close", () => onward.destroy());
  });
  server.keepAliveTimeout = 60_000;
  server.requestTimeout = 0;
  server.listen(Number(port), "127.0.0.1");
}

function forward(link, answer, response) {
  const type = answer.headers["content-type"] ?? "";
  record({ from: "server", link, status: answer.statusCode, type });
  response.writeHead(answer.statusCode, answer.headers);
  response.flushHeaders();
  const isStream = type.startsWith("text/event-stream");
  const parser = events((event, data) => {
    if (event === "message") recordText("server", link, data);
  });
  const body = [];
  answer.on("data", (chunk) => {
    if (isStream) parser.push(chunk);
    else body.push(chunk);
    response.write(chunk);
  });
  answer.on("end", () => {
    if (isStream) parser.end();
    else if (type.startsWith("application/json")) {
      recordText("server", link, Buffer.concat(body).toString("utf8"));
    }
    response.end();
  });
  answer.on("error", () => response.destroy());
}

if (kind === "stdio") stdio();
else if (kind === "http") proxy();
else {
  console.error("usage: record.mjs stdio LOG -- COMMAND… | record.mjs http LOG PORT TARGET");
  process.exit(2);
}
