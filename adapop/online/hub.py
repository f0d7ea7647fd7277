"""Files of public data sets of the Hugging Face Hub: as uploaded, or as Parquet from the branch to
which the Hub converts each data set. `Upload` sends a folder to a private model repository.

On that branch a split is `{config}/{split}/0000.parquet` and so on; a split too big to be converted
whole is `{config}/partial-{split}/`: https://huggingface.co/docs/dataset-viewer/parquet.
huggingface_hub downloads and keeps the files (HF_ENDPOINT, HF_HOME, HF_TOKEN, HF_HUB_OFFLINE). All
files of a data set are from one commit, the first one found."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from huggingface_hub import HfApi, constants, errors, hf_hub_download
from huggingface_hub.utils import validate_repo_id

from adapop.errors import ConfigError, NetworkError, truncated
from adapop.online.cache import Cache
from adapop.online.client import connection_hint
from adapop.progress import Progress

BRANCH, MAIN = "refs/convert/parquet", "main"
FILE = re.compile(r"([^/]+)/([^/]+)/\d+\.parquet")
LIST_SECONDS = 10.0
# HTTPError: of whichever HTTP library this huggingface_hub uses, of a refusal by the Hub as well
FAULTS = (errors.EntryNotFoundError, errors.HTTPError, OSError, ValueError, TypeError, KeyError)
AGAIN = "Try again later; what was found is kept."
AS_A_FILE = "Download the data set and use it as a file."


def _key(dataset: str, branch: str) -> tuple[str, ...]:
    """The cache key of a data set's files."""
    return ("hub files", dataset) if branch == BRANCH else ("hub files", dataset, branch)


