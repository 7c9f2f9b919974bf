"""Writes to files that are open and locked while the heads of a cluster fail and come back."""
import fcntl
import os
import re
import subprocess
import time

from cluster import ADDRESSES, EXPORT, HEADS, TAKEOVER, start, start_all, wait_for
from stage import server

# Longest time in seconds of a call to a head that has not failed: less than the lease of the failed
# one, so that nobody has waited for that.
GOES_ON = 2.5

# Longest time in seconds of a write during a move: the time until the address is at the other host,
# and a pause of the client after DELAY.
MOVED = 10


def wait_until_over(host):
    """Waits until both heads are up, and no export is in grace."""
    end = time.monotonic() + TAKEOVER
    command = "on %s $COMITY cluster status --state-dir /srv/state" % host
    while "grace" in (told := server.ask(command)) or "21, 10.77.0.22" not in told:
        assert time.monotonic() < end, told
        time.sleep(0.2)


def say(name, text, most=TAKEOVER):
    begun = time.monotonic()
    files[name].write(text)
    files[name].flush()
    os.fsync(files[name].fileno())
    took = time.monotonic() - begun
    with open("/mnt/job/times", "a") as times:
        times.write("%s: %s: %.3f s\n" % (name, text.strip(), took))
    assert took < most, (name, text, took)


def mount(name):
    source = "%s:%s/%s" % (ADDRESSES[name], EXPORT, name)
    command = ["mount", "-t", "nfs", "-o", os.environ["OPTIONS"], source, "/run/" + name]
    subprocess.run(command, check=True)
    file = open("/run/%s/file" % name, "w")
    fcntl.lockf(file, fcntl.LOCK_EX)
    return file


def have_locked_at_the_server(name):
    """Has the server recall the delegation of the file, so that the client locks it there."""
    options = "vers=3,nolock,port=2049,mountport=2049,mountproto=tcp,proto=tcp"
    source = "%s:%s/%s" % (ADDRESSES[name], EXPORT, name)
    subprocess.run(["mount", "-t", "nfs", "-o", options, source, "/run/three"], check=True)
    subprocess.run(["cat", "/run/three/file"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["umount", "/run/three"], check=True)


def locks(host):
    """The number of ranges that clients have locked at the head of a host."""
    told = server.ask("on %s $COMITY clients --json --state-dir /srv/state" % host)
    return sum(int(count) for count in re.findall(r'"locks":(\d+)', told))


def calls():
    """How often this machine has sent calls that only a client with lost state repeats."""
    with open("/proc/self/mountstats") as stats:
        rows = [line.split() for line in stats]
    names = {"OPEN:", "OPEN_NOATTR:", "LOCK:", "EXCHANGE_ID:", "CREATE_SESSION:"}
    return {(at, row[0]): row[1] for at, row in enumerate(rows) if row and row[0] in names}


def keep_state(command, names, target):
    """Moves exports, whose files are open and locked, to a head with their addresses."""
    before = calls()
    print(server.ask(command).strip(), flush=True)
    for name in names:
        say(name, "moved to %s\n" % target, MOVED)
    assert locks(target) >= len(names)
    assert "in grace" not in server.ask(
        "on %s $COMITY cluster status --state-dir /srv/state" % target
    )
    assert calls() == before, (before, calls())


def move(name, source, target):
    command = "on %s $COMITY cluster move %s/%s --to %s --state-dir /srv/state 2>&1"
    keep_state(command % (source, EXPORT, name, HEADS[target]), [name], target)


def drain(head, names, target):
    command = "on %s $COMITY cluster drain %s --state-dir /srv/state 2>&1"
    keep_state(command % (target, HEADS[head]), names, target)


start_all("--no-register")
files = {name: mount(name) for name in ADDRESSES}
say("one", "at a\n")
say("two", "at b\n")
for name in ADDRESSES:
    have_locked_at_the_server(name)
assert locks("a") == locks("b") == 1, (locks("a"), locks("b"))

# The machine of a head fails, and the export of the other one goes on.
server.ask("on a ip link set eth0 down; kill -9 $(cat /srv/pid)")
say("two", "still at b\n", GOES_ON)
say("one", "at b\n")
assert locks("b") == 2

# It comes back, and the other head is stopped in order.
server.ask("on a ip link set eth0 up")
start("a", "--no-register")
wait_for("a", "/one: 10.77.0.22", "/two: 10.77.0.22")
# Calls go to it until it has ended, and it loses its addresses then.
GONE = "while ip address show dev eth0 | grep 10.77.0.5; do sleep 0.1; done"
server.ask("on b kill $(cat /srv/pid); " + GONE)
say("two", "at a\n")
say("one", "at a again\n")
assert locks("a") == 2

# Both exports move with their state to the head that comes back, and back again when it is drained.
start("b", "--no-register")
wait_for("a", "/one: 10.77.0.21", "/two: 10.77.0.21")
wait_until_over("a")
move("two", "a", "b")
say("one", "while the other moved\n", GOES_ON)
move("one", "a", "b")
drain("b", ["one", "two"], "a")
assert locks("a") == 2
for file in files.values():
    file.close()
