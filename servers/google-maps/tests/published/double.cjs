// Loaded into the published server before it starts: what it asks Google's host over TLS goes to a double on this machine.
const http = require("node:http");
const https = require("node:https");

const double = new URL(process.env.MAPS_DOUBLE);

https.request = (url, options, heard) => {
  const asked = new URL(url);
  if (asked.hostname !== "maps.googleapis.com") throw new Error(`the published server asks ${asked.hostname}`);
  const there = { ...options, protocol: "http:", hostname: double.hostname, port: double.port, agent: undefined };
  return http.request(new URL(asked.pathname + asked.search, double), there, heard);
};
