"""From the errors of boto3, botocore and urllib3 to those of the kernel. None of the three is imported."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any, Final

from ropewalk.errors import MalformedStreamError, ModelError
from ropewalk.kits.model_errors import FailureClass, classify, model_error, retry_after_seconds

PROVIDER: Final = "bedrock"

_CREDENTIALS: Final = frozenset({
    "NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "NoAuthTokenError",
    "TokenRetrievalError", "ProfileNotFound", "SSOError", "LoginError", "RefreshWithMFAUnsupportedError",
    "MetadataRetrievalError", "UnknownCredentialError",
})  # fmt: skip
"""Classes, and bases of classes, of errors that mean: there is nothing to sign a request with."""

_WAYS: Final = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a Bedrock API key in AWS_BEARER_TOKEN_BEDROCK; or run "
    "`aws configure` or `aws sso login` and name the profile in AWS_PROFILE; or give BedrockModel(api_key=...) or "
    "BedrockModel(boto_session=boto3.Session(...)); or take another model, as in Agent(model='local')"
)
_HINTS: Final[tuple[tuple[str, str], ...]] = (
    ("on-demand throughput", "name an inference profile of the model, such as 'us.' or 'eu.' before its id"),
    ("model identifier is invalid", "profiles that begin with 'us.' exist in regions of the United States only"),
    ("don't have access to the model", "ask for access to it in the Bedrock console, in this region"),
    ("security token", "the credentials have expired or belong elsewhere: refresh them"),
)
_CLIENT: Final = ("botocore", "boto3", "urllib3", "s3transfer", "awscrt")
_RESPONSE_PARTS: Final = ("Error", "ResponseMetadata")


def translated(error: Exception, model_id: str, region: str | None) -> ModelError:
    """The kernel's error for what a call of the client raised; its cause is set by the caller.

    Args:
        error: What was raised.
        model_id: The model that was asked.
        region: The client's region, if it got that far.
    """
    if isinstance(error, ModelError):
        return error

    where = f"{model_id} in {region}" if region else model_id
    names = [cls.__name__ for cls in type(error).__mro__]
    if not _CREDENTIALS.isdisjoint(names):
        message = f"{where}: there are no usable AWS credentials ({error}): {_WAYS}"
        return model_error("auth", message, provider=PROVIDER, code=names[0])

    response = getattr(error, "response", None)
    if isinstance(response, Mapping) and isinstance(response.get("Error"), Mapping):
        return _of_response(response, where)

    if isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _CLIENT:
        return _of_client(error, names[0], where)

    return MalformedStreamError(f"{where}: the answer cannot be read ({names[0]}: {error}): try again")


def _of_response(response: Mapping[str, Any], where: str) -> ModelError:
    """An error that the service answered with, by itself or inside of a stream."""
    said, metadata = (response.get(part) or {} for part in _RESPONSE_PARTS)
    code, text = str(said.get("Code") or ""), str(said.get("Message") or said.get("message") or "")
    status = metadata.get("HTTPStatusCode")
    if status is None or status == 200:  # noqa: PLR2004 - the status of the stream that carried the error
        status = response.get("originalStatusCode")

    if not code and not text:
        # boto3 drops type and text of an exception in a stream that its model of the service does not have.
        unknown = f"{where}: the stream ended in an error that this version of boto3 does not know (newer ones may)"
        return model_error("transient", unknown, provider=PROVIDER)

    failure: FailureClass = classify(PROVIDER, code=code or None, status=status, text=text)
    hint = next((hint for part, hint in _HINTS if part in text.lower()), None)
    message = f"{where}: {text or code}" + (f" ({hint})" if hint else "")
    wait = retry_after_seconds(metadata.get("HTTPHeaders") or {})
    return model_error(failure, message, provider=PROVIDER, code=code or None, status=status, retry_after=wait)


def _of_client(error: Exception, name: str, where: str) -> ModelError:
    """An error of the client itself: the network, a stream's framing, or a parameter that it refuses to send."""
    if type(error).__module__ == "botocore.eventstream" or name == "ResponseParserError":
        return MalformedStreamError(f"{where}: the stream is damaged ({name}: {error}): try again")

    if _no_such_host(error):
        # By far the most often a region that does not exist, which waiting does not help.
        missing = f"{where}: {error} (there is no host of that name: check region_name and endpoint_url)"
        return model_error("bad_request", missing, provider=PROVIDER, code=name)

    failure = classify(PROVIDER, code=name, text=str(error))
    return model_error(failure, f"{where}: {error}", provider=PROVIDER, code=name)


def _no_such_host(error: Exception) -> bool:
    """Whether the name server says that the host does not exist; that it cannot say is another matter."""
    inner = getattr(error, "kwargs", {}).get("error")
    reasons = (error, inner, getattr(inner, "__cause__", None), getattr(inner, "__context__", None))
    return any(isinstance(each, socket.gaierror) and each.errno == socket.EAI_NONAME for each in reasons)
