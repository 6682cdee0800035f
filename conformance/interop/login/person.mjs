// A user without a head: follows redirects, fills in forms, says yes.
//
// `node person.mjs URL [END]` prints where the browser ended: at the client's address, with its code or error. An address that
// starts with END is not opened.

import { pathToFileURL } from "node:url";

const STEPS_MAX = 30;
const name = process.env.PERSON_NAME ?? "ada";
const password = process.env.PERSON_PASSWORD ?? "pw";

const unescape = (text) =>
  text.replaceAll("&quot;", '"').replaceAll("&#39;", "'").replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");

const attributes = (tag) =>
  Object.fromEntries([...tag.matchAll(/([\w-]+)(?:\s*=\s*"([^"]*)")?/g)].slice(1).map(([, key, value]) => [key, unescape(value ?? "")]));

/** What a user puts into a field of a form, by its name. */
function typed(input) {
  if (input.type === "password") return password;
  if (["text", "email", undefined].includes(input.type)) return name;
  return input.value ?? "";
}

/** The first form of a page that sends something, filled in. */
function filled(page, answer) {
  for (const [, tag, inside] of page.matchAll(/<form\b([^>]*)>([\s\S]*?)<\/form>/g)) {
    const form = attributes(`<form ${tag}`);
    if ((form.method ?? "get").toLowerCase() !== "post") continue;
    const fields = new URLSearchParams();
    for (const [input] of inside.matchAll(/<input\b[^>]*>/g)) {
      const field = attributes(input);
      if (field.name && !["submit", "checkbox", "button"].includes(field.type)) fields.append(field.name, typed(field));
    }
    const buttons = [...inside.matchAll(/<(?:button|input)\b[^>]*\bname="[^"]*"[^>]*>/g)].map(([button]) => attributes(button));
    const chosen = buttons.find((button) => button.name === "answer" && answer.test(button.value ?? ""));
    if (chosen) fields.append(chosen.name, chosen.value);
    return { action: form.action, fields };
  }
}

/** A browser with its cookies. */
export class Person {
  #cookies = new Map();

  /**
   * @param answer what the user says to the question: the value of a button
   * @param patience how often an address where nobody listens is tried again
   */
  constructor(answer = /^(allow|accept)$/, patience = 0) {
    this.answer = answer;
    this.patience = patience;
  }

  #cookie(url) {
    const jar = this.#cookies.get(url.hostname) ?? new Map();
    return [...jar].map(([key, value]) => `${key}=${value}`).join("; ");
  }

  async #ask(url, form, origin) {
    const headers = { cookie: this.#cookie(url), accept: "text/html" };
    if (form) Object.assign(headers, { "content-type": "application/x-www-form-urlencoded", origin });
    const response = await fetch(url, { method: form ? "POST" : "GET", headers, body: form?.toString(), redirect: "manual" });
    const jar = this.#cookies.get(url.hostname) ?? new Map();
    for (const line of response.headers.getSetCookie()) {
      const [, key, value] = /^([^=]+)=([^;]*)/.exec(line);
      if (value) jar.set(key, value);
      else jar.delete(key);
    }
    this.#cookies.set(url.hostname, jar);
    return response;
  }

  /** Goes where the address leads, and returns the last one: where nobody answers, or there is nothing left to do. */
  async visit(address, stop = () => false) {
    let [url, form, origin] = [new URL(address), undefined, undefined];
    let refused = 0;
    for (let step = 0; step < STEPS_MAX; step++) {
      if (stop(url)) return url;
      let response;
      try {
        response = await this.#ask(url, form, origin);
      } catch (error) {
        if (error.cause?.code !== "ECONNREFUSED") throw error;
        // The client may listen a moment later.
        if (++refused > this.patience) return url;
        await new Promise((resolve) => setTimeout(resolve, 250));
        continue;
      }
      const page = await response.text();
      const onward = response.headers.get("location") ?? /content="0; ?url=([^"]*)"/.exec(page)?.[1];
      if (onward) {
        [url, form] = [new URL(unescape(onward), url), undefined];
        continue;
      }
      const next = (response.headers.get("content-type") ?? "").startsWith("text/html") && filled(page, this.answer);
      if (!next) {
        if (response.status >= 400) throw new Error(`status ${response.status} at ${url}: ${page.slice(0, 2000)}`);
        return url;
      }
      origin = url.origin;
      [url, form] = [new URL(next.action || url, url), next.fields];
    }
    throw new Error(`the login does not end: ${url}`);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [address, end] = process.argv.slice(2);
  console.log((await new Person(undefined, 20).visit(address, (at) => end && at.href.startsWith(end))).href);
}
