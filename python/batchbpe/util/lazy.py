"""`lazy`: a property that is computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):
    """Like `functools.cached_property`, but without a lock.

    Before Python 3.12, `cached_property` holds a lock while it computes a value. A process forked at that moment
    inherits the lock and waits for it forever. Here, two threads may compute a value at the same time; one is kept.

    >>> class Squares:
    ...     @lazy
    ...     def first(self):
    ...         return [n * n for n in range(4)]
    >>> squares = Squares()
    >>> squares.first is squares.first
    True
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        """Wrap a method."""
        self._compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Remember the name, under which the value is stored in the instance."""
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> lazy[T] | T:
        """Compute the value and store it; later look-ups find it in the instance."""
        if instance is None:
            return self
        return instance.__dict__.setdefault(self._name, self._compute(instance))  # type: ignore[no-any-return]
