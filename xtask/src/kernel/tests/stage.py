"""The stage of a test that guest 1 directs: all guests as `clients`, and this side as `server`."""
import concurrent.futures
import itertools
import json
import os
import socket
import threading
import time

import hands

# Longest time for anything, in seconds: a slow machine, a grace period, a lost lease.
PATIENCE = 60


class Client:
    """A guest: `client.lock(fd)` has it lock, `client.begin("lock", fd)` does not wait for it."""

    def __init__(self, stream):
        self.words, self.said = stream.makefile("w"), stream.makefile("r")
        self.numbers, self.waiting = itertools.count(), {}
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.said:
            told = json.loads(line)
            future = self.waiting.pop(told["number"])
            if "failed" in told:
                future.set_exception(OSError(told["failed"]))
            else:
                future.set_result(told["done"])

    def begin(self, name, *arguments):
        number, future = next(self.numbers), concurrent.futures.Future()
        self.waiting[number] = future
        print(json.dumps([number, name, arguments]), file=self.words, flush=True)
        return future

    def __getattr__(self, name):
        return lambda *arguments: self.begin(name, *arguments).result(PATIENCE)


class Server:
    """The server's side of a trial."""

    def ask(self, line):
        with open("/mnt/job/ask.new", "w") as file:
            file.write(line)
        os.rename("/mnt/job/ask.new", "/mnt/job/ask")
        end = time.monotonic() + PATIENCE
        while not os.path.exists("/mnt/job/told"):
            assert time.monotonic() < end, f"nobody answers `{line}`"
            time.sleep(0.01)
        with open("/mnt/job/told") as file:
            told = file.read()
        os.unlink("/mnt/job/told")
        return told

    def restart(self):
        """It is killed with SIGKILL, and starts again."""
        self.ask("restart")

    def restart_other(self):
        """The other server is killed with SIGKILL, and starts again."""
        self.ask("restart-other")

    def admin(self, script):
        """Commands of `comity` on the server."""
        return self.ask(f"admin {script}")

    def lose(self, number):
        """A guest is gone without goodbye."""
        self.ask(f"lose {number}")

    def local(self, script):
        """A process on the server works in the exported folder."""
        return self.ask(f"local {script}")


def gather(count):
    """All guests, the first served by a thread here."""
    here, there = socket.socketpair()
    threading.Thread(target=hands.serve, args=(there,), daemon=True).start()
    streams = {1: here}
    with socket.create_server((os.environ["ADDRESS"], 7777)) as door:
        while len(streams) < count:
            stream = door.accept()[0]
            # A byte at a time: nothing that follows is read with it.
            number = b"".join(iter(lambda: stream.recv(1), b"\n"))
            streams[int(number)] = stream
    return [Client(streams[number]) for number in sorted(streams)]


def play(*parts):
    """Acts one part after the other, and says which it is in."""
    for part in parts:
        start = time.monotonic()
        part()
        print(f"{part.__name__}: {time.monotonic() - start:.1f} s", flush=True)


def seconds_until(future, most):
    """Returns how long it takes, which must not be longer than `most` seconds."""
    start = time.monotonic()
    try:
        future.result(most)
    except concurrent.futures.TimeoutError:
        raise AssertionError(f"not done after {most} s") from None
    return time.monotonic() - start


server = Server()
clients = gather(int(os.environ["GUESTS"]))
