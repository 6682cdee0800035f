// Loaded into a published server before it starts (NODE_OPTIONS=--require): what it asks LED_HOST over TLS goes to LED_TO, a double
// on this machine; asking another host is an error. Nothing is opened in a browser. AWS's client speaks HTTP/1.1 instead of HTTP/2.
const { EventEmitter } = require("node:events");
const child_process = require("node:child_process");
const http = require("node:http");
const https = require("node:https");
const Module = require("node:module");

const to = new URL(process.env.LED_TO);

function led(host) {
  if (host !== process.env.LED_HOST) throw new Error(`the published server asks ${host}`);
}

const { fetch } = globalThis;
globalThis.fetch = (asked, options) => {
  const url = new URL(asked);
  led(url.hostname);
  return fetch(new URL(url.pathname + url.search, to), options);
};

https.request = (...given) => {
  const heard = given.find((one) => typeof one === "function");
  const options = given.find((one) => typeof one === "object" && !(one instanceof URL)) ?? {};
  const url = typeof given[0] === "object" && !(given[0] instanceof URL) ? null : new URL(given[0]);
  led(url?.hostname ?? options.hostname ?? options.host);
  const path = url ? url.pathname + url.search : options.path;
  const there = { protocol: "http:", host: undefined, hostname: to.hostname, port: to.port, path, agent: undefined, agents: undefined };
  return http.request({ ...options, ...there }, heard);
};

child_process.spawn = () => Object.assign(new EventEmitter(), { unref() {} });
Module.syncBuiltinESMExports();

const load = Module._load;
Module._load = (name, ...more) => {
  const loaded = load(name, ...more);
  return name === "@smithy/node-http-handler" ? { ...loaded, NodeHttp2Handler: loaded.NodeHttpHandler } : loaded;
};
