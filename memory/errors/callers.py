"""Refusals about who calls: keys, sessions, members, and what they may do."""

from dataclasses import dataclass

from memory.errors.base import DomainError, NotFound


class AuthMissing(DomainError):
    code = "auth-missing"
    message = "Send a valid API key as 'Authorization: Bearer <api key>', or sign in."


class AuthExpired(DomainError):
    code = "auth-expired"
    message = "This API key has expired. Ask an admin for a new one."


class AuthRevoked(DomainError):
    code = "auth-revoked"
    message = "This API key was revoked. Ask an admin for a new one."


class CsrfFailed(DomainError):
    code = "permission-denied"
    message = "The CSRF token is missing or old. Reload the page and send its token in X-CSRFToken."


@dataclass(eq=False)
class ProofWanted(DomainError):
    """A browser session signed in, or proved who it is, too long ago for what it asks."""

    code = "proof-wanted"
    message = (
        "This matters, and it is a while since you signed in. Prove that it is you at details.proveAt, in this browser, "
        "then send it again."
    )
    prove_at: str
    within_seconds: int


@dataclass(eq=False)
class PermissionDenied(DomainError):
    code = "permission-denied"
    message = "The caller may not do this."
    needs: str

    def __str__(self) -> str:
        return f"The caller may not do this: it needs {self.needs}."


@dataclass(eq=False)
class ScopeMismatch(DomainError):
    code = "scope-mismatch"
    message = "scope.tenantId is not the caller's tenant."
    field: str = "scope.tenantId"


class KeyNotFound(NotFound):
    code = "key-not-found"
    message = "There is no API key with this prefix: the ten characters after kmk_."


class MemberNotFound(NotFound):
    code = "member-not-found"
    message = "There is no such member."


class TenantClosed(DomainError):
    code = "auth-revoked"
    message = "This tenant is closed. Its owner closed it, and an operator can open it again."


@dataclass(eq=False)
class MemberKeepsAnOwner(DomainError):
    code = "last-owner"
    message = "A tenant keeps at least one owner. Appoint another first."


@dataclass(eq=False)
class MemberExists(DomainError):
    code = "member-exists"
    message = "This person is a member already, with another role or subject."
    role: str
