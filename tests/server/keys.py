"""Keys of a server in this process, and principals for them."""

from __future__ import annotations

from lot_grpc.domain.access import Credentials, Grant, Principal, Role, own_namespace
from lot_grpc.domain.errors import CredentialsInvalidError, CredentialsRequiredError

ROLES = {role.name.lower(): role for role in Role}


def principal(name: str, *grants: str, namespace: str | None = None) -> Principal:
    """One with grants such as ``writer team-a:*``."""
    parsed = []
    for grant in grants:
        role, pattern = grant.split()
        parsed.append(Grant(ROLES[role], pattern))
    own = own_namespace(parsed) if namespace is None else namespace
    return Principal(f"key:{name}", name, tuple(parsed), own)


def metadata_of(key: str) -> tuple[tuple[str, str], ...]:
    """What a caller with a key sends."""
    return (("authorization", f"Bearer {key}"),)


class Keys:
    """An ``Authenticator`` whose keys are the names of principals.

    Attributes:
        refused: Why a key is refused, by key.
    """

    def __init__(self, *principals: Principal) -> None:
        self._principals = {one.name: one for one in principals}
        self.refused: dict[str, str] = {}
        self.calls = 0

    def change(self, changed: Principal) -> None:
        """Give a principal other grants."""
        self._principals[changed.name] = changed

    async def authenticate(self, credentials: Credentials) -> Principal:
        """The principal of a key."""
        self.calls += 1
        if not credentials.authorizations:
            raise CredentialsRequiredError
        key = credentials.authorizations[0].removeprefix("Bearer ")
        if key in self.refused:
            raise CredentialsInvalidError(self.refused[key])
        if key not in self._principals:
            raise CredentialsInvalidError("unknown")
        return self._principals[key]
