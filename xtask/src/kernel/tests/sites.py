"""Runs in two guests at once, two sites whose users have the same numbers.

Everything is done as somebody: the server must keep the sites' users apart, and what is cloaked
must be there for nobody else, whatever the client knows already.
"""
import contextlib
import errno
import os
import subprocess
import time

from meeting import ME, OTHER, swap

ANONYMOUS = 65534
V4 = not os.environ["OPTIONS"].startswith("vers=3")
# The errno of NFS3ERR_PERM and of NFS4ERR_BADOWNER on Linux.
UNMAPPED = errno.EINVAL if V4 else errno.EPERM
PEOPLE = 100  # a group that is the same on both sites
OWNER, STRANGER, COLLEAGUE = (1000, []), (1001, []), (1001, [PEOPLE])
SITES = (1, 2)
GUARDED, CACHED = "/mnt/guarded/files", "/mnt/cached/files"
BRISK = "/mnt/brisk/files"  # the guarded ones, mounted with actimeo=1


@contextlib.contextmanager
def acting(who):
    """Makes the calls of this process somebody's."""
    uid, groups = who
    os.setgroups(groups)
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups([])


def fails(wanted, operation, *arguments):
    try:
        operation(*arguments)
    except OSError as error:
        assert error.errno == wanted, f"{error}, not {errno.errorcode[wanted]}"
    else:
        raise AssertionError(f"success, not {errno.errorcode[wanted]}")


def run(who, where, *words):
    """Returns the output of a program, which may complain of files that it cannot find or read."""
    uid, groups = who
    done = subprocess.run(words, cwd=where, user=uid, group=uid, extra_groups=groups,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.decode().split()


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("3")


def load(number):
    """Has the server load its next configuration, for both guests."""
    swap()
    if ME == 1:
        open(f"/mnt/job/want-{number}", "w").close()
        while not os.path.exists(f"/mnt/job/have-{number}"):
            time.sleep(0.02)
    swap()


def write(path, text, mode):
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)


def make_files(top):
    """The files of user 1000 of this site; each holds its own name."""
    os.umask(0)
    os.chdir(top)
    with acting((1000, [PEOPLE])):
        write(f"report-{ME}", f"report-{ME}\n", 0o644)
        write(f"diary-{ME}", f"diary-{ME}\n", 0o600)
        write(f"plan-{ME}", f"plan-{ME}\n", 0o640)
        os.chown(f"plan-{ME}", -1, PEOPLE)
        os.mkdir(f"folder-{ME}", 0o755)
        write(f"folder-{ME}/inside-{ME}", f"inside-{ME}\n", 0o644)
    with acting(STRANGER):
        write(f"stranger-{ME}", f"stranger-{ME}\n", 0o644)
    os.chdir("/")


NAMES = [name.replace("S", str(site)) for site in SITES for name in
         ("report-S", "diary-S", "plan-S", "folder-S", "folder-S/inside-S", "stranger-S")]


def may_see(who, name, cloaked):
    """The rule, by hand: the cloak of these ranges is +070."""
    uid, groups = who
    owner = 1001 if name.startswith("stranger") else 1000
    if not cloaked or (name.endswith(str(ME)) and uid == owner):
        return True
    return name.startswith("plan") and PEOPLE in groups


def may_read(who, name):
    uid, groups = who
    if name.startswith("diary"):
        return name.endswith(str(ME)) and uid == 1000
    if name.startswith("plan"):
        return name.endswith(str(ME)) and uid == 1000 or PEOPLE in groups
    return True


def opened(who, where):
    """Names that open, each known beforehand."""
    names = []
    with acting(who):
        for name in NAMES:
            try:
                os.close(os.open(f"{where}/{name}", os.O_RDONLY))
                names.append(name)
            except OSError as error:
                assert error.errno in (errno.ENOENT, errno.EACCES), (name, error)
    return names


def base(paths):
    return {path.rstrip("/").rsplit("/", 1)[-1] for path in paths}


