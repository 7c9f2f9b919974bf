"""Two clients change one file under locks, each in its own ranges, and read what the other wrote.

POSIX locks are where NFS promises coherence (RFC 8881, 10.3.2): who locks sees what was written
before the range was unlocked.
"""
import fcntl
import os
import random

MOUNTS = [os.environ["MOUNT"], os.environ["SECOND"]]
ROUNDS = int(os.environ["OPERATIONS"]) // 50
LENGTH = 256 * 1024
random.seed(1998)
truth = bytearray(LENGTH)
with open(f"{MOUNTS[0]}/ranges", "wb") as file:
    file.write(truth)
files = [os.open(f"{mount}/ranges", os.O_RDWR) for mount in MOUNTS]
for number in range(ROUNDS):
    client = random.randrange(2)
    file, start = files[client], random.randrange(LENGTH - 1)
    length = random.randrange(1, min(20000, LENGTH - start) + 1)
    fcntl.lockf(file, fcntl.LOCK_EX, length, start)
    seen, expected = os.pread(file, length, start), truth[start:start + length]
    if seen != expected:
        wrong = next(at for at in range(length) if seen[at:at + 1] != expected[at:at + 1])
        raise SystemExit(f"round {number}: client {client} reads stale data at {start + wrong}")
    if random.randrange(2):
        data = random.randbytes(length)
        assert os.pwrite(file, data, start) == length
        truth[start:start + length] = data
    fcntl.lockf(file, fcntl.LOCK_UN, length, start)
for file in files:
    os.close(file)
for folder in [*MOUNTS, os.environ["EXPORT"]]:
    with open(f"{folder}/ranges", "rb") as file:
        if file.read() != truth:
            raise SystemExit(f"{folder}/ranges differs at the end")
