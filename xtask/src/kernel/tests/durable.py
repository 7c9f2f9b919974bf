"""For half a minute: write a record, fsync it, write its number down outside the mount.

Every tenth time also a file, renamed into place.
"""
import os
import time

records = os.open("records", os.O_RDWR | os.O_CREAT)
end = time.monotonic() + 30
with open("/mnt/job/acknowledged", "w") as acknowledged:
    number = 0
    while time.monotonic() < end:
        record = (b"%8d" % number) * 512
        os.pwrite(records, record, number * 4096)
        os.fsync(records)
        if number % 10 == 0:
            file = os.open("new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.write(file, record)
            os.fsync(file)
            os.close(file)
            try:
                os.rename("new", f"file-{number}")
            except FileNotFoundError:  # sent again to a server that had done it and died
                os.stat(f"file-{number}")
        acknowledged.write(f"{number}\n")
        acknowledged.flush()
        number += 1
