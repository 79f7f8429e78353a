"""For schemathesis (scripts/schema-check): an idempotency key is used for one body.

Generated keys are short, and come again with other bodies, which the server refuses as it must.
"""

import re
import uuid

import schemathesis

KEY = "Idempotency-Key"


@schemathesis.hook
def before_call(context, case, kwargs):
    """Make a key that is valid one of its own; those that are not are left as they are."""
    key = (case.headers or {}).get(KEY)
    if isinstance(key, str) and re.fullmatch(r"[!-~]([ -~]{0,158}[!-~])?", key):
        case.headers[KEY] = f"{key}-{uuid.uuid4().hex}"
