"""Which messages were taken in before: by id for ever (7 days at least), without an id by their content."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lc_events.application.recorder import Known
from lc_events.domain.conditions import digest
from lc_events.messages.json import Json

__all__ = ["Identity", "Recent", "identify"]

KEPT = 64
_SCOPES = 1000


@dataclass(frozen=True, slots=True)
class Identity:
    """How a message is recognised: `scope` is its resource or worker, `key` its id or the digest of its content."""

    scope: str
    key: str
    has_id: bool
    dup: bool


def identify(scope: str, message_id: str | None, content: Json, *, dup: bool) -> Identity:
    """The identity of a message; `content` must hold no secret."""
    if message_id is not None:
        return Identity(f"id:{scope}", message_id, has_id=True, dup=dup)
    return Identity(f"content:{scope}", digest(content), has_id=False, dup=dup)


class Recent:
    """The last 64 contents of each resource and worker that sends without ids, read back from the store on demand."""

    def __init__(self, load: Callable[[str, int], list[Known]]) -> None:
        self._load = load
        self._scopes: OrderedDict[str, deque[tuple[str, str]]] = OrderedDict()

    def is_repeat(self, identity: Identity, context: str, undecided: Sequence[Known] = ()) -> bool:
        """Whether this content is a repeat: with the `dup` flag one of the last 64, else the very last in its context.

        Another `context` makes the same content news: for a worker, that the job's conditions changed since. The
        `undecided` came after the remembered ones and are not committed yet.
        """
        recent = [*self._of(identity.scope), *((known.key, known.context) for known in undecided)][-KEPT:]
        if identity.dup:
            return any(key == identity.key for key, _ in recent)
        return bool(recent) and recent[-1] == (identity.key, context)

    def remember(self, known: Known) -> None:
        """Note a content that was committed."""
        recent = self._of(known.scope)
        if (known.key, known.context) in recent:
            recent.remove((known.key, known.context))
        recent.append((known.key, known.context))

    def _of(self, scope: str) -> deque[tuple[str, str]]:
        if scope not in self._scopes:
            rows = self._load(scope, KEPT)
            self._scopes[scope] = deque(((row.key, row.context) for row in reversed(rows)), maxlen=KEPT)
            if len(self._scopes) > _SCOPES:
                self._scopes.popitem(last=False)
        self._scopes.move_to_end(scope)
        return self._scopes[scope]
