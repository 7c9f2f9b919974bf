"""Three hosts that lock over NFSv3 (NLM, NSM), the last two also over 4.1: see stage.py."""
import os
import time

import locking
from stage import clients, play, seconds_until, server

one, two, three = clients
RDWR = locking.RDWR


def ranges():
    locking.ranges(one, two, "/mnt/nfs/ranges")


def granted():
    """A host that waits is called back."""
    locking.handing_over(clients, "/mnt/nfs/granted", 1)


def cancelled():
    """A program that does not wait any more is in nobody's way."""
    path = "/mnt/nfs/cancelled"
    fds = [one.open(path, RDWR), three.open(path, RDWR)]
    one.lock(fds[0])
    two.run(f"! timeout 1 flock {path} true")
    one.close(fds[0])
    # A client that a signal has ended does not wait until the server has read that.
    end = time.monotonic() + 5
    while not three.try_lock(fds[1]):
        assert time.monotonic() < end, "whoever has cancelled has the lock"
        time.sleep(0.05)
    three.close(fds[1])


def versions():
    """Locks of NFSv3 and of 4.1 exclude each other, and who waits for the other's is told."""
    old, new = one.open("/mnt/nfs/versions", RDWR), two.open("/mnt/four/versions", RDWR)
    one.lock(old, "write", 0, 10)
    assert not two.try_lock(new, "read", 9, 1)
    assert two.try_lock(new, "write", 10, 10)
    assert not one.try_lock(old, "read", 10, 1)
    waits = two.begin("lock", new, "write", 0, 5)
    one.unlock(old, 0, 10)
    seconds_until(waits, 1)
    waits = one.begin("lock", old, "write", 0, 0)
    two.close(new)
    seconds_until(waits, 1)
    one.close(old)


def restart():
    """The server dies: hosts are told when it is back, and have their locks before others do."""
    path = "/mnt/nfs/restart"
    fds = [client.open(path, RDWR) for client in clients]
    four = three.open("/mnt/four/restart", os.O_RDWR)
    one.lock(fds[0], "write", 0, 10)
    two.lock(fds[1], "read", 20, 1)
    server.restart()
    thefts = [three.begin("try_lock", fd, "write", 0, 30) for fd in (four, fds[2])]
    assert not any(theft.result(60) for theft in thefts), "stolen in grace"
    one.pwrite(fds[0], "work")
    one.close(fds[0])
    assert not three.try_lock(fds[2], "write", 20, 1), "a read lock is lost"
    assert three.try_lock(fds[2], "write", 0, 10), "the reclaimed lock is not given back"
    two.close(fds[1])
    three.close(fds[2])
    three.close(four)


def reboot():
    """A host that starts anew tells so, and what it held is free."""
    path = "/mnt/nfs/reboot"
    fds = [client.open(path, RDWR) for client in clients]
    two.lock(fds[1])
    waits = one.begin("lock", fds[0])
    two.run("sm-notify -f")
    seconds_until(waits, 5)
    for client, fd in zip(clients, fds):
        client.close(fd)


play(ranges, granted, cancelled, versions, restart, reboot)
