"""Popularity counted in a text of the user's: lines that mention a fact's subject, object and both.

A line is a document. It mentions a name if it contains the name's words and signs in order, as
whole words and in the same case, as in infini-gram. A name inside a longer known name does not
count: "Last Tango in Paris" does not mention Paris. The known names are those of all facts passed
in, so pass the whole set. In scripts without spaces, and in Korean, a name is found wherever its
characters stand in a row; in Arabic and Hebrew also after a prefix."""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from unicodedata import normalize

from adapop.errors import ConfigError, DataError
from adapop.facts.fact import Fact
from adapop.facts.text import pieces, without_prefix
from adapop.popularity.base import Score, check_not_all_zero
from adapop.progress import Progress

KINDS = (".txt", ".md", ".csv", ".tsv", ".jsonl", ".json")
# which counts are summed; the paper counts subject and object, and we assume that it adds them
COMBINE = ("subject+object", "subject", "object", "both")
MENTIONED = {
    "subject": "the subject",
    "object": "the object",
    "both": "subject and object together",
}
CHUNK = 1 << 20
LINE_ENDS = frozenset("\r\n")
ESCAPES = re.compile(r"(?:\\(?:u[0-9a-fA-F]{4}|.))+")
LONGEST_ESCAPE = 6

Name = tuple[str, ...]


def parts_of(combine: str) -> tuple[str, ...]:
    """The counts that make the score: "subject", "object", "both". Raises ConfigError."""
    if combine not in COMBINE:
        raise ConfigError(f"combine is {combine!r}.", f"Use one of {', '.join(COMBINE)}.")
    return tuple(combine.split("+"))


def labels_of(fact: Fact) -> tuple[str, str]:
    """The names to count, each on one line: the subject (or ""), and the object or the answer."""
    return " ".join(fact.subject.split()), " ".join((fact.object or fact.answer).split())


class CorpusCounts:
    """Lines that mention subject and object, in a text file or all files (`KINDS`) under a folder.

    The text is read once, so all scores come at the end. Escapes in JSON files are decoded;
    everything else is text, field names included. others: facts whose names are known as well."""

    pace = 0.0  # no request: it reads files

    def __init__(
        self,
        progress: Progress,
        path: Path,
        combine: str = "subject+object",
        others: Sequence[Fact] = (),
    ) -> None:
        self._progress = progress
        self._path = path
        self._parts = parts_of(combine)
        self._others = [_names(fact) for fact in others]
        name = path.name or str(path)
        self.source = f"lines of {name} with {' + '.join(MENTIONED[part] for part in self._parts)}"

    def requests(self, facts: Sequence[Fact]) -> int:
        """0: the text is on this machine."""
        return 0

    def scores(self, facts: Sequence[Fact]) -> Iterator[Score]:
        """One score per fact, after the whole text has been read. Raises DataError: the path is
        unreadable, holds no text or nothing to count, or a file is not UTF-8. Stopped."""
        names = [_names(fact) for fact in facts]
        tally = self._count([*names, *self._others])
        today, scores = date.today().isoformat(), []
        for fact, (subject, object_) in zip(facts, names):
            raw = {
                "subject": tally.lines[subject] if subject else None,
                "object": tally.lines[object_] if object_ else None,
                "both": tally.together[subject, object_] if subject and object_ else None,
            }
            counts = [number for part in self._parts if (number := raw[part]) is not None]
            if len(counts) < len(self._parts):
                reason = f"The fact has no {'object' if subject else 'subject'} to look for."
                scores.append(Score(fact.id, None, self.source, today, raw, reason))
            else:
                scores.append(Score(fact.id, float(sum(counts)), self.source, today, raw))
        text = "a text about them, in their language and with names as the facts write them"
        fix = f"Give {text}, or count other names (combine): {', '.join(COMBINE)}."
        check_not_all_zero(scores, self._path.name, fix)
        yield from scores

    def _count(self, names: Sequence[tuple[Name, Name]]) -> Tally:
        tally, done, empty = Tally(names), 0, True
        files = _files(self._path)
        total = sum(file.stat().st_size for file in files)
        for file in files:
            waiting: list[str] = []
            for tokens, size in _tokens(file, tally.longest_word):
                waiting = tally.take(waiting + tokens, keep=tally.longest)
                done += size
                empty = empty and LINE_ENDS.issuperset(tokens)
                self._progress.say(f"Corpus: {done / 1e6:.0f} of {total / 1e6:.0f} MB")
            tally.take(waiting, keep=0)
        if empty:
            message = f"{self._path} holds no text."
            raise DataError(message, "Give a file or folder with text in it.")
        return tally


