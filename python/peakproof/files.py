"""Files that appear whole or not at all."""

import os
import tempfile


def write(path, data):
    """Writes bytes or text to `path`: a temporary file beside it, synced, then renamed."""
    data = data.encode() if isinstance(data, str) else data
    directory = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(dir=directory, prefix=".peakproof-")
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
