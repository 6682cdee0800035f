// The skills of @modelcontextprotocol/client 2.x.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { run } from "./checks.mjs";

const require = createRequire(join(process.env.INTEROP_TOOLS, "package.json"));
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");
const { SkillsClient, SkillVerificationError } = require("@modelcontextprotocol/client/ext/skills");

const HERONS = "skill://heron-watch/SKILL.md";
const WORDS = "skill://heron-watch/references/words.md";

function transport(lane) {
  if (!lane.command) return new StreamableHTTPClientTransport(new URL(lane.url));
  const [command, ...args] = lane.command;
  return new StdioClientTransport({ command, args, stderr: "inherit" });
}

const CHECKS = {
  connect({ client, skills }, lane) {
    assert.equal(client.getNegotiatedProtocolVersion(), lane.revision);
    assert.ok(skills.supported && skills.directoryRead);
  },
  async list({ skills }) {
    // It throws if an entry is not as it should be.
    const { skills: entries } = await skills.list();
    assert.deepEqual(entries.map(({ frontmatter }) => frontmatter.name).sort(), ["heron-watch", "pond-care"]);
  },
  async get({ skills }) {
    const { skill } = await skills.get(HERONS);
    assert.equal(skill.frontmatter.metadata.season, "spring");
    assert.deepEqual(skill.resources.map(({ uri }) => uri).sort(), [HERONS, WORDS]);
    assert.deepEqual((await skills.list()).skills.find(({ uri }) => uri === HERONS), skill);
  },
  async load({ skills }) {
    const { verified, body, frontmatter } = await skills.read((await skills.get(HERONS)).skill);
    assert.ok(verified);
    assert.match(body, /Stand still/);
    assert.equal(frontmatter.name, "heron-watch");
  },
  async file({ skills }) {
    const { skill } = await skills.get(HERONS);
    const { verified, text } = await skills.read(skill, "references/words.md");
    assert.ok(verified);
    assert.match(text, /“Fischreiher”/);
    await assert.rejects(skills.read(skill, "no/such/file"), SkillVerificationError);
  },
  async directory({ skills }) {
    const { resources } = await skills.readDirectory("skill://heron-watch");
    assert.deepEqual(resources.map(({ uri }) => uri).sort(), [HERONS, "skill://heron-watch/references"]);
  },
  async unknown({ client, skills }) {
    await assert.rejects(skills.get("skill://none/SKILL.md"), (error) => error.code === -32602);
    await assert.rejects(client.readResource({ uri: "skill://heron-watch/../secret" }));
  },
  async close({ client }) {
    await client.close();
  },
};

run(async (lane) => {
  const client = new Client(
    { name: "interop-ts-skills", version: "1" },
    {
      capabilities: { extensions: { "io.modelcontextprotocol/skills": {} } },
      supportedProtocolVersions: [lane.revision],
      versionNegotiation: { mode: lane.modern ? { pin: lane.revision } : "legacy" },
    },
  );
  await client.connect(transport(lane));
  return { client, skills: new SkillsClient(client) };
}, CHECKS);
