"""Turns a failure of object storage into one sentence that says what to do.

obstore raises the same exception for a missing key, a missing bucket and an unknown account: the
answer to all three is 404. The code in the body of the answer tells them apart; S3, Google Cloud
Storage and Azure all write it as `<Code>NoSuchBucket</Code>`.
"""

from __future__ import annotations

import re

_CODE = re.compile(r"<Code>([A-Za-z]+)</Code>")
_STATUS = re.compile(r"status code: (\d{3})")
_ASKED = re.compile(r"Error performing [A-Z]+ (https?://[^/\s]+)")
_MISSING_KEY = ("NoSuchKey", "BlobNotFound", "NoSuchVersion")
_MISSING_BUCKET = ("NoSuchBucket", "ContainerNotFound", "ResourceNotFound")
_ROLE_PATHS = ("/latest/api/token", "/latest/meta-data", "/computeMetadata", "/metadata/identity")
_UNREACHED = ("error sending request", "operation timed out", "error decoding response")
RANGE = "InvalidRange"
CREDENTIALS = (
    "give those of an account that may read and write there (AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY, GOOGLE_SERVICE_ACCOUNT, AZURE_STORAGE_ACCOUNT_KEY, or a role)"
)


def code_in(text: str) -> str:
    """The code in an answer; empty if there is none.

    >>> code_in("404 Not Found: <Error><Code>NoSuchBucket</Code></Error>")
    'NoSuchBucket'
    """
    match = _CODE.search(text)
    return match[1] if match else ""


def is_missing_key(text: str) -> bool:
    """True if a 404 means that the object is missing, and not its bucket or the account.

    >>> is_missing_key("404 Not Found: <Code>NoSuchKey</Code>"), is_missing_key("404 Not Found")
    (True, True)
    >>> is_missing_key("404 Not Found: <Code>NoSuchBucket</Code>")
    False
    """
    return code_in(text) in ("", *_MISSING_KEY)


def failure(where: str, text: str) -> str:
    """A sentence for the user: where, what came, what to do.

    >>> failure("s3://b/x", "404 Not Found: <Code>NoSuchBucket</Code>")
    's3://b/x: there is no such bucket (NoSuchBucket); create it, or name another with --store'
    """
    code, asked = code_in(text), _ASKED.search(text)
    status = _STATUS.search(text)
    address = f" at {asked[1]}" if asked else ""
    if code in _MISSING_BUCKET:
        return f"{where}: there is no such bucket ({code}); create it, or name another with --store"
    if any(path in text for path in _ROLE_PATHS):
        return f"{where}: there are no credentials, and no role of this machine; {CREDENTIALS}"
    if status and (status[1] in ("401", "403") or "UserNotFound" in code):
        return f"{where}: the credentials are refused ({code or status[1]}){address}; {CREDENTIALS}"
    if status and status[1].startswith("5"):
        return (
            f"{where}: the object storage{address} fails ({code or status[1]}); look at its own "
            "log; requests are retried where that is safe"
        )
    if any(words in text for words in _UNREACHED):
        return (
            f"{where}: the object storage cannot be reached{address}; is it up, is "
            "AWS_ENDPOINT_URL right, and does the network of this host lead there?"
        )
    first = (text.strip().splitlines() or ["no reason is given"])[0]
    return f"{where}: the object storage failed: {first}"
