# Holds a file open and locked while its export moves to another server and back.

import fcntl
import os
import subprocess
import sys
import time

from stage import server

NFS = "/mnt/nfs"


def address():
    """The address of the server that the client uses."""
    with open("/proc/mounts") as mounts:
        line = next(line for line in mounts if line.split()[1] == NFS)
    return dict(part.partition("=")[::2] for part in line.split()[3].split(","))["addr"]


def is_locked(path=NFS + "/file"):
    """Whether another process finds the file locked."""
    program = "import fcntl; fcntl.lockf(open(%r, 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)" % path
    done = subprocess.run(["/usr/bin/python3", "-c", program], capture_output=True)
    return done.returncode != 0 and b"BlockingIOError" in done.stderr


def say(text):
    begun = time.monotonic()
    file.write(text)
    file.flush()
    os.fsync(file.fileno())
    with open("/mnt/job/times", "a") as times:
        times.write("%s: %.3f s\n" % (text.strip(), time.monotonic() - begun))


def mount_other():
    """Mounts what only the other server exports; returns a file there, open and locked."""
    folder = server.admin("echo $OTHER").strip()
    os.mkdir("/run/other")
    options = os.environ["OPTIONS"]
    subprocess.run(
        ["mount", "-t", "nfs", "-o", options, "10.77.0.2:" + folder, "/run/other"], check=True
    )
    file = open("/run/other/file", "w")
    fcntl.lockf(file, fcntl.LOCK_EX)
    return file


other = mount_other() if sys.argv[1:] == ["both"] else None
file = open(NFS + "/file", "w")
fcntl.lockf(file, fcntl.LOCK_EX)
say("at a\n")
assert address() == "10.77.0.1", address()
print(server.admin("$COMITY migrate $EXPORT --to b --state-dir $STATE"))
say("at b\n")
assert address() == "10.77.0.2", address()
assert is_locked()
os.stat(NFS)
print(server.admin("$COMITY migrate $EXPORT --to a --state-dir $STATE-b"))
say("at a again\n")
assert address() == "10.77.0.1", address()
assert is_locked()
fcntl.lockf(file, fcntl.LOCK_UN)
assert not is_locked()
file.close()
if other:
    assert is_locked("/run/other/file")
    other.write("here all the time\n")
    other.close()
    subprocess.run(["umount", "/run/other"], check=True)
