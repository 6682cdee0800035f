// The official suite's scenarios for authorization servers, with a user on the address that it prints.
//
// `node suite.mjs SUITE ARGUMENT…`: the suite's script and its arguments.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Person } from "./person.mjs";

const [script, ...args] = process.argv.slice(2);
const suite = spawn(process.execPath, [script, "authorization", ...args], { stdio: ["ignore", "pipe", "inherit"] });
for await (const line of createInterface({ input: suite.stdout })) {
  console.log(line);
  if (/^https?:\/\/\S+[?&]response_type=code/.test(line)) await new Person().visit(line.trim());
}
