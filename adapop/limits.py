"""The limits of a public app and of a local one, which has almost none. Environment variables can
change them.

ADAPOP_PUBLIC (0 or 1) says whether strangers use this app; by default it is 1 on a Hugging Face
Space (SPACE_ID). Each other limit has a value for a local app, one for a public app, and the name
of the variable that overrides both.
"""

import os
from dataclasses import dataclass

from adapop.errors import ConfigError, LimitError


@dataclass(frozen=True)
class Limit:
    """A limit. name: its environment variable. what: its quantity, in words. local, public: the
    limit if the variable is not set; None for no limit. whole: whether it is a whole number."""

    name: str
    what: str
    local: float | None
    public: float | None
    whole: bool = True

    def value(self) -> float | None:
        """The limit here, None for none. Raises ConfigError: the variable is no number above 0."""
        text = os.environ.get(self.name, "")
        if not text:
            return self.public if is_public() else self.local
        try:
            value = float(text) if not self.whole else int(text) if text.isdecimal() else 0
        except ValueError:
            value = 0
        if not 0 < value < float("inf"):
            fix = f"Set it to a {'whole ' * self.whole}number above 0, or unset it."
            raise ConfigError(f"{self.name} is {text!r}.", fix)
        return value

    def check(self, value: float) -> None:
        """Raises LimitError, which names the limit, if the value is above it."""
        most = self.value()
        if most is not None and value > most:
            above = f"That is {value:,.12g} {self.what}; the limit is {most:,} ({self.name})."
            raise LimitError(above, elsewhere())


FACTS = Limit("ADAPOP_MAX_FACTS", "rows read from one file or list", 20_000, 200)
UPLOAD = Limit("ADAPOP_MAX_UPLOAD_MB", "megabytes of one upload", 64, 2)
REQUEST = Limit(
    "ADAPOP_MAX_REQUEST_MB", "megabytes of one request that is no upload", 64, 0.5, False
)
PROMPT = Limit("ADAPOP_MAX_PROMPT", "characters of a prompt, or of its right answer", 400, 400)
EPOCHS = Limit("ADAPOP_MAX_EPOCHS", "epochs of a run", 1_000, 10)
QUEUE = Limit("ADAPOP_MAX_QUEUE", "runs that wait or are in progress", 1_000, 32)
WAITING = Limit("ADAPOP_MAX_WAITING", "questions and probings that wait", 1_000, 64)
# what one visitor may take, by `service.visitor_limits`
RUNS_EACH = Limit(
    "ADAPOP_RUNS_EACH", "runs and questions of one visitor that wait or are in progress", None, 8
)
REQUESTS = Limit("ADAPOP_REQUESTS_A_MINUTE", "requests of a visitor in a minute", None, 8_000)
WRITTEN = Limit(
    "ADAPOP_WRITTEN_MB_AN_HOUR", "megabytes that a visitor sends or writes in an hour", None, 500
)
PROCESSOR = Limit(
    "ADAPOP_PROCESSOR_SECONDS_AN_HOUR",
    "seconds of the processor that a visitor takes in an hour",
    None,
    600,
)
ACCELERATOR = Limit(
    "ADAPOP_SECONDS_AN_HOUR",
    "seconds of the accelerator that a visitor takes in an hour (a run that reaches the limit "
    "stops, and keeps its last epoch)",
    None,
    1_200,
)
HOURS = Limit(
    "ADAPOP_KEEP_HOURS",
    "hours that runs and saved sets are kept after their last change",
    None,
    2,
    False,
)
GIGABYTES = Limit(
    "ADAPOP_KEEP_GB",
    "gigabytes of runs and sets; the oldest are deleted",
    None,
    10,
    False,
)
LIMITS = tuple(value for value in tuple(globals().values()) if isinstance(value, Limit))


def check_limits() -> None:
    """Reads every limit once, before an app is served. Raises ConfigError: one is no number above
    0, or ADAPOP_PUBLIC not 0 or 1."""
    is_public()
    for limit in LIMITS:
        limit.value()


def check_port() -> None:
    """Reads the port of the page, before Gradio does. Raises ConfigError: it is no port."""
    text = os.environ.get("GRADIO_SERVER_PORT", "7860")
    if not (text.isdecimal() and 0 < int(text) < 65_536):
        fix = "Set it to a number from 1 to 65535, or unset it."
        raise ConfigError(f"GRADIO_SERVER_PORT is {text!r}.", fix)


def is_public() -> bool:
    """Whether strangers use this app. Raises ConfigError: ADAPOP_PUBLIC is neither 0 nor 1."""
    text = os.environ.get("ADAPOP_PUBLIC", "") or ("1" if os.environ.get("SPACE_ID") else "0")
    if text not in ("0", "1"):
        raise ConfigError(f"ADAPOP_PUBLIC is {text!r}.", "Set it to 0 or 1, or unset it.")
    return text == "1"


def elsewhere() -> str:
    """Advice to a user who has reached a limit."""
    other = "run the app on a machine of your own" if is_public() else "raise this limit"
    return f"Ask for less, or {other}."


def max_facts() -> int:
    """The most rows read from one file."""
    return int(FACTS.value())


def keep_seconds() -> float | None:
    """Seconds that a run or a saved set is kept after its last change, None for ever."""
    return (hours := HOURS.value()) and hours * 3600


def keep_bytes() -> float | None:
    """How many bytes runs and saved sets may take together, None for no limit."""
    return (gigabytes := GIGABYTES.value()) and gigabytes * 1e9
