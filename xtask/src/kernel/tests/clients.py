"""Three clients of NFSv4 that want the same files: run by guest 1, see stage.py."""
import os
import time

import locking
from stage import clients, play, seconds_until, server

one, two, three = clients
# Of the server under test; see clients.rs.
LEASE = 8
VERSION = os.environ["OPTIONS"].split("vers=")[1][:3]
# Seconds until a waiter gets a free lock: 4.1 is told; 4.0 asks again after 1, 2, 4 ... seconds.
HANDED_OVER = 5 if VERSION == "4.0" else 1


def at(name):
    return f"/mnt/nfs/{name}"


def is_asked(client, path, flags):
    """Whether the server is asked when a client opens a file."""
    before = client.calls("OPEN", "OPEN_NOATTR")
    client.close(client.open(path, flags))
    return client.calls("OPEN", "OPEN_NOATTR") > before


def have_delegated(client, path, flags=os.O_RDONLY):
    """The client opens until it need not ask any more."""
    end = time.monotonic() + 5
    while is_asked(client, path, flags):
        assert time.monotonic() < end, f"no delegation of {path}"
        time.sleep(0.1)


def has_returned(client, returned):
    """A client counts a call once it has seen the reply, and others may go on before that."""
    end = time.monotonic() + 0.5
    while client.calls("DELEGRETURN") == returned and time.monotonic() < end:
        time.sleep(0.01)
    return client.calls("DELEGRETURN") > returned


def delegations():
    """One has a delegation and uses it; others who change the file take it away."""
    changes = {
        "client": lambda path: two.write(path, "changed"),
        "three": lambda path: two.write(path.replace("nfs", "three"), "changed"),
        "truncation": lambda path: two.run(f"truncate -s 7 {path}; printf changed > {path}"),
        "renaming": lambda path: two.run(f"printf changed > {path}.new; mv {path}.new {path}"),
    }
    server.local("for f in " + " ".join(changes) + "; do echo old > $f; done")
    for name, change in changes.items():
        have_delegated(one, at(name))
        assert one.read(at(name)) == "old\n"
        returned = one.calls("DELEGRETURN")
        change(at(name))
        assert has_returned(one, returned), f"{name}: not recalled"
        assert one.read(at(name)) == "changed", name


def write_delegations():
    """One may keep to itself what it writes; another sees it nevertheless."""
    path = at("written")
    one.write(path, "")
    have_delegated(one, path, os.O_RDWR)
    fd = one.open(path, os.O_RDWR)
    one.pwrite(fd, "12345")
    assert two.size(path.replace("nfs", "three")) == 5, "not asked on behalf of version 3"
    assert two.size(path) == 5, "the writer was not asked for the size"
    # Data not written back before the delegation is returned need not be seen by others.
    one.fsync(fd)
    returned = one.calls("DELEGRETURN")
    assert two.read(path) == "12345"
    assert has_returned(one, returned), "not recalled"
    # Both may write now, and do so at the server.
    other = two.open(path, os.O_RDWR)
    two.pwrite(other, "6789", 5)
    two.close(other)
    one.close(fd)
    assert one.read(path) == "123456789"


def programs():
    """A process on the server waits for what one was delegated, and sees what one has written."""
    server.local("echo old > shown; echo old > taken")
    have_delegated(one, at("shown"))
    assert one.read(at("shown")) == "old\n"
    returned = one.calls("DELEGRETURN")
    server.local("echo changed > shown")
    assert has_returned(one, returned), "not recalled"
    assert one.read(at("shown")) == "changed\n"
    have_delegated(one, at("taken"), os.O_RDWR)
    fd = one.open(at("taken"), os.O_RDWR)
    one.pwrite(fd, "new")
    # Data not written back before the delegation is returned need not be seen by others.
    one.fsync(fd)
    returned, start = one.calls("DELEGRETURN"), time.monotonic()
    assert server.local("cat taken") == "new\n"
    assert has_returned(one, returned), "not recalled"
    assert time.monotonic() - start < LEASE / 2, "it was waited for what was not given back"
    one.close(fd)


