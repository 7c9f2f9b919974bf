"""A client of Ceph beside the server under test: CONFIGURATION make, or CONFIGURATION copy FOLDER.

`make` makes the directory that is exported. It has a quota, because the tests have no manager
daemon that counts the space of the file system. `copy` copies it to a folder, with hard links,
owners, modes and times.
"""
import os
import stat
import sys

import cephfs

EXPORT = b"/export"
QUOTA = b"1000000000000"

# Holes cannot be told from zeros, so the middle of a file of more bytes than this is not copied.
WHOLE = 64 << 20
EDGE = 1 << 20


def copy_data(fs, source, target, size):
    file = fs.open(source, "r")
    with open(target, "wb") as out:
        out.truncate(size)
        ranges = [(0, size)] if size <= WHOLE else [(0, EDGE), (size - EDGE, size)]
        for at, end in ranges:
            out.seek(at)
            while at < end:
                data = fs.read(file, at, min(EDGE, end - at))
                assert data, f"{source} ends at {at}"
                out.write(data)
                at += len(data)
    fs.close(file)


def copy_object(fs, source, target, found, seen):
    kind = stat.S_IFMT(found.st_mode)
    if kind == stat.S_IFLNK:
        os.symlink(fs.readlink(source, 5000), target)
    elif found.st_nlink > 1 and found.st_ino in seen:
        os.link(seen[found.st_ino], target)
        return
    elif kind == stat.S_IFREG:
        copy_data(fs, source, target, found.st_size)
    else:
        os.mknod(target, found.st_mode, found.st_rdev)
    seen[found.st_ino] = target
    copy_attributes(target, found)


def copy_attributes(target, found):
    os.chown(target, found.st_uid, found.st_gid, follow_symlinks=False)
    if not stat.S_ISLNK(found.st_mode):
        os.chmod(target, stat.S_IMODE(found.st_mode))
    times = (int(found.st_atime.timestamp()), int(found.st_mtime.timestamp()))
    os.utime(target, times, follow_symlinks=False)


def copy_tree(fs, source, target, seen):
    directory = fs.opendir(source)
    names = []
    while entry := fs.readdir(directory):
        if entry.d_name not in (b".", b".."):
            names.append(entry.d_name)
    fs.closedir(directory)
    for name in names:
        below, to = source + b"/" + name, target + b"/" + name
        found = fs.lstat(below)
        if stat.S_ISDIR(found.st_mode):
            os.mkdir(to)
            copy_tree(fs, below, to, seen)
            copy_attributes(to, found)
        else:
            copy_object(fs, below, to, found, seen)


def main():
    fs = cephfs.LibCephFS(conffile=sys.argv[1])
    fs.mount()
    if sys.argv[2] == "make":
        fs.mkdir(EXPORT, 0o755)
        fs.setxattr(EXPORT, "ceph.quota.max_bytes", QUOTA, 0)
    else:
        copy_tree(fs, EXPORT, os.fsencode(sys.argv[3]), {})
    fs.shutdown()


main()
