"""What the server holds for a page: keys, of values that one store in memory has once for all
pages.

A set of facts takes up to some megabytes, and an upload is a new one for each page that reads it.
The queue sums up what each visitor's pages hold, and forgets pages beyond the limits
(`ADAPOP_HELD_MB_EACH`); a value goes with the last page that has its key. A page that was forgotten
gets its set back from what its browser keeps: see `ui.saved`.
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

PAGE_MEGABYTES = 0.1  # that a page takes at most beside the values of the store
EMPTY: dict[str, object] = {}  # one for all components of all pages


class Key:
    """Stands in a page's state for a value of the store."""


class Store:
    """The values of all pages, each once; those whose keys nobody has any more are gone."""

    def __init__(self) -> None:
        self._values: WeakKeyDictionary[Key, tuple[object, int]] = WeakKeyDictionary()
        # by the identity of the value
        self._keys: WeakValueDictionary[int, Key] = WeakValueDictionary()

    def key_of(self, value: object) -> Key:
        """The key of a value, which is stored if it is not there."""
        key = self._keys.get(id(value))
        if key is None:
            key = self._keys[id(value)] = Key()
            self._values[key] = value, bytes_of(value)
        return key

    def value(self, key: Key) -> object:
        """The value of a key."""
        return self._values[key][0]

    def megabytes(self, keys: Iterable[Key] | None = None) -> float:
        """About how much the values of these keys take; by default of all."""
        return (
            sum(self._values[key][1] for key in list(self._values if keys is None else keys)) / 1e6
        )


STORE = Store()


class PageState(SessionState):
    """What Gradio remembers of a page: small values, and keys of all others. The configuration of
    all components, which Gradio keeps with their values for deep links, is left out: they are
    closed here, and it took 60 ms and half a megabyte for each page and each call."""

    def __init__(self, blocks: Blocks) -> None:
        super().__init__(SimpleNamespace(default_config=blocks.default_config, blocks=()))
        self.blocks_config.config_for_block = lambda *block: EMPTY

    def __getitem__(self, component: int) -> object:
        new = component not in self.state_data
        value = super().__getitem__(component)
        if component not in self.state_data:  # a component, and no state
            return value
        if new:
            self.state_data[component] = _members(_key_of, value)
        return _members(_value_of, self.state_data[component])

    def __setitem__(self, component: int, value: object) -> None:
        if isinstance(value, Component) and value is not self.blocks_config.blocks.get(component):
            value._value_description = ""  # names all choices, for the documentation of endpoints
            del value._constructor_args[1:]  # those of its base classes, which nobody reads
        super().__setitem__(component, _members(_key_of, value))

    @property
    def keys(self) -> set[Key]:
        """The keys in it."""
        values = (
            value if isinstance(value, tuple) else (value,) for value in self.state_data.values()
        )
        return {one for members in values for one in members if isinstance(one, Key)}


def held_megabytes(pages: Iterable[PageState]) -> float:
    """About how much pages take with the values whose keys they have, each counted once."""
    keys = [page.keys for page in pages]
    return PAGE_MEGABYTES * len(keys) + STORE.megabytes(set().union(*keys))


def bytes_of(value: object) -> int:
    """About how many bytes a value takes: of facts their texts, of others so much for each fact."""
    if isinstance(value, FactSet):
        return value.memory
    if isinstance(value, Mapping):
        return FACT_BYTES * len(value)
    return sum(map(bytes_of, vars(value).values())) if is_dataclass(value) else 0


def _members(change: Callable[[object], object], value: object) -> object:
    """The value changed, or of a tuple its members."""
    return tuple(map(change, value)) if type(value) is tuple else change(value)


def _key_of(value: object) -> object:
    return STORE.key_of(value) if is_dataclass(value) or isinstance(value, Mapping) else value


def _value_of(value: object) -> object:
    return STORE.value(value) if isinstance(value, Key) else value


def memory() -> int:
    """Bytes of memory that this process holds."""
    return psutil.Process().memory_info().rss


def return_memory() -> None:
    """Gives the system back what requests have left unused. glibc keeps it otherwise; other systems
    do as they do."""
    if sys.platform == "linux":
        getattr(ctypes.CDLL(None), "malloc_trim", lambda _: None)(0)