# The listing of each program, and whether it leaves out files that may not be read.
TOOLS = {
    "ls": (lambda who, where: run(who, where, "ls", "-A", "."), False),
    "ls -l": (lambda who, where: run(who, where, "ls", "-lAR", "."), False),
    "stat": (lambda who, where: run(who, where, "stat", "-c", "%n", *NAMES), False),
    "cat": (lambda who, where: run(who, where, "cat", *NAMES), True),
    "find": (lambda who, where: run(who, where, "find", "."), False),
    "tar": (lambda who, where: run(who, where, "sh", "-c", "tar -cf - . | tar -tf -"), True),
    "open": (opened, True),
}


def look(where, cloaked):
    """Everybody sees with every program just what the rule says."""
    for who in (OWNER, STRANGER, COLLEAGUE):
        for tool, (show, reads) in TOOLS.items():
            drop_caches()
            known = [name for name in NAMES
                     if not (tool == "ls" and "/" in name or tool == "cat" and name[:7] == "folder-"
                             and "/" not in name)]
            expected = {name for name in known if may_see(who, name, cloaked)
                        and (not reads or may_read(who, name))}
            seen = base(show(who, where)) & base(known)
            assert seen == base(expected), f"{tool} as {who}: {seen ^ base(expected)} in {where}"


def owners(where):
    """The same numbers are two people, and each sees its own."""
    for name in NAMES:
        found = os.stat(f"{where}/{name}")
        number = 1001 if name.startswith("stranger") else 1000
        mine = name.endswith(str(ME))
        group = PEOPLE if name.startswith("plan") else number if mine else ANONYMOUS
        expected = (number if mine else ANONYMOUS, group)
        assert (found.st_uid, found.st_gid) == expected, (name, found)
    with acting(OWNER):
        fails(errno.EACCES, open, f"{where}/diary-{OTHER}")
        fails(errno.EACCES, open, f"{where}/report-{OTHER}", "a")
        fails(errno.EPERM, os.chmod, f"{where}/report-{OTHER}", 0o666)


def chown():
    """An owner for whom the domain has no number is never somebody else."""
    with acting(OWNER):
        fails(UNMAPPED, os.chown, f"{GUARDED}/report-{ME}", -1, 2500)
        fails(errno.EPERM, os.chown, f"{GUARDED}/report-{ME}", 1001, -1)
    path = f"/mnt/admin/given-{ME}"
    write(path, "", 0o644)
    # Root is root here: nothing but the map forbids it.
    for number in (2500, 999, 101000, 102000, ANONYMOUS):
        fails(UNMAPPED, os.chown, path, number, -1)
        fails(UNMAPPED, os.chown, path, -1, number)
        found = os.stat(path)
        assert (found.st_uid, found.st_gid) == (0, 0), found
    os.chown(path, 1500, 1999)
    found = os.stat(path)
    assert (found.st_uid, found.st_gid) == (1500, 1999), found


def old_descriptors():
    """Opens what will be hidden."""
    flags = {"report": os.O_RDONLY, "folder": os.O_RDONLY | os.O_DIRECTORY}
    descriptors = {}
    for who in (STRANGER, OWNER):
        with acting(who):
            for name, flag in flags.items():
                descriptors[who[0], name] = os.open(f"{BRISK}/{name}-{ME}", flag)
            os.pread(descriptors[who[0], "report"], 100, 0)
            os.listdir(descriptors[who[0], "folder"])
    return descriptors


def read_old(descriptors):
    """A hidden file is stale, but for its owner."""
    drop_caches()
    time.sleep(1.2)
    with acting(STRANGER):
        report, folder = (descriptors[1001, name] for name in ("report", "folder"))
        fails(errno.ESTALE, os.pread, report, 100, 0)
        fails(errno.ESTALE, os.fstat, report)
        fails(errno.ESTALE, os.listdir, folder)
        fails(errno.ESTALE, lambda: os.open(f"inside-{ME}", os.O_RDONLY, dir_fd=folder))
    if V4:
        # The client opens a dead inode again as long as anybody there has it open.
        for who in (STRANGER, OWNER):
            os.close(descriptors.pop((who[0], "report")))
        drop_caches()
    with acting(OWNER):
        # The client has marked its inode as stale; files opened from now on are not.
        with open(f"{BRISK}/report-{ME}") as file:
            assert file.read() == f"report-{ME}\n"
        assert os.listdir(f"{BRISK}/folder-{ME}") == [f"inside-{ME}"]
    for descriptor in descriptors.values():
        os.close(descriptor)


