"""An HTTP client for one host: JSON in and out, one request at a time, retries when it is busy.

A `Web` connects only to its host and follows no redirect, so user text can never choose where we
connect. A host gets one request at a time from this process, because some ban an address that sends
more. Retries are our own and not urllib3's `Retry`: some hosts report "busy" inside a reply with
status 200, a wait must end when the user stops the run, and the user is told what is waited for.
Keys and queries appear in no message and no log."""

import json
import logging
import os
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from threading import Lock
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import HTTPError, NewConnectionError

from adapop.errors import ConfigError, NetworkError
from adapop.paths import VERSION
from adapop.progress import Progress

# hosts ask for a name and a contact, and refuse a library's default user agent
CONTACT = os.environ.get("ADAPOP_CONTACT", "no contact given")
USER_AGENT = f"AdaPopExplorer/{VERSION} ({CONTACT})".encode()  # in any script
TRIES, FIRST_WAIT = 6, 1.0  # seconds before the second try, doubled for each further one
CONNECT_SECONDS, READ_SECONDS, REPLY_SECONDS = 5.0, 60.0, 120.0
TRIES_UNREACHED = 2  # without a connection, minutes of waiting would not help
LONGEST_WAIT = 120.0
WORDS_SHOWN = 200  # characters of a host's own words in a message
SAYS = ("error", "message", "detail", "msg", "errors")  # where hosts say what is wrong
MAX_REPLY = 64 * 1024 * 1024
CHUNK = 64 * 1024
LATER = frozenset({408, 429, 500, 502, 503, 504})
THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
Busy = Callable[[object], bool]  # whether a reply with status 200 means "try again later"
TURN_SECONDS = 0.1  # how often a wait for another request checks whether the user has stopped

_turns: dict[str, Lock] = {}  # scheme and host -> lock

# at DEBUG, urllib3 logs each URL with its query, which contains the user's words
logging.getLogger("urllib3").setLevel(logging.INFO)


class NotThere(NetworkError):
    """The host has nothing at this address (404)."""


class Refused(NetworkError):
    """The host does not take the body, or a field of it (400, 422). words: its whole reply."""

    def __init__(self, message: str, fix: str, words: str) -> None:
        super().__init__(message, fix)
        self.words = words


class _Later(Exception):
    """The request should be repeated. seconds: the wait that the host asked for, or None."""

    def __init__(self, reason: str, seconds: float | None = None) -> None:
        self.reason, self.seconds = reason, seconds


class _Unreached(_Later):
    """The host could not be reached."""


