"""The Python SDK's clients log in: `python py.py '{ sdk, url, way, lifeMs, node }'`."""

import asyncio
import json
import subprocess
import sys
import traceback
import urllib.parse
import urllib.request
from contextlib import asynccontextmanager
from pathlib import Path

from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata

LANE = json.loads(sys.argv[1])
FIRST = LANE["sdk"] == "1"
REDIRECT = "http://127.0.0.1:9/callback"
PERSON = Path(__file__).with_name("person.mjs")
PRE_REGISTERED = {
    "public": {"client_id": "public", "token_endpoint_auth_method": "none"},
    "confidential": {"client_id": "confidential", "client_secret": "s3cret", "token_endpoint_auth_method": "client_secret_post"},
}


class Kept:
    """What a host keeps of a login."""

    def __init__(self):
        self.tokens = None
        known = PRE_REGISTERED.get(LANE["way"])
        self.client = known and OAuthClientInformationFull(redirect_uris=[REDIRECT], **known)

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Asked:
    """A person who counts what clients ask for."""

    def __init__(self):
        self.scopes = []
        self.clients = []
        self.landed = None

    async def log_in(self, url):
        asked = urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)
        self.scopes.append(asked.get("scope", [""])[0])
        self.clients.append(asked["client_id"][0])
        process = await asyncio.create_subprocess_exec(
            LANE["node"], str(PERSON), url, REDIRECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        out, err = await process.communicate()
        assert process.returncode == 0, err.decode()
        self.landed = urllib.parse.parse_qs(urllib.parse.urlsplit(out.decode().strip()).query)

    async def answer(self):
        code, state, iss = (self.landed.get(name, [None])[0] for name in ("code", "state", "iss"))
        if FIRST:
            return code, state
        from mcp.shared.auth import AuthorizationCodeResult

        return AuthorizationCodeResult(code=code, state=state, iss=iss)


def revoke(token, client):
    form = {"token": token, "client_id": client.client_id}
    if client.client_secret:
        form["client_secret"] = client.client_secret
    url = urllib.parse.urljoin(LANE["url"], "/revoke")
    urllib.request.urlopen(url, urllib.parse.urlencode(form).encode()).read()


@asynccontextmanager
async def session(oauth):
    if FIRST:
        import httpx as http
    else:
        import httpx2 as http
    async with http.AsyncClient(auth=oauth, timeout=60) as client:
        async with streamable_http_client(LANE["url"], http_client=client) as streams:
            async with ClientSession(*streams[:2]) as opened:
                await opened.initialize()
                yield opened


async def main():
    kept, person = Kept(), Asked()
    oauth = OAuthClientProvider(
        LANE["url"],
        OAuthClientMetadata(
            client_name=f"Interop Python {LANE['sdk']}",
            redirect_uris=[REDIRECT],
            grant_types=["authorization_code", "refresh_token"],
            token_endpoint_auth_method="none",
        ),
        kept,
        person.log_in,
        person.answer,
        client_metadata_url=LANE.get("document") if LANE["way"] == "document" else None,
    )

    asked = 2 if "step-up" in LANE["checks"] else 1

    async def check(name, what):
        if name not in LANE["checks"]:
            return
        try:
            await what()
            print(json.dumps({"name": name, "status": "pass", "detail": ""}), flush=True)
        except BaseException:
            print(json.dumps({"name": name, "status": "fail", "detail": traceback.format_exc()}), flush=True)

    async def call(opened, tool):
        return (await opened.call_tool(tool, {})).content[0].text

    async with session(oauth) as opened:

        async def login():
            assert await call(opened, "whoami") == "ada"
            assert len(person.scopes) == 1 and "notes:write" not in person.scopes[0], person.scopes
            if LANE["way"] == "document":
                assert person.clients[0] == LANE["document"], person.clients

        async def step_up():
            assert await call(opened, "write") == "written"
            assert len(person.scopes) == 2 and "notes:write" in person.scopes[1], person.scopes

        async def refresh():
            before = kept.tokens.access_token
            await asyncio.sleep(LANE["lifeMs"] / 1000 + 0.2)
            assert await call(opened, "whoami") == "ada"
            assert kept.tokens.access_token != before
            assert len(person.scopes) == asked, "nobody is asked again"

        async def revocation():
            await asyncio.to_thread(revoke, kept.tokens.refresh_token, kept.client)
            assert await call(opened, "whoami") == "ada"
            assert len(person.scopes) == asked + 1, "the user is asked again"

        await check("login", login)
        await check("step-up", step_up)
        await check("refresh", refresh)
        await check("revocation", revocation)


asyncio.run(main())
