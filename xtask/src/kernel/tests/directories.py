"""Two clients of NFSv4.2, one of them of NFSv3 as well, use delegated directories: run by guest 1,
see stage.py."""
import time

from stage import clients, play, server

one, two = clients
ASKING = ("GETATTR", "LOOKUP", "ACCESS", "READDIR")
# Longer than attributes are valid without a delegation (actimeo).
OLD = 1.2
# Commands of the second client in a folder with `old` and `sub`, and the names there afterwards.
CHANGES = {
    "create": (": > new", {"old", "sub", "new"}),
    "mkdir": ("mkdir new", {"old", "sub", "new"}),
    "link": ("ln old new", {"old", "sub", "new"}),
    "rename": ("mv old new", {"sub", "new"}),
    "remove": ("rm old", {"sub"}),
    "rmdir": ("rmdir sub", {"old"}),
    "chmod": ("chmod 700 .", {"old", "sub"}),
    "away": ("mv old ../d/away", {"sub"}),
}


def folder(name, mount="nfs"):
    return f"/mnt/{mount}/{name}"


def looks(name):
    """The names that client one lists; and it finds that another one is missing."""
    return set(one.run(f"ls {folder(name)}; test ! -e {folder(name)}/missing").split())


def calls_of_a_look(name):
    before = one.calls(*ASKING)
    looks(name)
    return one.calls(*ASKING) - before


def have_delegated(name):
    """Client one looks until it need not ask any more."""
    end = time.monotonic() + 20
    while calls_of_a_look(name) > 0:
        assert time.monotonic() < end, f"{name} is not delegated"
        time.sleep(OLD)
    time.sleep(OLD)
    assert calls_of_a_look(name) == 0, "old attributes are asked for"


def has_returned(returned):
    """A client counts a call once it has seen the reply, and others may go on before that."""
    end = time.monotonic() + 0.5
    while one.calls("DELEGRETURN") == returned and time.monotonic() < end:
        time.sleep(0.01)
    return one.calls("DELEGRETURN") > returned


def folders_are_made():
    """By the other client, before this one has the folder above them."""
    names = [f"{name}-{mount}" for mount in ("nfs", "three") for name in CHANGES]
    for name in ["d", *names]:
        # A file would be delegated itself, and recalled as well.
        two.run(f"mkdir -p {folder(name)}/sub; mkfifo {folder(name)}/old")


def listing_costs_no_call():
    have_delegated("d")
    held = server.ask("admin $COMITY clients --state-dir $STATE --json")
    assert held.count('"directories":0') == 1, held


def looks_cost_what_they_cost_with_the_server_of_linux():
    """Counted with knfsd of Linux 7.2.7: 153 GETATTR, which are three for each file, one for the
    listing, and two more; and 21 LOOKUP. Without delegations there are 13 GETATTR more."""
    one.run(f"mkdir {folder('fifty')}; cd {folder('fifty')}; touch $(seq 50)")
    one.run(". /mnt/job/guest.sh; remount_export")
    getattrs, lookups = one.calls("GETATTR"), one.calls("LOOKUP")
    missing = f"for name in $(seq 51 70); do test ! -e {folder('fifty')}/$name || exit; done"
    listing = f"ls -l {folder('fifty')}"
    # No `cd`: it has the client ask for the attributes of the top directory as well.
    for script in [f"ls {folder('fifty')}", listing, listing, listing, missing, missing, missing]:
        one.run(script)
        time.sleep(OLD)
    getattrs, lookups = one.calls("GETATTR") - getattrs, one.calls("LOOKUP") - lookups
    print(f"{getattrs} GETATTR, {lookups} LOOKUP", flush=True)
    assert getattrs <= 153 and lookups <= 21, f"{getattrs} GETATTR, {lookups} LOOKUP"


def own_changes_recall_nothing():
    returned = one.calls("DELEGRETURN")
    # A link has no delegation of its own that its removal would return.
    one.run(f"cd {folder('d')}; ln -s to own; mv own mine; rm mine")
    assert looks("d") == {"old", "sub"}
    assert one.calls("DELEGRETURN") == returned, "an own change recalled a delegation"


def changes_by_others_are_preceded_by_a_recall():
    for mount in ("nfs", "three"):
        for change, (script, names) in CHANGES.items():
            name = f"{change}-{mount}"
            have_delegated(name)
            returned = one.calls("DELEGRETURN")
            start = time.monotonic()
            two.run(f"cd {folder(name, mount)}; {script}")
            took = time.monotonic() - start
            assert has_returned(returned), f"{name}: not recalled"
            assert looks(name) == names, f"{name}: old names"
            assert took < 4, f"{name} waited {took:.1f} s for the holder"


play(
    folders_are_made,
    looks_cost_what_they_cost_with_the_server_of_linux,
    listing_costs_no_call,
    own_changes_recall_nothing,
    changes_by_others_are_preceded_by_a_recall,
)
