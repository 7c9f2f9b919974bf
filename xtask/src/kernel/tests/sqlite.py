"""300 transactions of 20 rows; each number is written down outside the mount once it is committed.

Run again after a failure it goes on behind the last one written down.
"""
import sqlite3

done = sum(1 for _ in open("/mnt/job/acknowledged"))
data = sqlite3.connect("data.db", isolation_level=None)
assert data.execute("pragma journal_mode=delete").fetchone() == ("delete",)
data.execute("pragma synchronous=full")
data.execute("create table if not exists rows"
             "(batch integer, part integer, value text, primary key (batch, part))")
with open("/mnt/job/acknowledged", "a") as acknowledged:
    for batch in range(done, 300):
        data.execute("begin immediate")
        for part in range(20):
            value = f"{batch}-{part}" + "00" * 400
            data.execute("insert or replace into rows values (?, ?, ?)", (batch, part, value))
        data.execute("commit")
        acknowledged.write(f"{batch}\n")
        acknowledged.flush()
    data.execute("begin")
    data.execute("delete from rows where batch < 100")
    data.execute("rollback")
data.close()
