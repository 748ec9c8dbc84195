"""A registry on a small file system of its own, which fills up or loses power.

Usage: volumes.py full tmpfs|ext4 ORIGINAL LEVELS
       volumes.py create tmpfs|ext4 STEP
       volumes.py power ORIGINAL FAILURES SEED

To be run in a mount namespace of its own (``unshare --mount``), with which every mount goes away.
Prints one JSON document; an exception ends it with status 1.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# The script's own folder is where it finds its neighbours, wherever the tests are.
sys.path.insert(0, str(Path(__file__).parent))

from audit import audited  # type: ignore[import-not-found]
from work import (  # type: ignore[import-not-found]
    Acknowledged,
    Reader,
    Subject,
    Writer,
    lost,
)

from asmevo.registry.errors import RegistryError
from asmevo.registry.registry import Registry

MIB = 1 << 20
SIZE = 24 * MIB
SHUTDOWN = 0x8004587D
"""EXT4_IOC_SHUTDOWN: _IOR('X', 125, __u32), include/uapi/linux/ext4.h."""
WITHOUT_LOG_FLUSH = 2
"""EXT4_GOING_FLAGS_NOLOGFLUSH: nothing in memory reaches the disk any more."""


class Volume:
    """A file system of `SIZE` bytes, mounted at ``path``."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.path = folder / "volume"
        self._image = folder / "image"
        self._kind = kind
        self.path.mkdir()
        if kind == "ext4":
            with self._image.open("wb") as file:
                file.truncate(SIZE)
            # No reserved blocks: root may use those, and would not see the disk as full. Blocks of
            # a page, as on any disk but a small one: SQLite makes room for each page of the log's
            # index with one byte (sqlite3.c, unixShmMap), which with smaller blocks is not a page.
            _run("mkfs.ext4", "-q", "-F", "-m", "0", "-b", "4096", str(self._image))
        self.mount()

    def mount(self) -> None:
        if self._kind == "ext4":
            _run("mount", "-o", "loop", str(self._image), str(self.path))
        else:
            _run("mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", str(self.path))

    def unmount(self) -> None:
        _run("umount", str(self.path))

    def abandon(self) -> None:
        """Unmount for good, even where a failed test holds a file open."""
        _run("umount", "--lazy", str(self.path))

    def cut_power(self) -> None:
        """What no fsync has made durable is gone; everything fails until it is mounted again."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", WITHOUT_LOG_FLUSH))
        finally:
            os.close(descriptor)

    @contextmanager
    def filled(self, free: int) -> Iterator[None]:
        """Leave ``free`` bytes."""
        filler = self.path / "filler"
        state = os.statvfs(self.path)
        take = chunk = state.f_bavail * state.f_frsize - free
        with filler.open("wb") as file:
            # The file system needs some of it itself, to say where the rest is.
            while take > 0 and chunk >= 4096:
                try:
                    os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), min(chunk, take))
                    take -= min(chunk, take)
                except OSError:
                    chunk //= 2
        try:
            yield
        finally:
            filler.unlink()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


class FullDisk:
    """One registry on a volume on which ``free`` bytes are left."""

    def __init__(self, volume: Volume, subject: Subject, free: int) -> None:
        self._volume = volume
        self._subject = subject
        self._free = free
        self._path = volume.path / "registry"
        self.returned: list[Acknowledged] = []
        self.errors: list[str] = []

    def run(self) -> None:
        registry = Registry(self._path)
        registry.record_original(self._subject.original, "a test")
        self._write(registry, 1, steps=14)
        assert not self.errors, self.errors
        with self._volume.filled(self._free):
            for cycle in range(2, 12):
                self._write(registry, cycle, steps=40)
            self._read(registry)
            second = Registry(self._path)
            self._read(second)
            second.close()
            self._create()
        assert not list(self._path.rglob("*.tmp")), "a failed write left a file behind"
        assert self.errors or self._free > MIB, "the disk was never full"
        # As if nothing had been: the same object goes on.
        before = len(self.errors)
        self._write(registry, 20, steps=14)
        assert self.errors[before:] == []
        self._read(registry)
        assert lost(registry, self._subject, self.returned) == []
        registry.check_writable()
        registry.close()
        assert audited(self._path) == []
        self._reopen()
        shutil.rmtree(self._path)

    def _write(self, registry: Registry, cycle: int, *, steps: int) -> None:
        writer = Writer(registry, self._subject, 0, first_cycle=cycle * 100)
        try:
            for done in writer.steps():
                self.returned.append(done)
                steps -= 1
                if not steps:
                    return
        except RegistryError as error:
            self.errors.append(str(error))

    def _read(self, registry: Registry) -> None:
        reader = Reader(registry, self._subject, self._free)
        for kind in reader.steps():
            if kind == "events":  # the last of a round
                return

    def _create(self) -> None:
        new = Registry(self._volume.path / "new")
        try:
            new.check_writable()
        except RegistryError as error:
            self.errors.append(str(error))
        new.close()
        # Where the log could not be copied into the database at the end, it stays beside it.
        ours = {"asmevo.db", "asmevo.db-wal", "asmevo.db-shm"}
        left = [p.name for p in new.path.rglob("*") if p.is_file() and p.name not in ours]
        assert left == [], f"creating a registry left {left}"
        shutil.rmtree(new.path, ignore_errors=True)

    def _reopen(self) -> None:
        """A registry that nobody has open needs room for SQLite's index of the log."""
        with self._volume.filled(0):
            registry = Registry(self._path)
            try:
                self._read(registry)
            except RegistryError as error:
                self.errors.append(str(error))
            registry.close()
        registry = Registry(self._path)
        assert lost(registry, self._subject, self.returned) == []
        registry.close()


