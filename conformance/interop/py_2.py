"""mcp 2.x: every revision, both eras."""

import asyncio
import sys
import warnings
from contextlib import asynccontextmanager

import mcp.client.session as session_module
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client

import checks

# The legacy verbs warn that 2026-07-28 has no such thing; that is why they are called here.
warnings.simplefilter("ignore")


def wire(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class Face:
    def __init__(self):
        self.logs = []
        self.updated = []
        self.tools_changed = 0
        self.answer_elicit = None
        self.answer_sample = None
        self.client = None

    # What the server asks for or tells.

    async def on_log(self, params):
        self.logs.append(wire(params))

    async def on_message(self, message):
        if isinstance(message, types.ResourceUpdatedNotification):
            self.updated.append(str(message.params.uri))
        if isinstance(message, types.ToolListChangedNotification):
            self.tools_changed += 1

    async def on_elicit(self, context, params):
        action, content = self.answer_elicit(wire(params))
        return types.ElicitResult(action=action, content=content)

    async def on_sample(self, context, params):
        said = self.answer_sample(wire(params))
        content = types.TextContent(type="text", text=said)
        return types.CreateMessageResult(role="assistant", content=content, model="interop-model")

    async def on_roots(self, context):
        return types.ListRootsResult(roots=[types.Root(**checks.ROOT)])

    # What the checks ask for.

    def version(self):
        return self.client.protocol_version

    def server_name(self):
        return self.client.server_info and self.client.server_info.name

    async def tools(self):
        return wire(await self.client.list_tools())["tools"]

    async def resources(self):
        return wire(await self.client.list_resources())["resources"]

    async def templates(self):
        return wire(await self.client.list_resource_templates())["resourceTemplates"]

    async def prompts(self):
        return wire(await self.client.list_prompts())["prompts"]

    async def call(self, name, arguments, meta=None, on_progress=None):
        return wire(await self.client.call_tool(name, arguments, meta=meta, progress_callback=on_progress))

    async def cancelled_after(self, seconds, call):
        task = asyncio.ensure_future(call)
        await asyncio.sleep(seconds)
        assert not task.done(), "it ended before it was cancelled"
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return
        raise AssertionError("it was not cancelled")

    async def read(self, uri):
        return wire(await self.client.read_resource(uri))

    async def prompt(self, name, arguments=None):
        return wire(await self.client.get_prompt(name, arguments))

    async def complete(self, ref, argument, context=None):
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        return wire(await self.client.complete(kind(**ref), argument, context))

    async def ping(self):
        await self.client.send_ping()

    async def level(self, level):
        await self.client.set_logging_level(level)

    async def subscribe(self, uri):
        await self.client.subscribe_resource(uri)

    async def unsubscribe(self, uri):
        await self.client.unsubscribe_resource(uri)

    async def listen(self, uri, seconds):
        stream = self.client.listen(resource_subscriptions=[uri], tools_list_changed=True)
        async with stream as subscription:
            honored = wire(subscription.honored)
            assert honored["resourceSubscriptions"] == [uri], honored
            assert honored["toolsListChanged"] is True, honored
            await self.call("toggle-subscriber-updates", {})
            event = await asyncio.wait_for(anext(aiter(subscription)), seconds)
            assert str(event.uri) == uri, event
        await self.call("toggle-subscriber-updates", {})

    @asynccontextmanager
    async def told_of_tools(self):
        """Until it ends, the server tells of changed tools; a legacy session is told anyway."""
        if self.client.protocol_version < "2026":
            yield
            return
        async with self.client.listen(tools_list_changed=True):
            yield


@asynccontextmanager
async def connected(lane):
    face = Face()
    if lane.get("command"):
        command, *args = lane["command"]
        server = StdioServerParameters(command=command, args=args)
    elif lane["transport"] == "sse":
        server = sse_client(lane["url"])
    else:
        server = lane["url"]
    if not lane["modern"]:
        # This client always asks for its latest legacy revision; an older one is asked for here.
        session_module.LATEST_HANDSHAKE_VERSION = lane["revision"]
    client = Client(
        server,
        mode="auto" if lane["modern"] else "legacy",
        client_info=types.Implementation(name="interop-py-2", version="1"),
        logging_callback=face.on_log,
        message_handler=face.on_message,
        elicitation_callback=face.on_elicit if lane["revision"] >= "2025-06-18" else None,
        sampling_callback=face.on_sample,
        list_roots_callback=face.on_roots,
    )
    async with client:
        face.client = client
        yield face


if __name__ == "__main__":
    sys.exit(checks.run(connected))
