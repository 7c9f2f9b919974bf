"""Copies that the server makes (NFSv4.2): whole, interrupted, and of files that share no blocks.

Each name that passes goes to /mnt/job/passed.
"""
import errno
import fcntl
import os
import re
import signal
import subprocess
import time

PASSED = open("/mnt/job/passed", "a", buffering=1)
FICLONE = 0x40049409
LENGTH = 64 << 20
# More than the server copies before it answers.
LONG = 400 << 20
# As long as a copy of it can be interrupted.
LONGEST = 4 << 30


def operations(name):
    """Returns how often the kernel has sent an operation."""
    with open("/proc/self/mountstats") as file:
        found = re.search(rf"^\s*{name}: (\d+) ", file.read(), re.MULTILINE)
    return int(found[1])


def stored(file):
    """Writes the file's data to the server, so that the client has none left to send."""
    file.flush()
    os.fsync(file.fileno())


def copied(source, target, length):
    """Copies by one system call after the other, and tells how many COPYs that took."""
    before = {name: operations(name) for name in ("COPY", "WRITE")}
    done = 0
    with open(source, "rb") as one, open(target, "wb") as other:
        while done < length:
            count = os.copy_file_range(one.fileno(), other.fileno(), length - done)
            assert count > 0, f"{done} of {length} bytes"
            done += count
    assert operations("WRITE") == before["WRITE"], "the client has written itself"
    return operations("COPY") - before["COPY"]


def check_copy():
    with open("source", "wb") as file:
        file.write(os.urandom(LENGTH))
        stored(file)
    assert copied("source", "target", LENGTH) == 1
    assert subprocess.run(["cmp", "source", "target"]).returncode == 0


def check_cp():
    subprocess.run(["cp", "--reflink=never", "source", "by-cp"], check=True)
    assert subprocess.run(["cmp", "source", "by-cp"]).returncode == 0


def check_long():
    """A long copy goes on after its answer, and is one COPY; a shorter one ends with its answer."""
    with open("long", "wb") as file:
        file.truncate(LONG)
        file.seek(LONG - 4)
        file.write(b"last")
        stored(file)
    count = copied("long", "long-copy", LONG)
    assert count == 1, f"{count} COPYs"
    with open("long-copy", "rb") as file:
        file.seek(LONG - 8)
        assert file.read() == b"\0\0\0\0last"


def check_cancel():
    """A program that is killed in the middle of a copy ends at once, and the copy with it."""
    with open("longest", "wb") as file:
        file.truncate(LONGEST)
    before = operations("OFFLOAD_CANCEL")
    child = os.fork()
    if child == 0:
        copied("longest", "part", LONGEST)
        os._exit(0)
    time.sleep(0.5)
    os.kill(child, signal.SIGKILL)
    begun = time.monotonic()
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status), f"it has ended before: {status}"
    took = time.monotonic() - begun
    assert took < 5, f"{took} seconds"
    time.sleep(1)
    assert operations("OFFLOAD_CANCEL") > before
    sizes = [size_of("part") for _ in range(2)]
    assert sizes[0] == sizes[1] < LONGEST, sizes
    with open("part", "r+b") as file:
        file.truncate(3)
    time.sleep(1)
    assert size_of("part") == 3
    os.unlink("longest")


def size_of(name):
    """Returns the size that the server tells now."""
    time.sleep(0.5)
    file = os.open(name, os.O_RDONLY)
    try:
        return os.fstat(file).st_size
    finally:
        os.close(file)


def check_clone():
    with open("source", "rb") as one, open("clone", "wb") as other:
        try:
            fcntl.ioctl(other, FICLONE, one.fileno())
        except OSError as error:
            assert error.errno == errno.EOPNOTSUPP, error
            return
    assert subprocess.run(["cmp", "source", "clone"]).returncode == 0


for name, check in [(name, it) for name, it in globals().items() if name.startswith("check_")]:
    check()
    PASSED.write(f"{name}\n")
