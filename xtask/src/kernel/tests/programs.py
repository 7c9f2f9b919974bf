"""Programs change directories that the server on the same kernel has delegated to clients
(`dir_delegations=local`, Linux 6.19): run by guest 1, which is the server, see stage.py. Guest 2
holds the directories over NFSv4.2; guest 3 has mounts over NFSv4.2 and NFSv3."""
import os
import random
import signal
import subprocess
import time

from stage import clients, play, server

program, holder, other = clients
DATA, STATE = "/tmp/data", "/tmp/state"
# Seconds that the kernel lets a program wait at most; the server revokes five seconds earlier.
BREAK_SECONDS = 9
# Seconds of a lease: long enough that no holder loses its lease in a round.
LEASE_SECONDS = 30
LOOK = ("GETATTR", "LOOKUP", "ACCESS", "READDIR")
NAMES = [f"n{number}" for number in range(6)]
SEED = 16
ROUNDS = 60


def start():
    """The server of this trial, in this guest; its files are in memory."""
    for folder in (DATA, STATE):
        os.mkdir(folder)
    with open("/proc/sys/fs/lease-break-time", "w") as file:
        file.write(str(BREAK_SECONDS))
    with open("/tmp/exports", "w") as file:
        rules = "rw,no_root_squash,insecure,dir_delegations=local:always:recall-only"
        print(f"{DATA} 10.77.0.0/24({rules})", file=file)
    words = [os.environ["PROGRAM"], "serve", "--exports", "/tmp/exports", "--state-dir", STATE]
    words += ["--no-register", "--lease-seconds", str(LEASE_SECONDS)]
    log = open("/mnt/job/server.log", "w")
    child = subprocess.Popen(words, stderr=log)
    end = time.monotonic() + 60
    while "serving" not in open("/mnt/job/server.log").read():
        assert child.poll() is None and time.monotonic() < end, "the server does not serve"
        time.sleep(0.05)
    return child


def mount(client, folder, options):
    client.run(f"mount -t nfs -o {options},hard guest-1:{DATA} /mnt/{folder}")


def clients_mount():
    # Without a delegation each look asks the server, so that only a delegation can be stale.
    for client in (holder, other):
        mount(client, "nfs", "vers=4.2,actimeo=0")
    three = "vers=3,nolock,proto=tcp,port=2049,mountport=2049,mountproto=tcp"
    mount(other, "three", f"{three},actimeo=0,lookupcache=none")


def looks(name):
    """The names that the holder finds: by a listing, and one by one."""
    tests = "; ".join(f"test ! -e {each} -a ! -h {each} || echo {each}" for each in NAMES)
    said = holder.run(f"cd /mnt/nfs/{name}; ls; echo --; {tests}")
    listed, found = said.split("--")
    assert set(listed.split()) == set(found.split()), f"{name}: {listed!r}, but {found!r}"
    return set(listed.split())


def calls_of_a_look(name):
    """The attributes of the files are not delegated, and so they are not looked at."""
    before = holder.calls(*LOOK)
    holder.run(f"ls /mnt/nfs/{name}; test ! -e /mnt/nfs/{name}/missing")
    return holder.calls(*LOOK) - before


def have_delegated(name):
    end = time.monotonic() + 30
    while calls_of_a_look(name) > 0:
        assert time.monotonic() < end, f"{name} is not delegated"


def change(run, folder, dice, there):
    """Makes, removes or renames a name; returns the names afterwards. A program that removes a
    file does not wait until the file's own delegation is returned; a fifo has none."""
    name, new = dice.sample(NAMES, 2)
    if name not in there:
        run(f"mkfifo {folder}/{name}")
        return there | {name}
    if dice.random() < 0.5:
        run(f"rm {folder}/{name}")
        return there - {name}
    run(f"mv {folder}/{name} {folder}/{new}")
    return there - {name} | {new}


def nobody_sees_an_old_name():
    """After each change by a program, or by a client, the holder sees just what is there."""
    os.mkdir(f"{DATA}/hunt")
    ways = [(program.run, DATA), (other.run, "/mnt/nfs"), (other.run, "/mnt/three")]
    dice, there = random.Random(SEED), set()
    waits = {way: [] for way in range(len(ways))}
    for _ in range(ROUNDS):
        have_delegated("hunt")
        returned = holder.calls("DELEGRETURN")
        way = dice.randrange(len(ways))
        run, top = ways[way]
        start = time.monotonic()
        there = change(run, f"{top}/hunt", dice, there)
        waits[way].append(time.monotonic() - start)
        seen, true = looks("hunt"), set(os.listdir(f"{DATA}/hunt"))
        assert seen == there == true, f"way {way}: {seen}, not {there}; there are {true}"
        assert holder.calls("DELEGRETURN") > returned, f"no recall, way {way}"
    for way, seconds in waits.items():
        assert len(seconds) > ROUNDS / 10, f"way {way} was not tried"
        print(f"way {way}: {len(seconds)} changes, at most {max(seconds):.2f} s", flush=True)
        assert max(seconds) < BREAK_SECONDS - 5, f"way {way} waited for a holder that answers"


def own_changes_of_the_holder_recall_nothing():
    os.mkdir(f"{DATA}/own")
    have_delegated("own")
    returned = holder.calls("DELEGRETURN")
    # Links and folders have no delegations of their own that their removal would return.
    holder.run("cd /mnt/nfs/own; ln -s to n0; mkdir n1; mv n0 n2; rmdir n1")
    assert looks("own") == {"n2"} == set(os.listdir(f"{DATA}/own"))
    assert holder.calls("DELEGRETURN") == returned, "its change recalled"


def a_program_does_not_wait_for_ever():
    """A holder that is gone delays a program until the server revokes the delegation."""
    os.mkdir(f"{DATA}/lost")
    have_delegated("lost")
    server.lose(2)
    start = time.monotonic()
    program.run(f": > {DATA}/lost/new")
    took = time.monotonic() - start
    assert 1 < took < BREAK_SECONDS + 2, f"{took:.1f} s"
    assert other.run("ls /mnt/three/lost").split() == ["new"]


def end():
    other.run("umount /mnt/nfs /mnt/three")
    child.send_signal(signal.SIGTERM)
    assert child.wait(30) == 0, "the server did not end well"


child = start()
play(
    clients_mount,
    own_changes_of_the_holder_recall_nothing,
    nobody_sees_an_old_name,
    a_program_does_not_wait_for_ever,
    end,
)