def changes():
    """A process on the server changes what one was delegated without opening it: it is told."""
    changes = {
        "moved": "mv moved away",
        "linked": "ln linked other",
        "gone": "rm gone",
        "opened_up": "chmod 666 opened_up",
    }
    server.local("for f in " + " ".join(changes) + "; do echo old > $f; chmod 644 $f; done")
    for name, change in changes.items():
        have_delegated(one, at(name))
        returned, end = one.calls("DELEGRETURN"), time.monotonic() + LEASE / 2
        server.local(change)
        while one.calls("DELEGRETURN") == returned:
            assert time.monotonic() < end, f"{name}: not recalled"
            time.sleep(0.05)
    assert [one.read(at(name)) for name in ("away", "other", "opened_up")] == ["old\n"] * 3
    assert one.mode(at("opened_up")) == 0o666


def locks():
    locking.ranges(one, two, at("ranges"))


def waiting():
    locking.handing_over(clients, at("waiting"), HANDED_OVER)


def restart():
    """The server dies: what clients held is theirs again, before anybody else can have it."""
    server.local("for f in kept locked opened alone; do echo old > $f; done")
    have_delegated(one, at("kept"))
    kept = one.open(at("kept"), os.O_RDONLY)
    have_delegated(one, at("alone"), os.O_RDWR)
    # The server knows nothing of this lock: it comes with the delegation.
    alone = one.open(at("alone"), os.O_RDWR)
    one.lock(alone)
    locked = one.open(at("locked"), os.O_RDWR)
    one.lock(locked, "write", 0, 100)
    opened = two.open(at("opened"), os.O_RDWR)
    two.lock(opened, "read", 5, 1)
    two.pwrite(opened, "begun")
    others = [three.open(at(name), os.O_RDWR) for name in ("locked", "opened")]
    returned = one.calls("DELEGRETURN")
    server.restart()
    others.append(three.open(at("alone"), os.O_RDWR))
    thefts = [three.begin("try_lock", fd, "write", 0, 50) for fd in others]
    assert not any(theft.result(60) for theft in thefts), "stolen in grace"
    one.pwrite(locked, "work")
    one.fsync(locked)
    two.pwrite(opened, " and ended", 5)
    two.close(opened)
    assert three.read(at("opened")) == "begun and ended"
    # Linux 7.2 returns by itself a delegation that it has not used for a lease.
    is_kept = not is_asked(one, at("kept"), os.O_RDONLY)
    assert is_kept or one.calls("DELEGRETURN") > returned, "the delegation is lost"
    returned = one.calls("DELEGRETURN")
    two.write(at("kept"), "changed")
    assert has_returned(one, returned), "not recalled"
    one.close(kept)
    assert one.read(at("kept")) == "changed"
    waits = three.begin("lock", others[0], "write", 0, 100)
    time.sleep(0.5)
    assert not waits.done(), "the reclaimed lock holds nobody back"
    one.unlock(locked, 0, 100)
    seconds_until(waits, HANDED_OVER)
    for fd in (alone, locked):
        one.close(fd)
    for fd in others:
        three.close(fd)


def loss():
    """A client is gone: what it held goes to others when its lease has ended, not before."""
    server.local("echo old > lost; echo old > locked")
    have_delegated(two, at("lost"))
    fds = [client.open(at("locked"), os.O_RDWR) for client in (two, three)]
    two.lock(fds[0])
    server.lose(2)
    waits = three.begin("lock", fds[1])
    writes = one.begin("write", at("lost"), "changed")
    seconds = seconds_until(waits, LEASE + (8 if VERSION == "4.0" else 3))
    assert seconds > LEASE - 2, f"the lock of a client with a lease was lost after {seconds} s"
    seconds_until(writes, 2 * LEASE)


play(delegations, write_delegations, programs, changes, locks, waiting, restart, loss)
