#!/usr/bin/env node
// Starts the program of the package for this platform, with the same arguments, streams and signals.
"use strict";
const { spawn } = require("node:child_process");
const os = require("node:os");

// Where the C library is not glibc, the program that is linked statically is used.
if (process.report) process.report.excludeNetwork = true;
const glibc = process.platform === "linux" && process.report.getReport().header.glibcVersionRuntime;
const libcs = process.platform !== "linux" ? [""] : glibc ? ["-gnu", "-musl"] : ["-musl"];
const file = process.platform === "win32" ? "linchpin.exe" : "linchpin";
const wanted = libcs.map((libc) => `@SCOPE/${process.platform}-${process.arch}${libc}`);

function find() {
  for (const name of wanted) {
    try {
      return require.resolve(`${name}/${file}`);
    } catch {
      // The next one may be there.
    }
  }
  console.error(`linchpin: the package ${wanted.join(" or ")} is not installed.`);
  console.error("It is an optional dependency: install again without --omit=optional, or build linchpin with cargo.");
  process.exit(1);
}

const child = spawn(find(), process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`linchpin: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(signal ? 128 + os.constants.signals[signal] : code));
