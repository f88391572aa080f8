"""Every setting, from the environment, with its unit in the comment.

Without DATABASE_URL the embedded PostgreSQL under the data directory is used. Secrets come from the state folder, made on
first start, unless the environment gives them.
"""

from pathlib import Path
from typing import Any

import environ
import structlog

from kindmem import single_sign_on
from kindmem.postgres import paths, urls
from kindmem.state import load_or_create

env = environ.Env()
BASE_DIR = Path(__file__).resolve().parent.parent

KINDMEM_VERSION = "0.1.0"
KINDMEM_DATA_DIR = paths.data_dir()
KINDMEM_STATE_DIR = paths.state_dir()
_signing_keys = env.str("KINDMEM_SIGNING_KEYS", "")  # a file elsewhere than in the state folder
KINDMEM_STATE = load_or_create(KINDMEM_STATE_DIR, Path(_signing_keys) if _signing_keys else None)
# Outside the data directory, so that a copied-back data directory does not bring its anchors along.
KINDMEM_LEDGER_DIR = Path(env.str("KINDMEM_LEDGER_DIR", "") or KINDMEM_STATE_DIR / "ledgers")
KINDMEM_ANCHOR_DIR = Path(env.str("KINDMEM_ANCHOR_DIR", "") or KINDMEM_STATE_DIR / "anchors")
KINDMEM_SIGNER = env.str("KINDMEM_SIGNER", "memory.integrity.signing.state_signer")
KINDMEM_WITNESSES = env.str("KINDMEM_WITNESSES", "")  # "key address, key address"
KINDMEM_TIMESTAMPS = env.str(
    "KINDMEM_TIMESTAMPS", ""
)  # "name address roots.pem, …"; needs an extra
KINDMEM_TIMESTAMP_SECONDS = env.int("KINDMEM_TIMESTAMP_SECONDS", 3600)  # between two stamps

DEBUG = False
KINDMEM_DEVELOPMENT = env.bool("KINDMEM_DEVELOPMENT", False)  # allows plain-http loopback sources
KINDMEM_CITUS = env.bool("KINDMEM_CITUS", False)  # the tables are spread as citus_plan says
SECRET_KEY = env.str("KINDMEM_SECRET_KEY", KINDMEM_STATE.secret_key)
KINDMEM_BASE_URL = env.str("KINDMEM_BASE_URL", "http://localhost:8000").rstrip("/")
KINDMEM_INSTANCE = env.str("KINDMEM_INSTANCE", "kindmem")  # origin of checkpoints
ALLOWED_HOSTS = env.list("KINDMEM_ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])

INSTALLED_APPS = [
    "kindmem",
    "corrections",
    "memory",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.forms",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.mfa",
    "allauth.usersessions",
    "csp",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
]

MIDDLEWARE = [
    "kindmem.middleware.RequestIdMiddleware",
    "kindmem.middleware.TextMiddleware",
    "kindmem.middleware.PlainHttpMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "kindmem.session_limits.SessionLimitsMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "corrections.account_zone.AccountZoneMiddleware",
    "corrections.sign_in_limits.SignInWaitMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "allauth.usersessions.middleware.UserSessionsMiddleware",
    "kindmem.middleware.WrongMethodMiddleware",
]

ROOT_URLCONF = "kindmem.urls"
WSGI_APPLICATION = "kindmem.wsgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "corrections.look.look",
            ]
        },
    }
]

# ---- database -------------------------------------------------------------------------------------------------------------

# Statements are prepared on the server: planning is most of a short query's cost. 0 turns it off, for a pooler in transaction
# mode that keeps no prepared statements.
KINDMEM_PREPARE_THRESHOLD = env.int("KINDMEM_PREPARE_THRESHOLD", 2) or None


