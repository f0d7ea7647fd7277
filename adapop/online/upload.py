"""A folder to the Hugging Face Hub, as a private model repository of one's own (HF_TOKEN, HF_ENDPOINT)."""

from pathlib import Path

from huggingface_hub import HfApi, constants
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, HTTPError, OfflineModeIsEnabled
from huggingface_hub.utils import validate_repo_id

from adapop.errors import ConfigError, NetworkError
from adapop.online.client import connection_hint


class Upload:
    """A repository that is made before anything is written, so that a missing token is known in time.

    Raises:
        ConfigError: the name is none.
        NetworkError: the Hub cannot be reached, or refuses.
    """

    def __init__(self, name: str, endpoint: str | None = None) -> None:
        try:
            validate_repo_id(name)
        except HFValidationError as error:
            raise ConfigError(f"{name!r} is no name on the Hub: {error}", "Write YOU/NAME.") from None
        self._name, self._api = name, HfApi(endpoint=endpoint or constants.ENDPOINT)
        self._check(lambda: self._api.create_repo(name, private=True, exist_ok=True))

    def send(self, folder: Path) -> str:
        """Uploads the folder's files as one commit. Returns the repository's address."""
        self._check(lambda: self._api.upload_folder(repo_id=self._name, folder_path=folder))
        return f"{self._api.endpoint}/{self._name}"

    def _check(self, request) -> None:
        try:
            request()
        except HfHubHTTPError as error:
            status = error.response.status_code
            raise NetworkError(
                f"The Hub refuses {self._name} ({status}).",
                "Set HF_TOKEN to a token that may write there." if status in (401, 403) else "Try again later.",
            ) from error
        except OfflineModeIsEnabled:
            raise NetworkError("HF_HUB_OFFLINE is set, so nothing is sent.", "Unset it, or leave --push out.") from None
        except (HTTPError, OSError) as error:
            raise NetworkError(
                f"The Hub ({self._api.endpoint}) cannot be reached, or broke off.", connection_hint(self._api.endpoint)
            ) from error
