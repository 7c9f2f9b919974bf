"""Every NFSv3 operation by system call, in a folder of its own for root and for uid 1000.

The checks of one folder run in order; each name that passes goes to /mnt/job/passed.
"""
import errno
import os
import socket
import stat
import sys
import time

from retries import doubtful, survive

survive()
PASSED = open("/mnt/job/passed", "a", buffering=1)


def fails(wanted, operation, *arguments, **named):
    operation = getattr(operation, "__wrapped__", operation)
    try:
        operation(*arguments, **named)
    except OSError as error:
        got = error.errno
        assert got == wanted, f"{errno.errorcode[got]}, not {errno.errorcode[wanted]}"
    else:
        raise AssertionError(f"success, not {errno.errorcode[wanted]}")


def write(path, data=b"", flags=os.O_WRONLY | os.O_CREAT, mode=0o644):
    file = os.open(path, flags, mode)
    try:
        return os.write(file, data)
    finally:
        os.close(file)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def check_create():
    os.mkdir("create", 0o755)
    write("create/a", b"hello")
    assert read("create/a") == b"hello"
    write("create/a", b"HE")
    assert read("create/a") == b"HEllo"
    write("create/a", b"new", os.O_WRONLY | os.O_TRUNC)
    assert read("create/a") == b"new"
    fails(errno.ENOENT, os.open, "create/none", os.O_RDONLY)
    fails(errno.ENOTDIR, os.open, "create/a/b", os.O_RDONLY)
    fails(errno.EISDIR, os.open, "create", os.O_WRONLY)


def check_exclusive():
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    write("create/exclusive", b"x", flags, 0o600)
    fails(errno.EEXIST, os.open, "create/exclusive", flags)
    found = os.stat("create/exclusive")
    assert stat.S_IMODE(found.st_mode) == 0o600, oct(found.st_mode)
    assert abs(found.st_mtime - time.time()) < 60, found
    # Times that no call has set do not carry the server's mark of an exclusive create.
    for name, flag in (("made", 0), ("emptied", os.O_TRUNC)):
        os.close(os.open(f"create/{name}", flags | flag))
        found = os.stat(f"create/{name}")
        assert abs(found.st_mtime - time.time()) < 60, found
        assert abs(found.st_atime - time.time()) < 60, found


