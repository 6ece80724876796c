"""What boto3 raises, in words of ours."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from lc_events.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Generator

    from botocore.exceptions import BotoCoreError, ClientError

__all__ = ["explained"]

_DENIED = "access is denied: check the keys, and what they may do in this bucket"
_EXPIRED = "the credentials have expired: give new ones"
_MISSING = "there is no such object"
_NO_BUCKET = "there is no such bucket: make it, or correct its name"
_CLOCK = "the clocks of this node and of the server are too far apart: set the wrong one"
_SLOW = "the server asks for fewer requests"
_FULL = "the server has no room left"
_CHANGED = "the object was replaced meanwhile"
_UNSUPPORTED = "the server cannot do this"

_BY_CODE = {
    "NoSuchKey": ("missing", _MISSING),
    "NoSuchVersion": ("missing", _MISSING),
    "NoSuchBucket": ("no_bucket", _NO_BUCKET),
    "AccessDenied": ("denied", _DENIED),
    "AllAccessDisabled": ("denied", _DENIED),
    "InvalidAccessKeyId": ("denied", "the server does not know this access key: check it"),
    "SignatureDoesNotMatch": ("denied", "the secret key does not fit the access key: check both"),
    "ExpiredToken": ("expired", _EXPIRED),
    "ExpiredTokenException": ("expired", _EXPIRED),
    "InvalidToken": ("expired", "the session token is not valid, or no longer: give a new one"),
    "TokenRefreshRequired": ("expired", _EXPIRED),
    "RequestTimeTooSkewed": ("clock", _CLOCK),
    "RequestExpired": ("clock", _CLOCK),
    "SlowDown": ("slow", _SLOW),
    "TooManyRequests": ("slow", _SLOW),
    "Throttling": ("slow", _SLOW),
    "ThrottlingException": ("slow", _SLOW),
    "RequestTimeout": ("slow", "what we sent came too slowly"),
    "PreconditionFailed": ("changed", _CHANGED),
    "InvalidRange": ("changed", _CHANGED),
    "QuotaExceeded": ("no_space", _FULL),
    "InsufficientCapacity": ("no_space", _FULL),
    "XMinioStorageFull": ("no_space", _FULL),
    "EntityTooLarge": ("no_space", "the object is larger than the server takes"),
    "NotImplemented": ("unsupported", _UNSUPPORTED),
    "MethodNotAllowed": ("unsupported", _UNSUPPORTED),
}
_BY_STATUS = {
    401: ("denied", _DENIED),
    403: ("denied", _DENIED),
    404: ("missing", _MISSING),
    412: ("changed", _CHANGED),
    416: ("changed", _CHANGED),
    429: ("slow", _SLOW),
    501: ("unsupported", _UNSUPPORTED),
    507: ("no_space", _FULL),
}


@contextlib.contextmanager
def explained(what: str, server: str) -> Generator[None]:
    """Turn what boto3 raises into a `StorageError`: what was tried, at which server, why it failed, what to do.

    The text is the same for each repeat of a cause, and holds nothing of a request or of a server's own words, in
    which keys and signatures can stand.
    """
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        code, words = _answered(error)
    except BotoCoreError as error:
        code, words = _unanswered(error)
    except (Boto3Error, OSError) as error:
        code, words = "storage", f"the request failed ({type(error).__name__})"
    else:
        return
    raise StorageError(f"cannot {what} at {server}: {words}", code=code, missing=code == "missing") from None


def _answered(error: ClientError) -> tuple[str, str]:
    """Code and words for a refusal by the server."""
    code = str(error.response.get("Error", {}).get("Code", ""))
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    found = _BY_CODE.get(code) or _BY_STATUS.get(status)
    if found is not None:
        return found[0], f"{found[1]} ({status}{'' if code == str(status) else f' {code}'})"
    if status >= 500:
        return "server", f"the server has trouble of its own ({status} {code})"
    return "storage", f"the server refuses ({status} {code})"


def _unanswered(error: BotoCoreError) -> tuple[str, str]:
    """Code and words for a request that got no whole answer, or could not be made."""
    from botocore import exceptions as b

    match error:
        case b.ReadTimeoutError() | b.ConnectTimeoutError():
            return "slow", "the server does not answer in time"
        case b.SSLError():
            return (
                "unreachable",
                "no secure connection: does it speak TLS, with a certificate of a CA known here?",
            )
        case b.ProxyConnectionError():
            return "unreachable", "the proxy cannot be reached"
        case b.EndpointConnectionError():
            return "unreachable", "the server cannot be reached"
        case b.ConnectionClosedError() | b.ResponseStreamingError() | b.IncompleteReadError():
            return "broken_off", "the server broke off its answer"
        case b.HTTPClientError():
            return "unreachable", f"the server cannot be reached ({type(error).__name__})"
        case b.NoCredentialsError() | b.PartialCredentialsError():
            return "credential", "no credentials: give the annotation sedna.io/credential, or boto3 its own"
        case b.CredentialRetrievalError() | b.TokenRetrievalError() | b.SSOError() | b.LoginError():
            return "credential", f"boto3 cannot get its credentials ({type(error).__name__})"
        case b.ParamValidationError() | b.InvalidDNSNameError():
            return "no_bucket", "this cannot be the name of a bucket"
        case _:
            return "storage", f"the request could not be made ({type(error).__name__})"