def full(kind: str, subject: Subject, levels: int) -> dict[str, Any]:
    """Let the disk be full at as many amounts of free space, from none up."""
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        volume = Volume(kind, Path(folder))
        try:
            for level in range(levels):
                # Fine steps at first, where a single page of the log or one blob has room; then up
                # to where the log (4 MiB) is copied into the database and that has to grow.
                pages = level + int((level * 60 / levels / 6) ** 3.3)
                case = FullDisk(volume, subject, 4096 * pages)
                case.run()
                for error in case.errors:
                    counts[error] = counts.get(error, 0) + 1
        finally:
            volume.abandon()
    return {"errors": counts}


def create(kind: str, step: int) -> dict[str, Any]:
    """Make a registry where every ``step`` pages more are left; it is whole, or is not there."""
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        volume = Volume(kind, Path(folder))
        path = volume.path / "registry"
        try:
            # From none to more than a registry takes.
            for pages in range(0, 240, step):
                with volume.filled(4096 * pages):
                    try:
                        _opened(path)
                    except RegistryError as error:
                        counts[str(error)] = counts.get(str(error), 0) + 1
                _opened(path)
                assert audited(path) == [], pages
                shutil.rmtree(path)
        finally:
            volume.abandon()
    return {"errors": counts}


def _opened(path: Path) -> None:
    registry = Registry(path)
    try:
        registry.check_writable()
    finally:
        registry.close()


def power(subject: Subject, failures: int, seed: int) -> dict[str, Any]:
    """Cut the power at random moments; whatever had returned must be there afterwards."""
    chance = random.Random(seed)
    writes, errors = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        volume = Volume("ext4", Path(folder))
        try:
            for number in range(failures):
                returned, failed = _until_power_fails(volume, subject, number, chance)
                errors += failed
                writes += len(returned)
                registry = Registry(volume.path / "registry")
                missing = lost(registry, subject, _durable(returned))
                assert missing == [], missing
                registry.check_writable()
                registry.close()
                assert audited(volume.path / "registry") == []
                if number % 8 == 7:
                    shutil.rmtree(volume.path / "registry")
        finally:
            volume.abandon()
    return {"failures": failures, "writes": writes, "errors": errors}


def _until_power_fails(volume: Volume, subject: Subject, number: int,
                       chance: random.Random) -> tuple[list[Acknowledged], bool]:
    """The writes that returned before, and whether one was told of the failure."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            os.close(read_end)
            registry = Registry(volume.path / "registry")
            registry.record_original(subject.original, "a test")
            for done in Writer(registry, subject, 0, first_cycle=100 * number).steps():
                os.write(write_end, f"{done.what}\t{done.key}\n".encode())
        except RegistryError:
            status = 3
        finally:
            os._exit(status)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        lines = [pipe.readline() for _ in range(chance.randrange(1, 16))]
        time.sleep(chance.uniform(0, 0.03))
        # Only what was heard of before counts. An fsync that is under way may still return without
        # an error: ext4 tells nobody of an extent that it cannot convert after its shutdown
        # (fs/ext4/page-io.c, ext4_end_io_end).
        os.set_blocking(read_end, False)
        lines += pipe.readlines()
        volume.cut_power()
        time.sleep(0.02)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 3, status
    volume.unmount()
    volume.mount()
    return ([Acknowledged(*line.decode().rstrip("\n").split("\t")) for line in lines
             if line.endswith(b"\n")], not os.WIFSIGNALED(status))


def _durable(returned: list[Acknowledged]) -> list[Acknowledged]:
    """Events alone become durable with the next write (`Registry.record_search`)."""
    while returned and returned[-1].what == "events":
        returned = returned[:-1]
    return returned


def main() -> None:
    """Run one of the commands."""
    command, *arguments = sys.argv[1:]
    if command == "full":
        kind, original, levels = arguments
        done = full(kind, Subject.of(Path(original).read_bytes()), int(levels))
    elif command == "create":
        kind, step = arguments
        done = create(kind, int(step))
    else:
        original, failures, seed = arguments
        done = power(Subject.of(Path(original).read_bytes()), int(failures), int(seed))
    json.dump(done, sys.stdout)


if __name__ == "__main__":
    main()
