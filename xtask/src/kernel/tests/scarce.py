"""A client of a server that may remember little: see scarce.rs, and stage.py."""
import concurrent.futures
import json
import os
import time
import urllib.request

from stage import clients, play, server

# The others only have their part of the memory for replies.
one = clients[0]
# Limits of the server, and the numbers from which it recalls some.
DELEGATIONS, NEAR = 16, 14
REPLY_BYTES = 600000
# Files in use at once, and the records written to each.
FILES, RECORDS = 40, 6
HELD = "/mnt/nfs/held"


def page():
    """All that the server counts."""
    with urllib.request.urlopen(f"http://{os.environ['SERVER']}:9100/metrics") as text:
        lines = text.read().decode().splitlines()
    told = dict(line.split() for line in lines if line.count(" ") == 1)
    return {name: int(value) for name, value in told.items() if "{" not in name}


def number(name):
    return page()[f"comity_{name}"]


def shown(*words):
    """Returns the answer of `comity clients`."""
    state = os.path.join(os.path.dirname(os.environ["EXPORT"]), "server/state")
    words = " ".join([os.environ["PROGRAM"], "clients", *words, "--json --state-dir", state])
    return json.loads(server.local(words))


def wait_until(what, holds):
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end, f"waited in vain: {what}; {page()}, {slots()} slots"
        time.sleep(0.1)


def first():
    """The client that works."""
    (client,) = (client for client in shown() if client["address"] == os.environ["ADDRESS"])
    return client


def slots():
    """Slots of its only session."""
    (session,) = shown(first()["client"])["sessions"]
    return session["slots"]


def is_asked(path, flags):
    """Whether the server is asked when the client opens a file."""
    before = one.calls("OPEN", "OPEN_NOATTR")
    one.close(one.open(path, flags))
    return one.calls("OPEN", "OPEN_NOATTR") > before


def work(file):
    """Writes records, each on the disk before the next, and reads them again."""
    fd = one.open(f"/mnt/nfs/work-{file}", os.O_RDWR | os.O_CREAT)
    for at in range(RECORDS):
        one.pwrite(fd, f"{file:07} {at:07}\n", at * 16)
        one.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    whole = "".join(f"{file:07} {at:07}\n" for at in range(RECORDS))
    assert one.pread(fd) == whole, f"file {file}"
    one.close(fd)


def slots_are_given_back():
    """By who has most of them, while there is work for all."""
    with concurrent.futures.ThreadPoolExecutor(FILES) as workers:
        works = workers.map(work, range(FILES))
        wait_until("slots to go", lambda: number("slot_recalls_heeded_total") > 0)
        list(works)
    assert number("reply_cache_bytes") <= REPLY_BYTES
    assert 4 <= slots() <= 64, slots()


def delegations_are_given_back():
    """Files that were looked at are asked back, until there is room for others again."""
    server.local(f"for i in $(seq {3 * DELEGATIONS}); do echo old > looked-at-$i; done")
    before = number("recalls_any_total")
    returned = one.calls("DELEGRETURN")
    for file in range(1, 3 * DELEGATIONS + 1):
        assert one.read(f"/mnt/nfs/looked-at-{file}") == "old\n"
        assert number("delegations") <= DELEGATIONS
    wait_until("the question", lambda: number("recalls_any_total") > before)
    # Linux gives back all that it does not use, and may have been granted more by then: asked
    # while it reads the last files, it is left with as many as it is not asked for.
    wait_until("room", lambda: number("delegations") < NEAR)
    wait_until("something given back", lambda: one.calls("DELEGRETURN") > returned)
    client = first()
    assert client["delegations"] < NEAR, client
    path = f"/mnt/nfs/looked-at-{3 * DELEGATIONS}"
    wait_until("another delegation", lambda: not is_asked(path, os.O_RDONLY))
    assert one.read(path) == "old\n"


def nothing_was_taken():
    """Open and locked files still are, and no delegation was taken by force or one by one."""
    totals = ("recalls_sent_total", "recalls_timed_out_total", "delegations_revoked_total")
    assert [number(name) for name in totals] == [0, 0, 0], [number(name) for name in totals]
    one.pwrite(held, "and to the end", 6)
    one.fsync(held)
    take = "import fcntl; fcntl.lockf(open('held', 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    told = server.local(f'python3 -c "{take}" 2> /dev/null && echo taken || echo denied')
    assert told == "denied\n", f"the lock is {told}"
    one.unlock(held)
    one.close(held)
    assert one.read(HELD) == "begun and to the end"


one.write(HELD, "begun ")
held = one.open(HELD, os.O_RDWR)
one.lock(held)
play(slots_are_given_back, delegations_are_given_back, nothing_was_taken)
