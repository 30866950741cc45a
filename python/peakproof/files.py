"""Files that appear whole or not at all."""

import errno
import os
import stat
import tempfile


def _mode(path):
    """The mode of the file that is replaced, or the one that a new file gets."""
    if os.path.exists(path):
        return stat.S_IMODE(os.stat(path).st_mode) & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def write(path, data):
    """Writes bytes or text to `path`: a temporary file beside it, synced, then renamed.

    Links are followed; a device or a pipe is written directly. Raises OSError, also where a
    directory or a link to nothing is in the way; then nothing has changed.
    """
    data = data.encode() if isinstance(data, str) else data
    if os.path.islink(path) and not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, "is a link to what is not there", path)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as f:
            f.write(data)
        return
    path = os.path.realpath(path)
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".peakproof-")
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(data)
            f.flush()
            os.fchmod(f.fileno(), _mode(path))
            os.fsync(f.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
