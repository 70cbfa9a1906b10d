# SPDX-License-Identifier: Apache-2.0
"""Writing files: `Target.save` writes every file that tq writes.

Only regular files are replaced, and an input only where the caller allows it.  A file is identified by device and
inode, not by its name.  The new file replaces the old one in one step, with its mode and owner, after all bytes are on
the disk: a failed save leaves the old file unchanged.  A symbolic link stays; the file that it points to is replaced.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Union

from tq._core import Error, Model
from tq.external import side_file

Path = Union[str, "os.PathLike[str]"]
Content = Union[bytes, Callable[[int], object]]  # noqa: UP007 - evaluated on Python 3.10 too; the bytes, or a function that writes them to a descriptor
Identity = tuple[int, int]  # a file's device and inode

STDOUT = "/dev/stdout"
_STREAMS = {STDOUT, "/dev/fd/1", "/proc/self/fd/1"}
_IN_PLACE = "; in_place=True, or --in-place, allows it where there is such an option"
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class Target:
    """A file to write, and the inputs that it must not overwrite.

    path: /dev/stdout is standard output, which is written to and never replaced.
    inputs: models, paths, arrays from files, calibrations, reports, and lists, tuples and dicts of these; other objects
        have no file.
    model: the one input whose file may be replaced, where `in_place` is True.
    ValueError: in_place is True and `path` is not the model's file.
    """

    def __init__(self, path: Path, *inputs: Any, model: Any = None, in_place: bool = False) -> None:
        self.path = os.fsdecode(path)
        own = frozenset(_own(model))
        if in_place and own.isdisjoint(_identity(self.path)):
            raise ValueError(f"in_place is True, but {self.path!r} is not the file of the model")
        self._own = frozenset() if in_place else own
        self._inputs = frozenset(_identities((*inputs, model))) - own

    def check(self) -> os.stat_result | None:
        """The status of the file that a save would replace; None: it does not exist yet.

        OSError: the file is one of the inputs, no regular file, or read-only.
        """
        path = self.path
        try:
            found = os.fstat(1) if is_stdout(path) else os.stat(path)
        except FileNotFoundError:
            return None
        if (found.st_dev, found.st_ino) in self._own:
            raise OSError(errno.EEXIST, f"the model itself would be overwritten{_IN_PLACE}", path)
        if (found.st_dev, found.st_ino) in self._inputs:
            raise OSError(errno.EEXIST, "an input would be overwritten", path)
        if is_stdout(path):
            return found
        if stat.S_ISDIR(found.st_mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        real = os.path.realpath(path)  # of /dev/fd/3 it may be no path at all
        if not stat.S_ISREG(found.st_mode) or not os.path.exists(real) or not os.path.samestat(found, os.stat(real)):
            raise OSError(errno.EEXIST, "not a regular file; only these are replaced", path)
        if not found.st_mode & _WRITABLE or not _may_write(real):
            raise OSError(errno.EACCES, "the file is read-only", path)
        return found

    def save(self, content: Content) -> None:
        """Writes the whole file or nothing.

        content: the bytes, or a function that writes them to a file descriptor.
        OSError: as check(), and the system's errors; each names the path.
        """
        old = self.check()
        write = content if callable(content) else (lambda descriptor: write_all(descriptor, content))
        try:
            if is_stdout(self.path):
                _stream(write)
            else:
                _replace(os.path.realpath(self.path), old, write)
        except OSError as error:
            if error.errno is None:
                raise
            raise OSError(error.errno, error.strerror, self.path) from error


def target(path: Path | None, *inputs: Any, model: Any = None, in_place: bool = False) -> Target | None:
    """The checked target of a function that may write its result to a file; None: no path is given.

    Functions call it before their work begins.  ValueError, OSError: as Target and Target.check.
    """
    if path is None:
        if in_place:
            raise ValueError("in_place is True, but there is no output to be written there")
        return None
    made = Target(path, *inputs, model=model, in_place=in_place)
    made.check()
    return made


def is_stdout(path: Path) -> bool:
    """Whether a path names standard output."""
    return os.fspath(path) in _STREAMS


def _may_write(path: str) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


# ---- inputs ----


def _identities(item: Any) -> Iterator[Identity]:
    """The files of an input."""
    if isinstance(item, Model):
        yield from _own(item)
        for path in _side_files(item):
            yield from _identity(path)
    elif isinstance(item, (str, os.PathLike)):
        yield from _identity(item)
    elif isinstance(name := getattr(getattr(item, "zip", item), "filename", None), (str, os.PathLike)):
        yield from _identity(name)  # of numpy.memmap, or of NumPy's open .npz
    elif isinstance(item, (list, tuple, Mapping)):
        for part in item.values() if isinstance(item, Mapping) else item:
            yield from _identities(part)
    else:
        yield from getattr(item, "_input_files", ())  # a calibration's or a report's own inputs


def _own(model: Any) -> Iterator[Identity]:
    """The files of a model: the one that was opened, and the one that has its name now."""
    if isinstance(model, Model):
        if model._identity is not None:
            yield model._identity
        model = model.path
    if isinstance(model, (str, os.PathLike)):
        yield from _identity(model)


def _side_files(model: Model) -> Iterator[str]:
    """The files of external buffers."""
    for buffer in model.external_buffers:
        with contextlib.suppress(Error):
            yield side_file((model.path, buffer.group or ""))


def _identity(path: Path) -> Iterator[Identity]:
    with contextlib.suppress(OSError, ValueError):
        found = os.stat(path)
        yield found.st_dev, found.st_ino


def files_of(*inputs: Any) -> frozenset[Identity]:
    """The files of inputs, for a result of theirs that is saved later."""
    return frozenset(_identities(inputs))


# ---- writing ----


def _stream(write: Callable[[int], object]) -> None:
    if sys.stdout is not None:
        sys.stdout.flush()
    write(1)


def _replace(path: str, old: os.stat_result | None, write: Callable[[int], object]) -> None:
    if not _replace_unnamed(path, old, write):
        _replace_named(path, old, write)


def _replace_named(path: str, old: os.stat_result | None, write: Callable[[int], object]) -> None:
    temporary = _beside(path)
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, _first_mode(old))
    try:
        try:
            write(descriptor)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        _keep_owner_and_mode(temporary, old)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _replace_unnamed(path: str, old: os.stat_result | None, write: Callable[[int], object]) -> bool:
    """The same by a file that gets a name only when it is whole, so that a process that is killed leaves nothing.

    False: the system has no such files, and nothing is done.
    """
    try:
        descriptor = os.open(os.path.dirname(path), os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, _first_mode(old))
    except (AttributeError, OSError):
        return False
    try:
        write(descriptor)
        _keep_owner_and_mode(descriptor, old)
        os.fsync(descriptor)
        return _link(descriptor, path)
    finally:
        os.close(descriptor)


def _link(descriptor: int, path: str) -> bool:
    temporary = _beside(path)
    try:
        # With a folder's descriptor Python calls linkat(), which alone follows the link in /proc.
        folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.link(f"/proc/self/fd/{descriptor}", os.path.basename(temporary), dst_dir_fd=folder, follow_symlinks=True)
        finally:
            os.close(folder)
    except OSError:  # no /proc, or a folder that takes no links
        return False
    try:
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return True


def _beside(path: str) -> str:
    return os.path.join(os.path.dirname(path), f".tq-{secrets.token_hex(8)}.tmp")


def _first_mode(old: os.stat_result | None) -> int:
    """The mode of a file during the write: a new one has that of the umask; a replacement is private until it is
    whole."""
    return 0o666 if old is None else 0o600


def _keep_owner_and_mode(made: str | int, old: os.stat_result | None) -> None:
    if old is None:
        return
    new = os.stat(made)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        os.chown(made, old.st_uid, old.st_gid)  # first: it may take bits of the mode away
    mode = stat.S_IMODE(old.st_mode)
    if isinstance(made, int):
        os.fchmod(made, mode)
    else:
        os.chmod(made, mode)


def write_all(descriptor: int, data: bytes) -> None:
    """Writes bytes to a file descriptor, in as many steps as the system takes."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
