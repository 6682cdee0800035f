"""mcp 1.x: the legacy revisions."""

import asyncio
import sys
from contextlib import AsyncExitStack, asynccontextmanager

import mcp.types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl

import checks


def wire(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class Tasks:
    def __init__(self, session):
        self.of = session.experimental

    async def make(self, name, arguments):
        return wire(await self.of.call_tool_as_task(name, arguments, ttl=60_000))

    async def whole(self, name, arguments, told):
        made = await self.of.call_tool_as_task(name, arguments, ttl=60_000)
        async for status in self.of.poll_task(made.task.taskId):
            told(status.status)
            if status.status == "input_required":
                break
        return await self.result(made.task.taskId)

    async def get(self, task):
        return wire(await self.of.get_task(task))

    async def result(self, task):
        return wire(await self.of.get_task_result(task, types.CallToolResult))

    async def list(self):
        return wire(await self.of.list_tasks())

    async def cancel(self, task):
        return wire(await self.of.cancel_task(task))


class Face:
    def __init__(self):
        self.logs = []
        self.updated = []
        self.tools_changed = 0
        self.answer_elicit = None
        self.answer_sample = None
        self.session = None
        self.begun = None

    # What the server asks for or tells.

    async def on_log(self, params):
        self.logs.append(wire(params))

    async def on_message(self, message):
        inner = getattr(message, "root", None)
        if isinstance(inner, types.ResourceUpdatedNotification):
            self.updated.append(str(inner.params.uri))
        if isinstance(inner, types.ToolListChangedNotification):
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
        return self.begun.protocolVersion

    def server_name(self):
        return self.begun.serverInfo.name

    async def tools(self):
        return wire(await self.session.list_tools())["tools"]

    async def resources(self):
        return wire(await self.session.list_resources())["resources"]

    async def templates(self):
        return wire(await self.session.list_resource_templates())["resourceTemplates"]

    async def prompts(self):
        return wire(await self.session.list_prompts())["prompts"]

    async def call(self, name, arguments, meta=None, on_progress=None):
        return wire(await self.session.call_tool(name, arguments, meta=meta, progress_callback=on_progress))

    async def cancelled_after(self, seconds, call):
        # This client has no way to cancel a request but to say so on the wire itself.
        first = self.session._request_id
        task = asyncio.ensure_future(call)
        await asyncio.sleep(seconds)
        assert not task.done(), "it ended before it was cancelled"
        params = types.CancelledNotificationParams(requestId=first, reason="enough")
        cancelled = types.CancelledNotification(params=params)
        await self.session.send_notification(types.ClientNotification(cancelled))
        await asyncio.sleep(0.5)
        # 1.x servers answer a cancelled request with an error; the specification says not to.
        answered = task.done() and task.exception() is None
        task.cancel()
        assert not answered, "a cancelled call was answered with its result"

    async def read(self, uri):
        return wire(await self.session.read_resource(AnyUrl(uri)))

    async def prompt(self, name, arguments=None):
        return wire(await self.session.get_prompt(name, arguments))

    async def complete(self, ref, argument, context=None):
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        return wire(await self.session.complete(kind(**ref), argument, context))

    async def ping(self):
        await self.session.send_ping()

    async def level(self, level):
        await self.session.set_logging_level(level)

    async def subscribe(self, uri):
        await self.session.subscribe_resource(AnyUrl(uri))

    async def unsubscribe(self, uri):
        await self.session.unsubscribe_resource(AnyUrl(uri))

    @asynccontextmanager
    async def told_of_tools(self):
        """A legacy session is told of changed tools without asking."""
        yield


@asynccontextmanager
async def connected(lane):
    face = Face()
    # This client always asks for its latest revision; an older one is asked for on its behalf.
    types.LATEST_PROTOCOL_VERSION = lane["revision"]
    async with AsyncExitStack() as stack:
        if lane.get("command"):
            command, *args = lane["command"]
            transport = stdio_client(StdioServerParameters(command=command, args=args))
        elif lane["transport"] == "sse":
            transport = sse_client(lane["url"])
        else:
            transport = streamable_http_client(lane["url"])
        read, write, *_ = await stack.enter_async_context(transport)
        session = ClientSession(
            read,
            write,
            client_info=types.Implementation(name="interop-py-1", version="1"),
            logging_callback=face.on_log,
            message_handler=face.on_message,
            elicitation_callback=face.on_elicit if lane["revision"] >= "2025-06-18" else None,
            sampling_callback=face.on_sample,
            list_roots_callback=face.on_roots,
        )
        face.session = await stack.enter_async_context(session)
        face.begun = await session.initialize()
        face.tasks = Tasks(session)
        yield face


if __name__ == "__main__":
    sys.exit(checks.run(connected))