def changes():
    """A hidden file cannot be removed, renamed, linked to or replaced."""
    with acting(STRANGER):
        os.chdir(GUARDED)
        fails(errno.ENOENT, os.unlink, f"report-{ME}")
        fails(errno.ENOENT, os.rename, f"report-{ME}", "mine")
        fails(errno.ENOENT, os.link, f"report-{ME}", "mine")
        fails(errno.ENOENT, os.rmdir, f"folder-{ME}")
        fails(errno.EEXIST, os.mkdir, f"report-{ME}")
        fails(errno.EEXIST, os.rename, f"stranger-{ME}", f"report-{ME}")
        os.chdir("/")


def listing(who, where):
    with acting(who):
        return {name for name in os.listdir(where) if name.endswith(f"-{ME}")}


def second_user(where):
    """Checks the listing of the second user after that of the first, either way round."""
    shown = []
    for first, second in ((OWNER, STRANGER), (STRANGER, OWNER)):
        drop_caches()
        listing(first, where)
        shown.append(listing(second, where))
    return shown


def caches():
    """Why there is no_client_cache: a client has one listing for all its users."""
    owner = {f"{name}-{ME}" for name in ("report", "diary", "plan", "folder")}
    stranger = {f"stranger-{ME}"}
    shown = second_user(GUARDED)
    assert shown == [stranger, owner], f"with no_client_cache: {shown}"
    shown = second_user(CACHED)
    assert shown == [owner, stranger], f"without no_client_cache it is a leak: {shown}"


def known_name():
    """A name that the client has looked up for one user, and whether it is there for another."""
    path = f"report-{ME}"
    for where, leaks in ((GUARDED, False), (CACHED, True)):
        drop_caches()
        with acting(STRANGER):
            # So that the client need not ask what the stranger may do in there.
            assert not os.path.exists(f"{where}/nothing")
        run(OWNER, where, "ls", "-l", ".")
        with acting(STRANGER):
            listed = os.path.exists(f"{where}/{path}")
        for _ in range(3):
            with acting(OWNER):
                assert os.path.exists(f"{where}/{path}") and open(f"{where}/{path}").read()
        with acting(STRANGER):
            looked_up = os.path.exists(f"{where}/{path}")
        assert (listed, looked_up) == (leaks, leaks), f"{where}: {listed} {looked_up}"


def many():
    """A long directory looks changed in every reply, and is listed whole and once all the same."""
    for who, site, count in ((OWNER, ME, 1500), (STRANGER, ME, 0)):
        drop_caches()
        with acting(who):
            names = os.listdir("/mnt/guarded/many")
        assert len(names) == len(set(names)) == count, (who, len(names), len(set(names)))
        assert all(name.endswith(f"-{site}") for name in names), names[:3]


def work():
    """Ordinary work goes on in a directory that looks changed all the time."""
    with acting(OWNER):
        top = f"{GUARDED}/folder-{ME}/work"
        os.mkdir(top)
        for number in range(50):
            with open(f"{top}/{number}", "x") as file:
                file.write(str(number))
            os.rename(f"{top}/{number}", f"{top}/{number}-kept")
        assert len(os.listdir(top)) == 50
        for name in os.listdir(top):
            os.unlink(f"{top}/{name}")
        os.rmdir(top)


for place in (GUARDED, CACHED):
    make_files(place)
swap()
owners(GUARDED)
chown()
look(GUARDED, cloaked=False)
held = old_descriptors()
load(1)
read_old(held)
for place in (GUARDED, BRISK, CACHED):
    look(place, cloaked=True)
for part in (changes, caches, known_name, many, work):
    part()
load(2)
time.sleep(1.2)
look(BRISK, cloaked=False)
