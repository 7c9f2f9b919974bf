. "$FOLDER/common.sh"
part() {
    cd "$FOLDER/cthon04/$1"
    export NFSTESTDIR="$MOUNT/$1"
    sh ./runtests -f
}

copy() {
    cp -a "$SOURCES" "$FOLDER/cthon04"
    cd "$FOLDER/cthon04"
    # Its C is older than the compilers of today, and libnsl is not needed.
    sed -i -e 's/^CC=.*/CC="cc -std=gnu89 -fcommon -w"/' -e 's/-lnsl/-lm/' tests.init
    sed -i -e 's/-lnsl/-lm/' ./*/Makefile
    for part in basic general special lock; do
        ( . ./tests.init && export CC CFLAGS LIBS LOCKTESTS && make -s -e -C "$part" )
    done
}

copy
for name in basic general special lock; do check "$name" part "$name"; done
