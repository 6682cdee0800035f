"""PyPI's canaille as somebody else's provider: `python canaille_provider.py PORT CALLBACK`, with a user ada whose password is pw.

It knows one client of ours, asks the user on its own pages, and keeps everything in memory.
"""

import sys
import wsgiref.simple_server
from socketserver import ThreadingMixIn

from canaille import create_app
from canaille.app import models
from joserfc.jwk import RSAKey

port, callback = sys.argv[1:3]
key = RSAKey.generate_key(2048, {"kid": "k1", "use": "sig", "alg": "RS256"}, private=True, auto_kid=False)
app = create_app(
    {
        "SECRET_KEY": "for tests only",
        "PREFERRED_URL_SCHEME": "http",
        "SERVER_NAME": f"127.0.0.1:{port}",
        "CANAILLE": {"ENABLE_REGISTRATION": False},
        "CANAILLE_OIDC": {
            "ACTIVE_JWKS": [key.as_dict(private=True)],
            "TRUSTED_DOMAINS": [],
            "USERINFO_MAPPING": {"SUB": "{{ user.user_name }}"},
        },
        "WTF_CSRF_ENABLED": False,
    }
)
with app.app_context(), app.backend.session():
    user = models.User(user_name="ada", formatted_name="Ada", family_name="L", emails=["ada@acme.example"], password="pw")
    app.backend.save(user)
    client = models.Client(
        client_id="linchpin",
        client_secret="our-secret",
        client_name="linchpin",
        client_uri="https://linchpin.example",
        redirect_uris=[callback],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        scope=["openid", "email", "profile", "offline_access"],
        token_endpoint_auth_method="client_secret_basic",
        contacts=[],
    )
    app.backend.save(client)
    client.audience = [client]
    app.backend.save(client)


class Server(ThreadingMixIn, wsgiref.simple_server.WSGIServer):
    daemon_threads = True


server = wsgiref.simple_server.make_server("127.0.0.1", int(port), app, server_class=Server)
print(f"provider ready on http://127.0.0.1:{port}", file=sys.stderr, flush=True)
server.serve_forever()
