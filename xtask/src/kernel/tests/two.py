"""Runs in two guests at once ($NUMBER 1 and 2), which meet over a connection of their own."""
import errno
import os
import time

from meeting import ME, OTHER, swap
from retries import doubtful, survive

survive()


def tick():
    """Lets the file system's clock go on: clients see a change by its time."""
    time.sleep(0.02)


def tries(operation, *arguments, losing):
    """Whether an operation won its race."""
    try:
        operation(*arguments)
        return True
    except OSError as error:
        assert error.errno == losing, error
        return False


def close_to_open():
    """A client sees the data that the other has closed when it opens the file."""
    for turn in range(60):
        writer = 1 + turn % 2
        text = f"{turn} " * (turn + 1)
        if ME == writer:
            tick()
            with open("shared", "w") as file:
                file.write(text)
        swap()
        if ME != writer:
            with open("shared") as file:
                seen = file.read()
            assert seen == text, f"turn {turn}: {seen!r}"
        swap()


def counter():
    """Read, add one, write, in turns: no turn is lost."""
    if ME == 1:
        with open("counter", "w") as file:
            file.write("0")
    swap()
    for turn in range(200):
        if turn % 2 == ME - 1:
            tick()
            with open("counter") as file:
                value = int(file.read())
            with open("counter", "w") as file:
                file.write(str(value + 1))
        swap()


def creates():
    """Both create in one folder at once; both list all of it then."""
    for number in range(300):
        with open(f"creates/{ME}-{number}", "w") as file:
            file.write(f"{number}")
    tick()
    swap()
    names = set(os.listdir("creates"))
    assert names == {f"{who}-{n}" for who in (1, 2) for n in range(300)}, len(names)
    for number in range(0, 300, 10):
        with open(f"creates/{OTHER}-{number}") as file:
            assert file.read() == f"{number}"
    swap()


def exactly_one(what, race, count):
    """Both try the same `count` things: each has one winner.

    Where the server was killed meanwhile the winner may think that it has lost; two never win.
    """
    swap()
    said = {True: "1", False: "0", None: "?"}
    mine = "".join(said[race(number)] for number in range(count))
    theirs = swap(mine)
    for number in range(count):
        both = mine[number] + theirs[number]
        winners = both.count("1")
        assert winners == 1 or winners == 0 and "?" in both, f"{what} {number}: {both}"


def races():
    def exclusive(number):
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        path = f"exclusive/{number}"
        # It knows its own again after a kill: no doubt here.
        return tries(lambda: os.close(os.open(path, flags)), losing=errno.EEXIST)

    def contest(operation, *arguments, losing):
        try:
            return doubtful(operation.__wrapped__, *arguments, lost=losing)
        except OSError as error:
            assert error.errno == losing, error
            return False

    def mkdir(number):
        return contest(os.mkdir, f"folders/{number}", losing=errno.EEXIST)

    def link(number):
        return contest(os.link, "counter", f"folders/link-{number}", losing=errno.EEXIST)

    def rename(number):
        names = f"tokens/{number}", f"tokens/{ME}-{number}"
        return contest(os.rename, *names, losing=errno.ENOENT)

    exactly_one("exclusive create", exclusive, 100)
    exactly_one("mkdir", mkdir, 30)
    exactly_one("link", link, 30)
    if ME == 1:
        for number in range(100):
            open(f"tokens/{number}", "w").close()
    tick()
    swap()
    exactly_one("rename", rename, 100)


def removal():
    """A client cannot open a file that the other has removed."""
    for turn in range(20):
        if ME == 1:
            with open("gone", "w") as file:
                file.write(str(turn))
        tick()
        swap()
        if ME == 2:
            with open("gone") as file:
                assert file.read() == str(turn)
        swap()
        if ME == 1:
            os.unlink("gone")
        tick()
        swap()
        if ME == 2:
            assert not tries(open, "gone", losing=errno.ENOENT), "a removed file opens"
        swap()


if ME == 1:
    for folder in ("creates", "exclusive", "folders", "tokens"):
        os.mkdir(folder)
swap()
for part in (close_to_open, counter, creates, races, removal):
    part()