def check_append():
    for part in (b"one ", b"two ", b"three"):
        write("create/log", part, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    assert read("create/log") == b"one two three"


def check_folders():
    os.mkdir("create/folder", 0o750)
    found = os.stat("create/folder")
    assert stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o750
    assert found.st_nlink == 2
    os.mkdir("create/folder/inner")
    assert os.stat("create/folder").st_nlink == 3
    fails(errno.EEXIST, os.mkdir, "create/folder")
    fails(errno.ENOTEMPTY, os.rmdir, "create/folder")
    os.rmdir("create/folder/inner")
    fails(errno.ENOTDIR, os.rmdir, "create/a")
    fails(errno.EISDIR, os.unlink, "create/folder")
    os.rmdir("create/folder")
    fails(errno.ENOENT, os.stat, "create/folder")


def check_links():
    os.mkdir("links")
    write("links/file", b"linked")
    os.link("links/file", "links/twin")
    assert os.stat("links/file").st_nlink == 2
    assert os.path.samefile("links/file", "links/twin")
    fails(errno.EEXIST, os.link, "links/file", "links/twin")
    os.symlink("file", "links/symbolic")
    assert os.readlink("links/symbolic") == "file" and read("links/symbolic") == b"linked"
    long = "x/" * 500 + "end"
    os.symlink(long, "links/long")
    assert os.readlink("links/long") == long
    fails(errno.EEXIST, os.symlink, "other", "links/symbolic")
    fails(errno.EINVAL, os.readlink, "links/file")
    os.utime("links/symbolic", ns=(10**18, 10**18 + 7), follow_symlinks=False)
    found = os.lstat("links/symbolic")
    assert (found.st_atime_ns, found.st_mtime_ns) == (10**18, 10**18 + 7), found


def check_rename():
    os.mkdir("rename")
    os.mkdir("rename/empty")
    os.mkdir("rename/full")
    write("rename/full/a", b"a")
    write("rename/b", b"b")
    write("rename/c", b"c")
    os.rename("rename/b", "rename/c")
    assert read("rename/c") == b"b"
    fails(errno.ENOENT, os.rename, "rename/b", "rename/d")
    os.rename("rename/full", "rename/empty")
    assert read("rename/empty/a") == b"a"
    os.mkdir("rename/other")
    fails(errno.ENOTEMPTY, os.rename, "rename/other", "rename/empty")
    fails(errno.EISDIR, os.rename, "rename/c", "rename/other")
    fails(errno.ENOTDIR, os.rename, "rename/other", "rename/c")
    fails(errno.EINVAL, os.rename, "rename/empty", "rename/empty/below")
    os.rename("rename/c", "rename/empty/c")
    assert sorted(os.listdir("rename/empty")) == ["a", "c"]
    os.link("rename/empty/a", "rename/twin")
    os.rename("rename/empty/a", "rename/twin")
    assert os.path.exists("rename/empty/a") and os.path.exists("rename/twin")


def check_unlink():
    write("create/gone", b"")
    os.unlink("create/gone")
    fails(errno.ENOENT, os.unlink, "create/gone")


def check_specials():
    os.mkdir("specials")
    os.mkfifo("specials/fifo", 0o600)
    assert stat.S_ISFIFO(os.stat("specials/fifo").st_mode)
    with socket.socket(socket.AF_UNIX) as listener:
        doubtful(listener.bind, "specials/socket", lost=errno.EADDRINUSE)
    assert stat.S_ISSOCK(os.stat("specials/socket").st_mode)
    # Programs that copy extended attributes ask for these, too.
    for special in ("specials/fifo", "specials/socket"):
        assert not [name for name in os.listxattr(special) if name.startswith("user.")]
    device = os.makedev(1, 3)
    if os.getuid() == 0:
        os.mknod("specials/null", 0o666 | stat.S_IFCHR, device)
        assert os.stat("specials/null").st_rdev == device
        write("specials/null", b"into nothing", os.O_WRONLY)
        os.mknod("specials/disk", 0o600 | stat.S_IFBLK, os.makedev(259, 70000))
        assert os.stat("specials/disk").st_rdev == os.makedev(259, 70000)
        # An open of a name that the client does not know is sent to the server.
        drop_caches()
        for special in ("specials/fifo", "specials/null"):
            os.close(os.open(special, os.O_RDWR | os.O_NONBLOCK))
    else:
        fails(errno.EPERM, os.mknod, "specials/null", 0o666 | stat.S_IFCHR, device)


def check_modes():
    os.mkdir("modes")
    write("modes/file", b"")
    for mode in (0o0, 0o400, 0o1777, 0o6755, 0o640):
        os.chmod("modes/file", mode)
        assert stat.S_IMODE(os.stat("modes/file").st_mode) == mode, oct(mode)
    os.utime("modes/file", ns=(1_234_567_890_123_456_789, 987_654_321_987_654_321))
    found = os.stat("modes/file")
    assert found.st_atime_ns == 1_234_567_890_123_456_789, found
    assert found.st_mtime_ns == 987_654_321_987_654_321, found
    os.utime("modes/file")
    assert abs(os.stat("modes/file").st_mtime - time.time()) < 60
    if os.getuid() == 0:
        write("modes/given", b"")
        os.chown("modes/given", 1234, 4_000_000_000)
        found = os.stat("modes/given")
        assert (found.st_uid, found.st_gid) == (1234, 4_000_000_000), found
    else:
        fails(errno.EPERM, os.chown, "modes/file", 0, -1)
        fails(errno.EPERM, os.chmod, "..", 0o777)


def check_sizes():
    os.mkdir("sizes")
    far = 5 << 32
    file = os.open("sizes/far", os.O_RDWR | os.O_CREAT)
    os.pwrite(file, b"far", far)
    os.fsync(file)
    assert os.fstat(file).st_size == far + 3
    assert os.pread(file, 10, far) == b"far"
    assert os.pread(file, 10, far - 4) == b"\0\0\0\0far"
    assert os.pread(file, 10, 1 << 32) == bytes(10)
    os.close(file)
    write("sizes/cut", b"0123456789")
    os.truncate("sizes/cut", 4)
    assert read("sizes/cut") == b"0123"
    os.truncate("sizes/cut", 8)
    assert read("sizes/cut") == b"0123\0\0\0\0"
    data = os.urandom(3 << 20)
    write("sizes/large", data)
    drop_caches()
    assert read("sizes/large") == data


def check_listing():
    os.mkdir("listing")
    names = [f"entry-{number:05}" + "y" * (number % 50) for number in range(2000)]
    for number, name in enumerate(names):
        if number % 100:
            write(f"listing/{name}")
        else:
            os.mkdir(f"listing/{name}")
    drop_caches()
    found = os.listdir("listing")
    assert sorted(found) == names, len(found)
    drop_caches()
    kinds = [entry.is_dir(follow_symlinks=False) for entry in os.scandir("listing")]
    assert kinds.count(True) == 20, kinds.count(True)
    for position, name in enumerate(os.listdir("listing")):
        if position % 2 and not os.path.isdir(f"listing/{name}"):
            os.unlink(f"listing/{name}")
    left = os.listdir("listing")
    assert len(left) == len(set(left)) and 1000 <= len(left) <= 1020, len(left)


def check_names():
    os.mkdir(b"names")
    odd = [b"n" * 255, b"\xff\xfe", b" ", b"-rf", b"new\nline", b"\x01\x7f", b"...", b"a\\b",
           "\u00e4\u4e2d".encode(), b"*?[]", b"'\"`$"]
    for name in odd:
        write(b"names/" + name, name)
    assert sorted(os.listdir(b"names")) == sorted(odd)
    for name in odd:
        assert read(b"names/" + name) == name
    fails(errno.ENAMETOOLONG, write, b"names/" + b"n" * 256)


def check_silly():
    os.mkdir("silly")
    write("silly/file", b"still here")
    file = os.open("silly/file", os.O_RDWR)
    os.unlink("silly/file")
    fails(errno.ENOENT, os.stat, "silly/file")
    assert os.pread(file, 100, 0) == b"still here"
    os.pwrite(file, b"STILL", 0)
    os.fsync(file)
    assert os.pread(file, 100, 0) == b"STILL here"
    os.close(file)
    write("silly/old", b"old")
    write("silly/new", b"new")
    file = os.open("silly/old", os.O_RDONLY)
    os.rename("silly/new", "silly/old")
    assert os.read(file, 10) == b"old" and read("silly/old") == b"new"
    os.close(file)
    os.unlink("silly/old")


def check_space():
    space = os.statvfs(".")
    assert space.f_blocks > 0 and space.f_bavail <= space.f_bfree <= space.f_blocks, space
    assert space.f_files > 0 and space.f_namemax == 255, space
    assert os.pathconf("create", "PC_NAME_MAX") == 255


def check_sync():
    file = os.open("create/sync", os.O_RDWR | os.O_CREAT | os.O_SYNC)
    os.write(file, b"synchronous")
    os.fdatasync(file)
    os.close(file)
    folder = os.open("create", os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
    assert read("create/sync") == b"synchronous"


def check_rights():
    """Other users cannot do what the modes forbid them; the server decides."""
    os.mkdir("rights")
    write("rights/secret", b"secret", mode=0o600)
    write("rights/public", b"public", mode=0o644)
    os.mkdir("rights/closed", 0o700)
    os.chmod("rights/closed", 0o700)
    write("rights/closed/inside", b"")

    def stranger():
        assert read("rights/public") == b"public"
        assert os.access("rights/public", os.R_OK)
        assert not os.access("rights/public", os.W_OK)
        fails(errno.EACCES, os.open, "rights/public", os.O_WRONLY)
        fails(errno.EACCES, os.open, "rights/secret", os.O_RDONLY)
        fails(errno.EACCES, os.stat, "rights/closed/inside")
        fails(errno.EACCES, os.listdir, "rights/closed")
        fails(errno.EACCES, write, "rights/mine")
        fails(errno.EACCES, os.unlink, "rights/public")
        fails(errno.EPERM, os.chmod, "rights/public", 0o777)

    as_user(2000, [], stranger)


def check_groups():
    """A supplementary group opens what the primary one does not."""
    if os.getuid() != 0:
        return
    os.mkdir("groups", 0o755)
    write("groups/file", b"for the group", mode=0o640)
    os.chown("groups/file", 0, 5005)
    as_user(2000, [5001, 5005], lambda: read("groups/file"))
    as_user(2000, [5001], lambda: fails(errno.EACCES, read, "groups/file"))


def drop_caches():
    os.sync()
    try:
        with open("/proc/sys/vm/drop_caches", "w") as file:
            file.write("3")
    except PermissionError:
        pass


def as_user(uid, groups, operation):
    """Runs an operation in a child with other ids, if this process may take them."""
    if os.getuid() != 0:
        return
    child = os.fork()
    if child == 0:
        try:
            os.setgroups(groups)
            os.setgid(uid)
            os.setuid(uid)
            operation()
        except BaseException as error:
            print(f"as uid {uid}: {type(error).__name__} {error}", file=sys.stderr)
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert status == 0, f"what uid {uid} did has failed"


def run_all(who):
    os.umask(0o022)
    checks = [(name, check) for name, check in globals().items() if name.startswith("check_")]
    for name, check in checks:
        try:
            check()
        except BaseException:
            print(f"{name} as {who}", file=sys.stderr)
            raise
        PASSED.write(f"{who} {name}\n")


def main():
    os.mkdir("root")
    os.mkdir("user")
    os.chown("user", 1000, 1000)
    for who in ("root", "user"):
        os.chdir(f"/mnt/nfs/{who}")
        if who == "root":
            run_all(who)
        else:
            as_user(1000, [], lambda: run_all("user"))


main()
