"""Effects of a server that is killed on a call that is not idempotent.

It may die between doing and replying; the client sends the call again, and the next server, which
has no memory of it, says that a name is there already or is gone (RFC 1813, 4.3). Only if the
server was killed while the call was under way is such a failure anything else than a failure, and
counted.
"""
import errno
import functools
import os

MAKING = ("mkdir", "mkfifo", "mknod", "link", "symlink")
REMOVING = ("unlink", "rmdir", "rename")
# Open from the start: not everybody may open it.
REPEATED = open("/mnt/job/repeated", "a", buffering=1)


def kills():
    """One more when the server is about to be killed, and again when it is back."""
    try:
        return os.stat("/mnt/job/kills").st_size
    except FileNotFoundError:
        return 0


def doubtful(operation, *arguments, lost, **named):
    """True if it is done; None if it failed as `lost` and the server was killed meanwhile."""
    before = kills()
    try:
        operation(*arguments, **named)
        return True
    except OSError as error:
        if error.errno != lost or before == kills() and before % 2 == 0:
            raise
        REPEATED.write(f"{operation.__name__} {arguments}\n")
        return None


def surviving(operation, lost):
    @functools.wraps(operation)
    def again(path, *rest, **named):
        while doubtful(operation, path, *rest, lost=lost, **named) is None:
            # A file in use is renamed before it is removed: that may be all that was done.
            if lost != errno.ENOENT or not os.path.lexists(path):
                break
    return again


def survive():
    """Has os.mkdir, os.unlink and the like done in spite of kills; `__wrapped__` is without."""
    for names, lost in ((MAKING, errno.EEXIST), (REMOVING, errno.ENOENT)):
        for name in names:
            setattr(os, name, surviving(getattr(os, name), lost))
