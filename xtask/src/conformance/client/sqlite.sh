. "$FOLDER/common.sh"
# Two processes add rows to one database, each row in a transaction of its own. SQLite asks for its
# locks again and again, so that one process may wait until the other has added all its rows: the
# limit is that of the suite.
adds() {
    for row in $(seq 100); do
        echo "insert into rows values ($1, $row, hex(randomblob(400)));"
    done | sqlite3 -bail -cmd '.timeout 500000' "$2/data.db"
}

processes() {
    cd "$MOUNT"
    sqlite3 data.db 'create table rows (who, number, value, primary key (who, number))'
    adds 1 "$MOUNT" &
    first=$!
    adds 2 "$MOUNT"
    wait $first
    [ "$(sqlite3 data.db 'pragma integrity_check')" = ok ]
    [ "$(sqlite3 data.db 'select count(*) from rows')" = 200 ]
}

clients() {
    adds 3 "$MOUNT" &
    first=$!
    adds 4 "$SECOND"
    wait $first
    for mount in "$MOUNT" "$SECOND"; do
        [ "$(sqlite3 "$mount/data.db" 'pragma integrity_check')" = ok ]
        [ "$(sqlite3 "$mount/data.db" 'select count(*) from rows')" = 400 ]
    done
}

for name in processes clients; do check "$name" "$name"; done