class Web:
    """A client for one host. base: the URL that paths are appended to. name: the host's name in
    messages. key: sent as a bearer token and nowhere else. quotes: whether a refusal is told in the
    host's own words, which may repeat what it was sent; never the key. Raises ConfigError: the
    environment names a certificate file that does not exist."""

    def __init__(
        self,
        base: str,
        name: str,
        progress: Progress,
        key: str = "",
        read_seconds: float = READ_SECONDS,
        quotes: bool = False,
    ) -> None:
        self.name = name
        self._key, self._quotes = key, quotes
        self._base = base.rstrip("/")
        self.host = urlsplit(self._base).netloc
        self._progress = progress
        self._read_seconds = read_seconds
        self._session = requests.Session()
        # a .netrc would send credentials; proxies and certificates are restored below
        self._session.trust_env = False
        self._session.proxies = _proxies(self._base)
        self._session.verify = _certificates()
        self._turn = _turns.setdefault("://".join(urlsplit(self._base)[:2]).lower(), Lock())
        self._session.headers.update({"User-Agent": USER_AGENT, "Accept": "application/json"})
        if key:
            self._session.headers["Authorization"] = f"Bearer {key}"

    def get(self, path: str, busy: Busy = lambda reply: False, **params: object) -> object:
        """The JSON value at a path under the base. busy: whether a reply means "try later"."""
        return self._request("GET", path, busy, params=params)

    def post(self, path: str, body: object, busy: Busy = lambda reply: False) -> object:
        """The JSON reply to a JSON body. busy: as for `get`."""
        return self._request("POST", path, busy, json=body)

    def _request(self, method: str, path: str, busy: Busy, **content: object) -> object:
        """The reply to a request, which is repeated up to `TRIES` times. Raises NetworkError: the
        host refuses, redirects, or does not give a JSON value after all tries. `NotThere`: it has
        nothing at this address. Stopped: somebody asked to stop."""
        for attempt in range(1, TRIES + 1):
            try:
                return self._once(method, path, busy, content)
            except _Later as later:
                if isinstance(later, _Unreached) and attempt >= TRIES_UNREACHED:
                    host = urlsplit(self._base).netloc.rpartition("@")[2]
                    hint = f"{connection_hint(self._base)} What was found is kept."
                    raise NetworkError(f"{self.name} ({host}) {later.reason}.", hint) from None
                wait = FIRST_WAIT * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
                wait = wait if later.seconds is None else max(wait, later.seconds)
                if wait > LONGEST_WAIT or attempt == TRIES:
                    again = f"in {wait:.0f} s" if wait > LONGEST_WAIT else "later"
                    message = f"{self.name} {later.reason} (tries: {attempt})."
                    fix = f"Try again {again}; what was found is kept."
                    raise NetworkError(message, fix) from None
                self._progress.say(f"{self.name} {later.reason}; waiting {wait:.0f} s")
                self._progress.wait(wait)
        raise AssertionError("the loop returns or raises")

    def _once(self, method: str, path: str, busy: Busy, content: dict) -> object:
        timeout = (CONNECT_SECONDS, self._read_seconds)
        content = {"timeout": timeout, "allow_redirects": False, "stream": True, **content}
        try:
            with (
                self._alone(),
                self._session.request(method, self._base + path, **content) as reply,
            ):
                self._check_status(reply)
                value = _json(_body(reply, self.name, max(REPLY_SECONDS, self._read_seconds)))
                if busy(value):
                    raise _Later("is busy", _retry_after(reply))
                return value
        except requests.ConnectTimeout:
            raise _Unreached("cannot be reached: no answer from its address") from None
        except requests.Timeout:
            raise _Later("does not answer in time") from None
        # its text contains the URL with the user's words
        except (requests.RequestException, HTTPError) as error:
            if isinstance(error, requests.exceptions.ProxyError):
                raise _Unreached("cannot be reached through the proxy") from None
            cause = next(iter(error.args), None)
            if isinstance(getattr(cause, "reason", None), NewConnectionError):
                raise _Unreached("cannot be reached") from None
            raise _Later("cannot be reached, or disconnected") from None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """A context in which this process sends the host no other request; waits for it. Raises
        Stopped."""
        while not self._turn.acquire(timeout=TURN_SECONDS):
            self._progress.wait(0)
        try:
            yield
        finally:
            self._turn.release()

    def _check_status(self, reply: requests.Response) -> None:
        status = reply.status_code
        if status in LATER:
            fault = f"has a fault of its own ({status})"
            reason = "says there are too many requests" if status == 429 else fault
            raise _Later(reason, _retry_after(reply))
        if 300 <= status < 400:
            message = f"{self.name} sends us to another address ({status})."
            raise NetworkError(message, "It is not followed.")
        if status in (401, 403):
            fix = "It may think we ask too much; try again later."
            if "Authorization" in self._session.headers:
                fix = "Check the key in the environment."
            raise NetworkError(f"{self.name} refuses access ({status}).", fix)
        if status >= 400:
            content = self._content_of(reply) if self._quotes else ""
            quote = f": {self.quoted(content)}" if content else ""
            refusal = f"{self.name} rejects the request ({status}){quote}.", "Check its settings."
            if status in (400, 422):
                raise Refused(*refusal, content)
            raise (NotThere if status == 404 else NetworkError)(*refusal)

    def _content_of(self, reply: requests.Response) -> str:
        """The beginning of a refusal; "" if it breaks off."""
        try:
            return reply.raw.read(CHUNK, decode_content=True).decode("utf-8", "replace").strip()
        except (HTTPError, OSError):
            return ""

    def quoted(self, content: object) -> str:
        """A host's own words, of a parsed error or of a page, as quoted text on one line: without
        marks of HTML and without the key, at most `WORDS_SHOWN` characters."""
        if isinstance(content, str):
            try:
                content = json.loads(content)
            except (ValueError, RecursionError):
                content = re.sub("<[^>]{0,1000}>", " ", content)
        while isinstance(content, (dict, list)) and content:
            if isinstance(content, dict):
                content = [content[name] for name in SAYS if content.get(name)] or [
                    *content.values()
                ]
            content = content[0]
        text = str(content).replace(self._key, "…") if self._key else str(content)
        text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        text = re.sub("[<>]", "", text)  # no page may take it for HTML
        return f"“{text if len(text) <= WORDS_SHOWN else text[: WORDS_SHOWN - 1] + '…'}”"


def connection_hint(base: str) -> str:
    """What to check if a URL is not reached: the connection, the proxy (named without password)."""
    proxies = _proxies(base)
    proxy = proxies.get(urlsplit(base).scheme) or proxies.get("all")
    if proxy:
        named = proxy.rpartition("@")[2]
        return f"Check the connection, and the proxy of the environment: {named}."
    return "Check the connection. If this network has a proxy, set HTTPS_PROXY; none is set."


def _proxies(base: str) -> dict[str, str]:
    """The environment's proxies for a URL; none for this machine, whose keys must not leave it."""
    at_home = urlsplit(base).hostname in THIS_MACHINE
    return {} if at_home else requests.utils.get_environ_proxies(base)


def _certificates() -> str | bool:
    """The environment's certificate file, as `requests` would use it; True for the default. Raises
    ConfigError: it does not exist."""
    for variable in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        if path := os.environ.get(variable):
            if not os.path.exists(path):
                message = f"{variable} names {path}, which does not exist."
                raise ConfigError(message, "Correct it, or unset it.")
            return path
    return True


def _body(reply: requests.Response, name: str, seconds: float) -> bytes:
    """The body, limited in size and time, as a read may take long. Raises NetworkError."""
    content, deadline = bytearray(), time.monotonic() + seconds
    # iter_content would wait until a chunk is full, without checking the time
    while chunk := reply.raw.read1(CHUNK, decode_content=True):
        content += chunk
        if len(content) > MAX_REPLY:
            message = f"{name} sends more than {MAX_REPLY / 1e6:.0f} MB."
            raise NetworkError(message, "Ask for less at a time.")
        if time.monotonic() > deadline:
            raise _Later("answers too slowly")
    return bytes(content)


def _json(content: bytes) -> object:
    try:
        return json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        page = content.lstrip()[:1] == b"<"
        fault = "answers with a web page instead of data" if page else "sends broken data"
        raise _Later(fault) from None


def _retry_after(reply: requests.Response) -> float | None:
    """Seconds to wait from a Retry-After header, a number or a date; None if unreadable."""
    text = reply.headers.get("Retry-After", "").strip()
    if text.isdecimal():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError):
        return None
