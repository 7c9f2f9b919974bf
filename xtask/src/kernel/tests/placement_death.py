"""A client writes to data servers and dies before it says how far it has written."""
import ctypes
import os
import signal
import sys

BYTES = 2 << 16

# Flags of sync_file_range(2): the pages are written, and the call waits before and after that.
WRITE_AND_WAIT = 7

path, told = sys.argv[1:]
file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
assert os.write(file, b"last" * (BYTES // 4)) == BYTES
# The call writes pages to the data servers and commits nothing. The client would send LAYOUTCOMMIT
# by an fsync, at the close, or some seconds later.
offset = ctypes.c_int64
synced = ctypes.CDLL(None).sync_file_range(file, offset(0), offset(BYTES), WRITE_AND_WAIT)
assert synced == 0
os.close(os.open(told, os.O_CREAT))
signal.pause()
