"""PyPI's django-oauth-toolkit as somebody else's authorization server: `python django_provider.py PORT CALLBACK`, with a user ada
whose password is pw.

Its access tokens are opaque: a guard asks about them, as the client `linchpin`. Others register themselves.
"""

import sys
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import django
from django.conf import settings
from django.urls import include, path
from jwcrypto.jwk import JWK

port, callback = sys.argv[1:3]
LOGIN = '<form method="post">{% csrf_token %}{{ form }}<button>Log in</button></form>'
CONSENT = '<form method="post">{% csrf_token %}{{ form.as_p }}<input type="hidden" name="allow" value="yes"></form>'
settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "file:provider?mode=memory&cache=shared"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "oauth2_provider"],
    LOGIN_URL="/login/",
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
    OAUTH2_PROVIDER={
        "OIDC_ENABLED": True,
        "OIDC_RSA_PRIVATE_KEY": JWK.generate(kty="RSA", size=2048).export_to_pem(private_key=True, password=None).decode(),
        "SCOPES": {"openid": "who you are", "notes:read": "read your notes", "notes:write": "change your notes"},
        "ALLOWED_REDIRECT_URI_SCHEMES": ["http", "https"],
        "DCR_ENABLED": True,
        "DCR_REGISTRATION_PERMISSION_CLASSES": ["oauth2_provider.dcr.AllowAllDCRPermission"],
    },
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="for tests only",
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "OPTIONS": {
                "context_processors": ["django.template.context_processors.request"],
                "loaders": [
                    ("django.template.loaders.locmem.Loader", {"registration/login.html": LOGIN, "oauth2_provider/authorize.html": CONSENT})
                ],
            },
        }
    ],
    USE_TZ=True,
)
django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.contrib.auth.views import LoginView  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.db import connection  # noqa: E402
from oauth2_provider.models import Application  # noqa: E402

urlpatterns = [path("login/", LoginView.as_view()), path("", include("oauth2_provider.urls", namespace="oauth2_provider"))]
call_command("migrate", verbosity=0)
# What is in memory ends with its last connection.
connection.ensure_connection()
user = User.objects.create_user("ada", password="pw")
Application.objects.create(
    client_id="linchpin",
    client_secret="our-secret",
    client_type=Application.CLIENT_CONFIDENTIAL,
    authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
    redirect_uris=callback,
    user=user,
)


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


server = make_server("127.0.0.1", int(port), get_wsgi_application(), server_class=Server, handler_class=Quiet)
print(f"provider ready on http://127.0.0.1:{port}", file=sys.stderr, flush=True)
server.serve_forever()
