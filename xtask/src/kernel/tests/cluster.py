"""The heads of a cluster, on idle hosts of the server's machine, with etcd on another one."""
import os
import time

from stage import server

EXPORT = os.environ["EXPORT"]
ADDRESSES = {"one": "10.77.0.51", "two": "10.77.0.52"}
HEADS = {"a": "10.77.0.21", "b": "10.77.0.22"}

# Longest time in seconds until another head serves an export: the lease of the failed one, the
# looks of the others, a grace period that ends when this client has reclaimed, a slow machine.
TAKEOVER = 45


def start(host, *arguments):
    """Starts the head of a host."""
    server.ask("on %s sh $INPUT/head.sh %s %s" % (host, HEADS[host], " ".join(arguments)))


def start_all(*arguments):
    """Starts etcd and both heads, and waits until each head serves its export."""
    server.ask("on c sh $INPUT/etcd.sh")
    start("a", *arguments)
    start("b", *arguments)
    wait_for("b", "/one: 10.77.0.21", "/two: 10.77.0.22")


def wait_for(host, *lines):
    """Waits until the head of a host says so."""
    end = time.monotonic() + TAKEOVER
    command = "on %s $COMITY cluster status --state-dir /srv/state 2>&1; true" % host
    while not all(EXPORT + line in server.ask(command) for line in lines):
        assert time.monotonic() < end, server.ask(command)
        time.sleep(0.2)
