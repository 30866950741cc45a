"""peakproof.files: whole or not at all, and never in the place of what is no regular file."""

import os
import stat
import threading

import pytest
from peakproof.files import write


def test_pipe_is_written_directly(tmp_path):
    """A device would be replaced by a file if only names were looked at."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write(str(pipe), "text")
    reader.join(10)
    assert got == [b"text"] and stat.S_ISFIFO(os.stat(pipe).st_mode)


def test_links_and_modes(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to("real")
    write(link, b"new")
    assert link.is_symlink() and real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    mask = os.umask(0o027)
    try:
        write(tmp_path / "fresh", "")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o640


def test_what_is_in_the_way_stays(tmp_path):
    (tmp_path / "link").symlink_to("nothing")
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "link", "x")
    with pytest.raises(IsADirectoryError):
        write(tmp_path, "x")
    assert os.listdir(tmp_path) == ["link"]
