"""A server written with Python's `mcp` 2.x, for both eras: `python py.py stdio` or `python py.py http PORT`,
with `stateless` at the end without sessions, and with JSON answers.

The same offer as `ts.mjs` and `rmcp/`: what each tool does is in `README.md`.
"""

import sys
import warnings
from typing import Annotated

import anyio
from mcp.server import MCPServer
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp.server.streamable_http import EventMessage, EventStore
from mcp_types import (
    Completion,
    CreateMessageResult,
    ListRootsResult,
    PromptReference,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel

# The SDK warns of logging, which the newest revision deprecates.
warnings.simplefilter("ignore")

PEOPLE = ["ada", "alan", "grace"]
STATE = {"stopped": 0, "note": 0}

server = MCPServer("interop-py", version="1.0.0", instructions="Try everything.", log_level="WARNING")


class Sum(BaseModel):
    sum: float


class Person(BaseModel):
    name: str
    age: int | None = None


@server.tool()
def add(a: float, b: float) -> Sum:
    """Adds."""
    return Sum(sum=a + b)


@server.tool()
def fail() -> str:
    """Fails."""
    raise ToolError("it broke")


@server.tool()
async def steps(n: int, ctx: Context) -> str:
    """Counts."""
    await ctx.log("info", "counting begins")
    for step in range(1, n + 1):
        await ctx.report_progress(step, n)
        await anyio.sleep(0.01)
    return f"{n} steps"


@server.tool()
async def slow() -> str:
    """Takes a minute."""
    try:
        await anyio.sleep(60)
    except anyio.get_cancelled_exc_class():
        STATE["stopped"] += 1
        raise
    return "done"


@server.tool()
def stopped() -> str:
    """How many slow calls were stopped."""
    return str(STATE["stopped"])


@server.tool()
async def drop(ctx: Context) -> str:
    """Closes its stream before it answers."""
    await anyio.sleep(0.1)
    await ctx.close_sse_stream()
    await anyio.sleep(0.3)
    return "came back"


@server.tool()
async def touch(ctx: Context) -> str:
    """Changes the note."""
    STATE["note"] += 1
    # One for each era.
    await ctx.notify_resource_updated("note://board")
    await ctx.request_context.session.send_resource_updated("note://board")
    return "touched"


def grown() -> str:
    """Was not there before."""
    return "here"


@server.tool()
async def grow(ctx: Context) -> str:
    """Adds a tool."""
    server.add_tool(grown)
    await ctx.notify_tools_changed()
    await ctx.request_context.session.send_tool_list_changed()
    return "grown"


def who() -> Elicit[Person]:
    return Elicit("Who are you?", Person)


@server.tool()
def ask(answer: Annotated[ElicitationResult[Person], Resolve(who)]) -> str:
    """Asks for a name."""
    if isinstance(answer, AcceptedElicitation):
        return f"hello {answer.data.name}"
    return f"no name: {answer.action}"


def model() -> Sample:
    question = TextContent(type="text", text="What is the answer?")
    return Sample([SamplingMessage(role="user", content=question)], max_tokens=50)


@server.tool()
def sample(answer: Annotated[CreateMessageResult, Resolve(model)]) -> str:
    """Asks the model."""
    return f"sampled: {answer.model_dump_json()}"


@server.tool()
def roots(answer: Annotated[ListRootsResult, Resolve(ListRoots)]) -> str:
    """Asks for the roots."""
    return f"roots: {answer.model_dump_json()}"


@server.resource("note://board", mime_type="text/plain")
def board() -> str:
    return f"note {STATE['note']}"


@server.resource("person://{name}", mime_type="text/plain")
def person(name: str) -> str:
    return f"about {name}"


@server.prompt()
def greet(name: str) -> str:
    """Greets."""
    return f"Say hello to {name}."


@server.completion()
async def complete(ref, argument, context):
    wanted = "name" if isinstance(ref, PromptReference) or ref.uri == "person://{name}" else ""
    if argument.name != wanted:
        return None
    return Completion(values=[name for name in PEOPLE if name.startswith(argument.value)])


class Events(EventStore):
    """Keeps what was sent on streams, for those who come back."""

    def __init__(self):
        self.events = []

    async def store_event(self, stream_id, message):
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def replay_events_after(self, last_event_id, send_callback):
        at = int(last_event_id)
        stream = self.events[at - 1][0]
        for number, (other, message) in enumerate(self.events[at:], start=at + 1):
            if other == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run()
    elif "stateless" in sys.argv:
        server.run("streamable-http", port=int(sys.argv[2]), stateless_http=True, json_response=True)
    else:
        server.run("streamable-http", port=int(sys.argv[2]), event_store=Events(), retry_interval=50)
