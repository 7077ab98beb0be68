"""The account of a model's parameters: how many there are in each group of tensors."""

from __future__ import annotations

from collections.abc import Iterable

from rackrate.values import Value


class Account(Value, frozen=True, kw_only=True):
    """Numbers of parameters by tensor group.

    ``mixers``: linear attention, state spaces and convolutions along the
    sequence. ``experts``: routed and shared experts with their routers.
    ``positions``: learned position embeddings. ``vision``: towers for images
    and sound with the projection to the text model. ``idle``: how many of all
    these one token leaves out (the experts that it is not sent to).
    """

    embedding: int = 0
    head: int = 0
    positions: int = 0
    norms: int = 0
    attention: int = 0
    mixers: int = 0
    mlp: int = 0
    experts: int = 0
    vision: int = 0
    other: int = 0
    idle: int = 0

    @property
    def total(self) -> int:
        """All parameters."""
        return sum(number for _, number in self.groups)

    @property
    def active(self) -> int:
        """The parameters that one token meets, embeddings included."""
        return self.total - self.idle

    @property
    def groups(self) -> tuple[tuple[str, int], ...]:
        """The groups that hold any parameters, by name."""
        return tuple((name, getattr(self, name)) for name in GROUPS if getattr(self, name))

    def __add__(self, more: Account) -> Account:
        return Account(**{name: getattr(self, name) + getattr(more, name) for name in FIELDS})

    def times(self, count: int) -> Account:
        """The account of ``count`` such parts."""
        return Account(**{name: getattr(self, name) * count for name in FIELDS})


FIELDS = Account.__struct_fields__
GROUPS = FIELDS[:-1]
"""All groups of tensors; ``idle`` is a share of them, not one of them."""


def add(parts: Iterable[Account]) -> Account:
    """The account of all parts together; equal parts are counted, then multiplied."""
    counts: dict[Account, int] = {}
    for part in parts:
        counts[part] = counts.get(part, 0) + 1
    whole = Account()
    for part, count in counts.items():
        whole += part.times(count)
    return whole