KINDMEM_USES_EMBEDDED_DATABASE = not env.str("DATABASE_URL", "")
_app_url = env.str("DATABASE_URL", "") or urls.app_url(KINDMEM_DATA_DIR)
_owner_url = env.str("DATABASE_OWNER_URL", "") or (
    urls.owner_url(KINDMEM_DATA_DIR) if KINDMEM_USES_EMBEDDED_DATABASE else _app_url
)
DATABASES = {"default": urls.django_database(_app_url), "owner": urls.django_database(_owner_url)}
for _options in DATABASES.values():
    _options.update(
        CONN_MAX_AGE=None,
        # No health check: it costs a statement a request. A lost connection is replaced before anything ran.
        CONN_HEALTH_CHECKS=False,
        DISABLE_SERVER_SIDE_CURSORS=True,
    )
    _options["OPTIONS"] = {
        **_options.get("OPTIONS", {}),
        "server_side_binding": True,
        "prepare_threshold": KINDMEM_PREPARE_THRESHOLD,
    }
DATABASES["owner"]["TEST"] = {"MIRROR": "default"}
DATABASE_ROUTERS: list[str] = []
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
SILENCED_SYSTEM_CHECKS: list[str] = []

# ---- security -------------------------------------------------------------------------------------------------------------

_is_https = KINDMEM_BASE_URL.startswith("https://")
SECURE_SSL_REDIRECT = _is_https and env.bool("KINDMEM_SSL_REDIRECT", True)
SECURE_HSTS_SECONDS = 31_536_000 if _is_https else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = _is_https
SECURE_HSTS_PRELOAD = _is_https
# Nothing goes to other sites. With "no-referrer" a browser says `Origin: null` of our own forms, and each would be refused.
SECURE_REFERRER_POLICY = "same-origin"
# With https a cookie is of this very host: neither a subdomain nor a page over plain http can put one in its place.
_cookie_prefix = "__Host-" if _is_https else ""
SESSION_COOKIE_NAME = f"{_cookie_prefix}sessionid"
SESSION_COOKIE_SECURE = _is_https
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 12 * 3600  # seconds; kindmem.session_limits ends one sooner
CSRF_COOKIE_NAME = f"{_cookie_prefix}csrftoken"
CSRF_COOKIE_SECURE = _is_https
CSRF_TRUSTED_ORIGINS = [KINDMEM_BASE_URL]
X_FRAME_OPTIONS = "DENY"
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.ScryptPasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "corrections.password_words.KnownWordsValidator"},
    {"NAME": "corrections.breached_passwords.BreachedPasswordValidator"},
]
KINDMEM_BREACHED_PASSWORDS = env.str("KINDMEM_BREACHED_PASSWORDS", "")  # a sorted file of SHA-1
DATA_UPLOAD_MAX_MEMORY_SIZE = None  # bytes; the API counts them itself, per route
FILE_UPLOAD_HANDLERS: list[str] = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]

# ---- sign-in and pages ----------------------------------------------------------------------------------------------------

AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "tenants"
ACCOUNT_ADAPTER = "corrections.accounts.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]  # nobody signs up; admins add members
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_EMAIL_NOTIFICATIONS = False
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_SESSION_REMEMBER = False
ACCOUNT_REAUTHENTICATION_TIMEOUT = 300  # seconds that a proof of identity is good for
ACCOUNT_REAUTHENTICATION_METHODS = ("password", "mfa")  # no letters are sent
# Of passwords: corrections.sign_in_limits. Here: codes of a second factor, by person, and forms that are sent, by address.
ACCOUNT_RATE_LIMITS = {"login_failed": "5/5m/key", "login": "200/m/ip"}
ALLAUTH_TRUSTED_PROXY_COUNT = env.int(
    "KINDMEM_PROXIES", 0
)  # proxies in front that say in X-Forwarded-For who asks; 0: none is believed
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if _is_https else "http"
MFA_ADAPTER = "corrections.accounts.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "kindmem"
MFA_TOTP_TOLERANCE = 1  # periods of 30 seconds by which a phone's clock may differ; each code opens once all the same
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not _is_https
SOCIALACCOUNT_ADAPTER = "corrections.accounts.SingleSignOnAdapter"
SOCIALACCOUNT_EMAIL_AUTHENTICATION = True  # the issuer says whose address it is
SOCIALACCOUNT_EMAIL_AUTHENTICATION_AUTO_CONNECT = True
SOCIALACCOUNT_STORE_TOKENS = False
_oidc_issuer = env.str("KINDMEM_OIDC_ISSUER", "")
SOCIALACCOUNT_PROVIDERS = single_sign_on.providers(
    _oidc_issuer,
    name=env.str("KINDMEM_OIDC_NAME", "single sign-on"),
    client_id=env.str("KINDMEM_OIDC_CLIENT_ID", ""),
    secret=env.str("KINDMEM_OIDC_CLIENT_SECRET", ""),
)
CACHES = {
    "default": {"BACKEND": "corrections.attempts_cache.AttemptsCache", "LOCATION": "account_cache"}
}
CSRF_FAILURE_VIEW = "corrections.views.refused.csrf_failed"
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"
LOCALE_PATHS = [BASE_DIR / "corrections" / "locale"]
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "object-src": ["'none'"],
        "form-action": ["'self'", *single_sign_on.origins(_oidc_issuer)],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
        "report-uri": ["/csp-reports"],
    },
}

