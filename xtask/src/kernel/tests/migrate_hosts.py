"""Two hosts lock over NFSv3 in an export that moves; then both servers restart: see stage.py."""
import locking
from stage import clients, play, server

one, two = clients
fds = [client.open("/mnt/nfs/moved", locking.RDWR) for client in clients]


def is_held():
    """The first host has its lock, also for the server."""
    assert not two.try_lock(fds[1], "write", 9, 1), "the lock is lost"
    one.pwrite(fds[0], "work")
    one.fsync(fds[0])


def move():
    """A lock goes with the export."""
    one.lock(fds[0], "write", 0, 10)
    server.admin("$COMITY migrate $EXPORT --to b --proxy-for 600 --state-dir $STATE")
    is_held()


def old_restart():
    """The server that forwards dies: hosts reclaim what the other one still has."""
    server.restart()
    is_held()


def other_restart():
    """The server that has the locks dies: the one that forwards notifies the hosts."""
    server.restart_other()
    is_held()


def release():
    """What was reclaimed is given back."""
    one.close(fds[0])
    assert two.try_lock(fds[1], "write", 0, 10), "the reclaimed lock is not given back"
    two.close(fds[1])


play(move, old_restart, other_restart, release)
