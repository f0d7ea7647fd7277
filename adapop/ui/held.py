"""Page state on the server: pages hold keys, and one store in memory holds each value once for all
pages.

A set of facts takes up to some megabytes, and every upload makes a new one. `ui.queue` limits the
megabytes of each visitor's pages (`ADAPOP_HELD_MB_EACH`) and drops the least recently used; a value
is freed with the last page that has its key. A forgotten page gets its set back from what its
browser keeps: see `ui.saved`.
"""

import ctypes
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from types import SimpleNamespace
from weakref import WeakKeyDictionary, WeakValueDictionary

import psutil
from gradio import Blocks, Component
from gradio.state_holder import SessionState

from adapop.facts.fact import FACT_BYTES, FactSet

PAGE_MEGABYTES = 0.1  # memory of a page without the store's values, at most
EMPTY: dict[str, object] = {}  # one for all components of all pages


class Key:
    """Replaces a value of the store in a page's state."""


class Store:
    """The values of all pages, each stored once; a value is freed with the last use of its key."""

    def __init__(self) -> None:
        self._values: WeakKeyDictionary[Key, tuple[object, int]] = WeakKeyDictionary()
        # id(value) -> the value's key
        self._keys: WeakValueDictionary[int, Key] = WeakValueDictionary()

    def key_of(self, value: object) -> Key:
        """The key of a value; stores the value if it is new."""
        key = self._keys.get(id(value))
        if key is None:
            key = self._keys[id(value)] = Key()
            self._values[key] = value, bytes_of(value)
        return key

    def value(self, key: Key) -> object:
        """The value of a key."""
        return self._values[key][0]

    def megabytes(self, keys: Iterable[Key] | None = None) -> float:
        """Approximate size of the values of these keys, by default of all."""
        counted = list(self._values if keys is None else keys)
        return sum(self._values[key][1] for key in counted) / 1e6


STORE = Store()


class PageState(SessionState):
    """Gradio's state of a page: small values, and keys instead of all others. Gradio's copy of all
    components' configuration, needed for deep links only, is left out: deep links are closed here,
    and the copy took 60 ms and half a megabyte per page and call."""

    def __init__(self, blocks: Blocks) -> None:
        super().__init__(SimpleNamespace(default_config=blocks.default_config, blocks=()))
        self.blocks_config.config_for_block = lambda *block: EMPTY

    def __getitem__(self, component: int) -> object:
        new = component not in self.state_data
        value = super().__getitem__(component)
        if component not in self.state_data:  # a component that is no State
            return value
        if new:
            self.state_data[component] = _members(_key_of, value)
        return _members(_value_of, self.state_data[component])

    def __setitem__(self, component: int, value: object) -> None:
        if isinstance(value, Component) and value is not self.blocks_config.blocks.get(component):
            value._value_description = ""  # names all choices, for the documentation of endpoints
            del value._constructor_args[1:]  # arguments of base classes, never read
        super().__setitem__(component, _members(_key_of, value))

    @property
    def keys(self) -> set[Key]:
        """The keys in this state."""
        every = self.state_data.values()
        values = (value if isinstance(value, tuple) else (value,) for value in every)
        return {one for members in values for one in members if isinstance(one, Key)}


def held_megabytes(pages: Iterable[PageState]) -> float:
    """Approximate size of these pages and of the values whose keys they hold, each counted once."""
    keys = [page.keys for page in pages]
    return PAGE_MEGABYTES * len(keys) + STORE.megabytes(set().union(*keys))


def bytes_of(value: object) -> int:
    """Approximate size of a value: of a set its texts, of a mapping a fixed amount per entry, of
    another dataclass the sum of its fields; else 0."""
    if isinstance(value, FactSet):
        return value.memory
    if isinstance(value, Mapping):
        return FACT_BYTES * len(value)
    return sum(map(bytes_of, vars(value).values())) if is_dataclass(value) else 0


def _members(change: Callable[[object], object], value: object) -> object:
    """Applies a function to a value, or to each member of a tuple."""
    return tuple(map(change, value)) if type(value) is tuple else change(value)


def _key_of(value: object) -> object:
    return STORE.key_of(value) if is_dataclass(value) or isinstance(value, Mapping) else value


def _value_of(value: object) -> object:
    return STORE.value(value) if isinstance(value, Key) else value


def memory() -> int:
    """Resident memory of this process, in bytes."""
    return psutil.Process().memory_info().rss


def return_memory() -> None:
    """Returns unused memory to the system, which glibc otherwise keeps. Works on Linux only."""
    if sys.platform == "linux":
        getattr(ctypes.CDLL(None), "malloc_trim", lambda _: None)(0)
