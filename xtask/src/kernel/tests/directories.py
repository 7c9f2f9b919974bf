"""Two clients of NFSv4.2, one of them of NFSv3 as well, use delegated directories: run by guest 1, see stage.py."""
import time

from stage import clients, play, server

one, two = clients
ASKING = ("GETATTR", "LOOKUP", "ACCESS", "READDIR")
FOLDER = "/mnt/nfs/d"
# Longer than attributes are good without a delegation (actimeo).
OLD = 1.2


def looks():
    """The names that client one lists; and it finds that a name is missing."""
    names = one.run(f"ls {FOLDER}; test ! -e {FOLDER}/missing").split()
    return set(names)


def calls_of_a_look():
    before = one.calls(*ASKING)
    looks()
    return one.calls(*ASKING) - before


def is_delegated():
    """Client one looks until it need not ask any more; rests after recalls are over then."""
    end = time.monotonic() + 50
    while calls_of_a_look() > 0:
        assert time.monotonic() < end, "the directory is not delegated"
        time.sleep(OLD)
    time.sleep(OLD)
    assert calls_of_a_look() == 0, "old attributes are asked for"


def listing_costs_no_call():
    two.run(f"mkdir {FOLDER}; for n in $(seq 50); do : > {FOLDER}/n$n; done")
    is_delegated()
    held = server.ask("admin $COMITY clients --state-dir $STATE --json")
    assert '"directories":0' in held and held.count('"directories":0') == 1, held


def own_changes_recall_nothing():
    returned = one.calls("DELEGRETURN")
    one.run(f": > {FOLDER}/own; mv {FOLDER}/own {FOLDER}/mine; rm {FOLDER}/mine")
    assert one.calls("DELEGRETURN") == returned, "an own change recalled a delegation"


def changes_by_others_are_seen_at_once():
    changes = {
        "create": (": > {0}/new", {"new"}, set()),
        "rename": ("mv {0}/new {0}/newer", {"newer"}, {"new"}),
        "remove": ("rm {0}/newer", set(), {"newer"}),
        "directory": ("mkdir {0}/sub", {"sub"}, set()),
    }
    for mount in ["nfs", "three"]:
        for name, (script, there, gone) in changes.items():
            start = time.monotonic()
            two.run(script.format(FOLDER.replace("nfs", mount)))
            took = time.monotonic() - start
            names = looks()
            assert there <= names and not gone & names, f"{name} by {mount}: {names}"
            assert took < 4, f"{name} by {mount} waited {took:.1f} s for the holder"
        two.run(f"rmdir {FOLDER}/sub")
        assert "sub" not in looks(), f"rmdir by {mount}"


def a_recall_is_followed_by_a_new_delegation():
    is_delegated()
    returned = one.calls("DELEGRETURN")
    two.run(f": > {FOLDER}/last")
    end = time.monotonic() + 0.5
    while one.calls("DELEGRETURN") == returned and time.monotonic() < end:
        time.sleep(0.01)
    assert one.calls("DELEGRETURN") > returned, "not recalled"
    assert "last" in looks()


play(
    listing_costs_no_call,
    own_changes_recall_nothing,
    changes_by_others_are_seen_at_once,
    a_recall_is_followed_by_a_new_delegation,
)
