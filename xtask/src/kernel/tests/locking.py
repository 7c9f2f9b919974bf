"""Locks behave as clients may expect, whatever protocol they speak."""
import os
import time

from stage import seconds_until

RDWR = os.O_RDWR | os.O_CREAT


def ranges(one, two, path):
    """Ranges that meet exclude each other; others do not."""
    a, b = one.open(path, RDWR), two.open(path, os.O_RDWR)
    assert one.try_lock(a, "write", 10, 10)
    assert not two.try_lock(b, "read", 19, 1)
    assert two.conflict(b, "write", 0, 0) == [10, 10]
    assert two.try_lock(b, "write", 20, 0)
    one.unlock(a, 14, 2)
    assert two.try_lock(b, "read", 14, 2)
    assert not one.try_lock(a, "write", 15, 1)
    assert one.try_lock(a, "read", 15, 1)
    one.close(a)
    assert two.try_lock(b, "write", 0, 0), "what a closed file held is not free"
    two.close(b)


def handing_over(clients, path, seconds_max):
    """A free lock goes to a waiting program soon, in the order in which they came."""
    one, two, three = clients
    fds = [client.open(path, RDWR) for client in clients]
    one.lock(fds[0])
    second = two.begin("lock", fds[1])
    time.sleep(0.7)
    third = three.begin("lock", fds[2])
    time.sleep(0.7)
    assert not second.done() and not third.done(), "two have the lock"
    one.unlock(fds[0])
    seconds_until(second, seconds_max)
    time.sleep(0.3)
    assert not third.done(), "two have the lock"
    two.close(fds[1])
    seconds_until(third, seconds_max)
    one.close(fds[0])
    three.close(fds[2])