class Tally:
    """Counts of lines. lines: name -> lines that mention it. together: pair of names -> lines that
    mention both. longest: tokens of the longest name. longest_word: characters of the longest token
    in a name."""

    def __init__(self, pairs: Iterable[tuple[Name, Name]]) -> None:
        self.lines: Counter[Name] = Counter()
        self.together: Counter[tuple[Name, Name]] = Counter()
        self.longest = self.longest_word = 0
        self._in_line: set[Name] = set()
        self._objects: dict[Name, set[Name]] = defaultdict(set)
        self._trie: dict = {}  # token -> next token -> ...; None -> the name that ends there
        for subject, object_ in pairs:
            self._objects[subject].add(object_)
            for name in filter(None, (subject, object_)):
                node = self._trie
                for token in name:
                    node = node.setdefault(token, {})
                node[None] = name
                self.longest = max(self.longest, len(name))
                self.longest_word = max(self.longest_word, *map(len, name))

    def take(self, tokens: list[str], keep: int) -> list[str]:
        """Counts names that begin before the last `keep` tokens. Returns the tokens left over."""
        trie, i, end = self._trie, 0, len(tokens) - keep
        while i < end:
            if not tokens[i].isascii() and tokens[i] not in trie:
                tokens[i] = next(filter(trie.__contains__, without_prefix(tokens[i])), tokens[i])
            if tokens[i] in trie and (name := self._name_at(tokens, i)):
                self._in_line.add(name)
                i += len(name)
                continue
            if tokens[i] in LINE_ENDS:
                self._end_line()
            i += 1
        return tokens[i:]

    def _name_at(self, tokens: list[str], start: int) -> Name | None:
        """The longest name that begins at `start`; None if there is none."""
        node, longest = self._trie, None
        for i in range(start, len(tokens)):
            if tokens[i] not in node:
                break
            node = node[tokens[i]]
            longest = node.get(None, longest)
        return longest

    def _end_line(self) -> None:
        self.lines.update(self._in_line)
        for name in self._in_line:
            if name in self._objects:
                self.together.update((name, other) for other in self._objects[name] & self._in_line)
        self._in_line.clear()


def _names(fact: Fact) -> tuple[Name, Name]:
    subject, object_ = labels_of(fact)
    return _name(subject), _name(object_)


def _name(label: str) -> Name:
    return tuple(pieces(normalize("NFC", label)))


def _files(path: Path) -> list[Path]:
    """The file itself, or the text files under a folder, sorted. Raises DataError: none."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataError(f"{path} is not there.", "Give a text file or a folder of text files.")
    files = [file for file in sorted(path.rglob("*")) if file.suffix.lower() in KINDS]
    files = list(filter(Path.is_file, files))
    if not files:
        message = f"{path} has no text file in it."
        raise DataError(message, f"Files that are read end in {', '.join(KINDS)}.")
    return files


def _tokens(file: Path, longest_word: int) -> Iterator[tuple[list[str], int]]:
    """The file's tokens in pieces, each with the number of its bytes. A line end comes after the
    last."""
    half = ""
    for text, size in _texts(file):
        # NFC, so that both encodings of é are equal
        text = normalize("NFC", half + text)
        tokens = pieces(text)
        # the last word may go on in the next piece; the start of an overlong one is enough
        half = tokens.pop()[: longest_word + 1] if tokens and not text[-1].isspace() else ""
        yield tokens, size
    yield [*pieces(half), "\n"], 0


def _texts(file: Path) -> Iterator[tuple[str, int]]:
    """The file's text in pieces that split no escape, with their bytes. Raises DataError."""
    escaped = file.suffix.lower() in (".jsonl", ".json")
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    lines = 1
    try:
        with open(file, "rb") as stream:
            while content := stream.read(CHUNK):
                while escaped and b"\\" in content[-LONGEST_ESCAPE:]:
                    if not (more := stream.read(CHUNK)):
                        break
                    content += more
                text = decoder.decode(content)
                yield ESCAPES.sub(_decoded, text) if escaped else text, len(content)
                lines += content.count(b"\n")
            decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        lines += error.object.count(b"\n", 0, error.start)
        message = f"{file}, line {lines}, is not UTF-8 (byte {error.object[error.start]:#04x})."
        raise DataError(message, "Save it again in UTF-8.") from None
    except OSError as error:
        message = f"{file} cannot be read ({error.strerror})."
        raise DataError(message, "Check its permissions.") from None


def _decoded(escapes: re.Match[str]) -> str:
    """The text of JSON escapes. Line breaks become spaces: inside a string they end no document."""
    try:
        return json.loads(f'"{escapes[0]}"').translate({ord("\n"): " ", ord("\r"): " "})
    except ValueError:
        return " "