# ---- the product ----------------------------------------------------------------------------------------------------------

KINDMEM_BODY_MAX_BYTES = 1 << 20
KINDMEM_BATCH_BODY_MAX_BYTES = 8 << 20
KINDMEM_CONTENT_MAX_BYTES = 64 << 10  # canonical bytes kept inline
KINDMEM_UNVERIFIED_DAYS = env.int(
    "KINDMEM_UNVERIFIED_DAYS", 30
)  # how long an agent's unverified fact is readable
KINDMEM_IDEMPOTENCY_HOURS = 24
KINDMEM_MAINTENANCE_HOURS = env.int(
    "KINDMEM_MAINTENANCE_HOURS", 24
)  # how often disk pages are cleared after erasures, at most
KINDMEM_BACKUP_DAYS = env.int(
    "KINDMEM_BACKUP_DAYS", 0
)  # how long backups are kept, as people are told; 0: not said
KINDMEM_EMBEDDINGS = env.str("KINDMEM_EMBEDDINGS", "minilm")  # minilm | openai | none
KINDMEM_EMBEDDINGS_URL = env.str("KINDMEM_EMBEDDINGS_URL", "")
KINDMEM_EMBEDDINGS_MODEL = env.str("KINDMEM_EMBEDDINGS_MODEL", "")
KINDMEM_EMBEDDINGS_KEY = env.str("KINDMEM_EMBEDDINGS_KEY", "")
KINDMEM_EMBEDDINGS_DIMENSIONS = env.int("KINDMEM_EMBEDDINGS_DIMENSIONS", 0)  # 0: the model's own

# ---- API ------------------------------------------------------------------------------------------------------------------

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "kindmem",
    "DESCRIPTION": "The memory that AI agents keep, under human control.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PUBLIC": True,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/v1/",
    "POSTPROCESSING_HOOKS": ["memory.api.openapi.finish"],
    "PREPROCESSING_HOOKS": ["memory.api.openapi.only_api"],
    "DISABLE_ERRORS_AND_WARNINGS": False,
}

# ---- language, time, static files -----------------------------------------------------------------------------------------

LANGUAGE_CODE = "en"
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

# ---- logs: JSON lines, never memory text ----------------------------------------------------------------------------------

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "json": {
            "()": structlog.stdlib.ProcessorFormatter,
            "processors": [
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
            "foreign_pre_chain": [
                structlog.contextvars.merge_contextvars,
                structlog.stdlib.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
            ],
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": env.str("KINDMEM_LOG_LEVEL", "WARNING").upper()},
    "loggers": {
        "kindmem": {"level": env.str("KINDMEM_LOG_LEVEL", "INFO").upper(), "propagate": True},
        "django.request": {
            "level": "CRITICAL",
            "propagate": True,
        },  # the edge logs each failure once itself
        "django.security": {"level": "ERROR", "propagate": True},
    },
}
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.filter_by_level,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
    ],
    logger_factory=structlog.stdlib.LoggerFactory(),
    cache_logger_on_first_use=True,
)
