"""The tasks of 2025-11-25 with Python's `mcp` 1.x: `python py_tasks.py stdio` or `python py_tasks.py http PORT`.

The same tools as `rmcp/src/extensions.rs`: what each does is in `README.md`.
"""

import contextlib
import sys
import warnings

import anyio
import uvicorn
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Mount

# Tasks are an experiment of this line.
warnings.simplefilter("ignore")

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

server = Server("interop-py-tasks", version="1.0.0")
server.experimental.enable_tasks()


def said(text, is_error=False):
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], isError=is_error)


async def dig(task):
    await task.update_status("digging")
    # Longer than the client's pause between two looks: it may have missed the notification.
    await anyio.sleep(1.2)
    return said("found an amphora")


async def broken(task):
    return said("the shovel broke", is_error=True)


async def collapse(task):
    raise RuntimeError("the shaft collapsed")


async def name(task):
    answer = await task.elicit(message="Who names it?", requestedSchema=FORM)
    return said(f"named by {answer.content['name']}" if answer.action == "accept" else f"no name: {answer.action}")


async def wait(task):
    await anyio.sleep(60)
    return said("done")


TOOLS = {work.__name__: work for work in (dig, broken, collapse, name, wait)}


@server.list_tools()
async def tools():
    execution = types.ToolExecution(taskSupport="required")
    return [types.Tool(name=name, inputSchema={"type": "object"}, execution=execution) for name in TOOLS]


@server.call_tool()
async def call(name, arguments):
    experimental = server.request_context.experimental
    experimental.validate_task_mode("required")
    return await experimental.run_task(TOOLS[name])


async def stdio():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def http(port):
    manager = StreamableHTTPSessionManager(server)

    @contextlib.asynccontextmanager
    async def lifespan(app):
        async with manager.run():
            yield

    app = Starlette(routes=[Mount("/mcp", app=manager.handle_request)], lifespan=lifespan)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        anyio.run(stdio)
    else:
        http(int(sys.argv[2]))
