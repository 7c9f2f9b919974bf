"""Two hosts lock over NFSv3 in an export of a cluster whose head fails: see stage.py."""
import locking
from cluster import ADDRESSES, EXPORT, start_all, wait_for
from stage import clients, play, server

one, two = clients
start_all("--portmap", "--lease-seconds", "20")
for client in clients:
    place = "SERVER=%s EXPORT=%s/one" % (ADDRESSES["one"], EXPORT)
    client.run(". /mnt/job/guest.sh; %s; mount_with_locks" % place)
fds = [client.open("/mnt/nfs/file", locking.RDWR) for client in clients]


def lock():
    """The second host cannot have the lock of the first one."""
    one.lock(fds[0], "write", 0, 10)
    assert not two.try_lock(fds[1], "write", 9, 1), "the lock is not there"


def failure():
    """The machine of the head fails. The next head notifies the hosts, and they reclaim."""
    server.ask("on a ip link set eth0 down; kill -9 $(cat /srv/pid)")
    wait_for("b", "/one: 10.77.0.22")
    one.pwrite(fds[0], "work")
    one.fsync(fds[0])
    # A request waits until the grace period has ended.
    assert not two.try_lock(fds[1], "write", 9, 1), "the lock is lost"


def release():
    """What was reclaimed is given back."""
    one.close(fds[0])
    assert two.try_lock(fds[1], "write", 0, 10), "the reclaimed lock is not given back"
    two.close(fds[1])


play(lock, failure, release)
for client in clients:
    client.run("umount /mnt/nfs")
