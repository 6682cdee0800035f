"""fastmcp's client logs in, with the browser that `BROWSER` names: `python fastmcp_client.py '{ url, lifeMs }'`."""

import asyncio
import json
import sys
import traceback

from fastmcp import Client

LANE = json.loads(sys.argv[1])


async def main():
    async def check(name, what):
        try:
            await what()
            print(json.dumps({"name": name, "status": "pass", "detail": ""}), flush=True)
        except BaseException:
            print(json.dumps({"name": name, "status": "fail", "detail": traceback.format_exc()}), flush=True)

    async with Client(LANE["url"], auth="oauth") as client:

        async def login():
            assert (await client.call_tool("whoami")).content[0].text == "ada"

        async def step_up():
            assert (await client.call_tool("write")).content[0].text == "written"

        async def refresh():
            await asyncio.sleep(LANE["lifeMs"] / 1000 + 0.2)
            await login()

        await check("login", login)
        await check("step-up", step_up)
        await check("refresh", refresh)


asyncio.run(main())
