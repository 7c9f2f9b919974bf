. "$FOLDER/common.sh"
build() {
    cp -rT "$FOLDER/tree" "$MOUNT/tree"
    cd "$MOUNT/tree"
    sh ./configure
    make -s -j2
    ./program | cmp - "$FOLDER/expected"
}

again() {
    cd "$MOUNT/tree"
    make -q
    touch part00/f00_00.c
    [ "$(make -s -n | grep -c 'gcc -O1')" = 1 ]
}

second() {
    cd "$SECOND/tree"
    ./program | cmp - "$FOLDER/expected"
    diff -r -x '*.o' -x 'config.*' -x program "$FOLDER/tree" .
}

for name in build again second; do check "$name" "$name"; done
