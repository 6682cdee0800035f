// Loaded into the published server before it starts: what it asks EverArt's host over TLS goes to a double on this machine, and
// the browser that it opens is none.
const { EventEmitter } = require("node:events");
const child_process = require("node:child_process");
const http = require("node:http");
const https = require("node:https");

const double = new URL(process.env.EVERART_DOUBLE);

https.request = (options, heard) => {
  if (options.hostname !== "api.everart.ai") throw new Error(`the published server asks ${options.hostname}`);
  const there = { ...options, protocol: "http:", host: undefined, hostname: double.hostname, port: double.port };
  return http.request({ ...there, agent: undefined, agents: undefined }, heard);
};

child_process.spawn = () => Object.assign(new EventEmitter(), { unref() {} });
require("node:module").syncBuiltinESMExports();
