"""Work that a guest does when the first guest asks for it."""
import fcntl
import json
import os
import socket
import stat
import struct
import subprocess
import threading

KINDS = {"read": fcntl.F_RDLCK, "write": fcntl.F_WRLCK, "none": fcntl.F_UNLCK}


class Hands:
    """Each method is something a client can do. Locks belong to an open file, not to a process:
    other work of the same guest neither shares nor drops them."""

    def open(self, path, flags):
        return os.open(path, flags, 0o644)

    def close(self, fd):
        os.close(fd)

    def _lock(self, command, fd, kind, start, length):
        flock = struct.pack("hhqqi4x", KINDS[kind], os.SEEK_SET, start, length, 0)
        return struct.unpack("hhqqi4x", fcntl.fcntl(fd, command, flock))

    def lock(self, fd, kind="write", start=0, length=0):
        """Waits for it."""
        self._lock(fcntl.F_OFD_SETLKW, fd, kind, start, length)

    def try_lock(self, fd, kind="write", start=0, length=0):
        """Whether it was to be had at once."""
        try:
            self._lock(fcntl.F_OFD_SETLK, fd, kind, start, length)
            return True
        except BlockingIOError:
            return False

    def unlock(self, fd, start=0, length=0):
        self._lock(fcntl.F_OFD_SETLK, fd, "none", start, length)

    def conflict(self, fd, kind="write", start=0, length=0):
        """Start and length of a lock that stands in the way, if one does."""
        found = self._lock(fcntl.F_OFD_GETLK, fd, kind, start, length)
        return None if found[0] == fcntl.F_UNLCK else [found[2], found[3]]

    def pread(self, fd, length=4096, offset=0):
        return os.pread(fd, length, offset).decode()

    def pwrite(self, fd, text, offset=0):
        os.pwrite(fd, text.encode(), offset)

    def fsync(self, fd):
        os.fsync(fd)

    def read(self, path):
        with open(path) as file:
            return file.read()

    def write(self, path, text):
        with open(path, "w") as file:
            file.write(text)

    def size(self, path):
        return os.stat(path).st_size

    def mode(self, path):
        return stat.S_IMODE(os.stat(path).st_mode)

    def run(self, script):
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
        assert done.returncode == 0, f"{script}: {done.stderr}"
        return done.stdout

    def calls(self, *names, mount="/mnt/nfs"):
        """Returns how many calls of these names the kernel has sent for a mount."""
        with open("/proc/self/mountstats") as file:
            devices = file.read().split("\ndevice ")
        lines = next(d for d in devices if f" mounted on {mount} " in d).split("\n")
        fields = [line.split() for line in lines]
        return sum(int(f[1]) for f in fields if f and f[0] in [f"{name}:" for name in names])


def serve(stream):
    """Does what is asked, each in a thread of its own: one may wait for a lock meanwhile."""
    hands, saying = Hands(), threading.Lock()
    words, replies = stream.makefile("r"), stream.makefile("w")

    def do(number, name, arguments):
        try:
            told = {"done": getattr(hands, name)(*arguments)}
        except Exception as error:
            told = {"failed": f"{type(error).__name__}: {error}"}
        with saying:
            print(json.dumps({"number": number} | told), file=replies, flush=True)

    for line in words:
        threading.Thread(target=do, args=json.loads(line), daemon=True).start()


if __name__ == "__main__":
    for _ in range(600):
        try:
            FIRST = socket.create_connection(("10.77.0.11", 7777))
            break
        except OSError:
            threading.Event().wait(0.1)
    with FIRST:
        FIRST.sendall(f"{os.environ['NUMBER']}\n".encode())
        serve(FIRST)