class Hub:
    """Public data sets of the Hub, each downloaded once. endpoint: in place of HF_ENDPOINT."""

    def __init__(self, progress: Progress, cache: Cache, endpoint: str | None = None) -> None:
        self._progress = progress
        self._cache = cache
        self._endpoint = endpoint or constants.ENDPOINT

    def files(self, dataset: str, config: str, split: str) -> list[Path]:
        """The Parquet files of a split, in order. A stop takes effect between two files. Raises
        NetworkError: no such split, or only a part of it; the Hub cannot be reached, refuses, or
        has changed the data set meanwhile. Stopped: somebody asked to stop."""
        commit, names = self._files_of(dataset, config, split)
        paths = []
        for number, name in enumerate(names, start=1):
            self._progress.say(f"{dataset}, {split}: file {number:,} of {len(names):,}")
            paths.append(self._downloaded(dataset, commit, name))
        return paths

    def file(self, dataset: str, name: str) -> Path:
        """A file of a data set as its authors uploaded it. Raises as `files`."""
        known = self._cache.get(*_key(dataset, MAIN))
        commit, names = (known and known.value) or self._listing(dataset, MAIN)
        if known and name not in names:  # it may be newer than the list
            commit, names = self._listing(dataset, MAIN)
        if name not in names:
            raise NetworkError(f"{dataset} has no file {name}.", "Was it renamed on the Hub?")
        self._progress.say(f"{dataset}: {name}")
        return self._downloaded(dataset, commit, name)

    def _downloaded(self, dataset: str, commit: str, name: str) -> Path:
        with self._explained(dataset, commit):
            place = {"repo_type": "dataset", "revision": commit, "endpoint": self._endpoint}
            return Path(hf_hub_download(dataset, name, **place))

    def config_of(self, dataset: str, split: str) -> str:
        """The name of the configuration that holds a split, requested once. Raises as `files`."""
        _, names = self._files_of(dataset, None, split)
        return names[0].partition("/")[0]

    def _files_of(self, dataset: str, config: str | None, split: str) -> tuple[str, list[str]]:
        """(commit, file names) of a split; config None: the first that has it. Raises
        NetworkError."""
        known = self._cache.get(*_key(dataset, BRANCH))
        for listing in (known.value, None) if known and known.value else (None,):
            commit, names = listing or self._listing(dataset)
            for name in names:
                match = FILE.fullmatch(name)
                if match and match[2] == split and config in (None, match[1]):
                    folder = f"{match[1]}/{split}/"
                    return commit, sorted(other for other in names if other.startswith(folder))
        matches = filter(None, map(FILE.fullmatch, names))
        splits = {match[2] for match in matches if config in (None, match[1])}
        if f"partial-{split}" in splits:
            message = f"The Hub converts only a part of {dataset}, {split}."
            raise NetworkError(message, AS_A_FILE)
        there = ", ".join(sorted(map(truncated, splits))) or "none"
        message = f"{dataset} has no split {split} (its splits: {there})."
        raise NetworkError(message, "Was it renamed on the Hub?")

    def _listing(self, dataset: str, branch: str = BRANCH) -> tuple[str, list[str]]:
        """(commit, names of all files) of a data set's branch (`BRANCH` or `MAIN`); cached."""
        self._progress.say(f"{dataset}: asking {self._endpoint} for its files")
        with self._explained(dataset):
            api = HfApi(endpoint=self._endpoint)
            info = api.dataset_info(dataset, revision=branch, timeout=LIST_SECONDS)
            listing = info.sha, [sibling.rfilename for sibling in info.siblings or ()]
            if not isinstance(info.sha, str):
                raise ValueError("no commit")
        self._cache.put(listing, *_key(dataset, branch))
        return listing

    @contextmanager
    def _explained(self, dataset: str, commit: str | None = None) -> Iterator[None]:
        """A context that turns the Hub's errors into ours. commit: of the files, if known."""
        try:
            yield
        except FAULTS as error:
            gone = isinstance(error, (errors.RevisionNotFoundError, errors.EntryNotFoundError))
            if commit and gone and not isinstance(error, errors.LocalEntryNotFoundError):
                for branch in (BRANCH, MAIN):
                    self._cache.put(None, *_key(dataset, branch))  # the next try starts anew
                message = f"{dataset} changed while it was being read."
                raise NetworkError(message, "Start the download again.") from error
            raise NetworkError(*self._reason(error, dataset)) from error

    def _reason(self, error: Exception, dataset: str) -> tuple[str, str]:
        """(message to the user about an error, what to do about it)."""
        if isinstance(error, errors.GatedRepoError):
            terms = f"Accept its terms at {self._endpoint}/datasets/{dataset}, and set HF_TOKEN."
            return f"{dataset} is gated, and this machine has no access to it.", terms
        if isinstance(error, errors.RepositoryNotFoundError):
            fix = "Was it renamed? A private one needs HF_TOKEN."
            return f"The Hub has no data set {dataset}, or it is private.", fix
        if isinstance(error, errors.RevisionNotFoundError):
            return f"The Hub has not converted {dataset} to Parquet.", AS_A_FILE
        missing = isinstance(error, errors.LocalEntryNotFoundError)
        if isinstance(error, errors.OfflineModeIsEnabled) or (
            missing and constants.is_offline_mode()
        ):
            why = f"{dataset} was not downloaded here, and HF_HUB_OFFLINE is set."
            return why, "Unset it for the first download."
        if isinstance(error, errors.HfHubHTTPError):
            status = error.response.status_code
            return f"The Hub refuses {dataset}, or has a fault of its own ({status}).", AGAIN
        if missing or isinstance(error, errors.HTTPError):
            hint = f"{connection_hint(self._endpoint)} {AGAIN}"
            return f"The Hub ({self._endpoint}) cannot be reached, or disconnected.", hint
        if isinstance(error, OSError):
            fix = "Make room, or set HF_HOME to another folder."
            return f"A file of {dataset} cannot be kept ({error}).", fix
        return f"The Hub did not answer with files of {dataset}.", AGAIN


class Upload:
    """A private model repository, created before anything is written, so that a missing token is
    known in time. Raises ConfigError: an invalid name. NetworkError: the Hub is not reached, or
    refuses."""

    def __init__(self, name: str, endpoint: str | None = None) -> None:
        try:
            validate_repo_id(name)
        except errors.HFValidationError as error:
            message = f"{name!r} is not a name on the Hub: {error}"
            raise ConfigError(message, "Write YOU/NAME.") from None
        self._name, self._api = name, HfApi(endpoint=endpoint or constants.ENDPOINT)
        self._check(lambda: self._api.create_repo(name, private=True, exist_ok=True))

    def send(self, folder: Path) -> str:
        """Uploads the folder's files as one commit. Returns the repository's address."""
        self._check(lambda: self._api.upload_folder(repo_id=self._name, folder_path=folder))
        return f"{self._api.endpoint}/{self._name}"

    def _check(self, request) -> None:
        try:
            request()
        except errors.HfHubHTTPError as error:
            status = error.response.status_code
            fix = "Set HF_TOKEN to a token that may write there."
            fix = fix if status in (401, 403) else "Try again later."
            raise NetworkError(f"The Hub refuses {self._name} ({status}).", fix) from error
        except errors.OfflineModeIsEnabled:
            message = "HF_HUB_OFFLINE is set, so nothing is sent."
            raise NetworkError(message, "Unset it, or leave --push out.") from None
        except (errors.HTTPError, OSError) as error:
            message = f"The Hub ({self._api.endpoint}) cannot be reached, or disconnected."
            raise NetworkError(message, connection_hint(self._api.endpoint)) from error
