. "$FOLDER/common.sh"
export HOME="$FOLDER" GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org
export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
git config --global safe.directory '*'
git config --global init.defaultBranch main
git config --global gc.auto 0

commit() {
    cp -rT "$FOLDER/tree" "$MOUNT/repository"
    cd "$MOUNT/repository"
    git init -q .
    git add -A
    git commit -q -m first
    for file in part0[0-4]/*.c; do echo '/* more */' >> "$file"; done
    git commit -q -a -m second
}

clone() {
    cd "$MOUNT"
    git clone -q --no-hardlinks repository clone
    git -C clone fsck --full --strict
    diff -r -x .git repository clone
}

status() {
    cd "$MOUNT/repository"
    [ -z "$(git status --porcelain)" ]
    echo x >> main.c
    [ "$(git status --porcelain)" = ' M main.c' ]
    git checkout -q main.c
}

collect() {
    cd "$MOUNT/repository"
    git repack -q -a -d
    git gc -q --prune=now
    git fsck --full --strict
    [ "$(git rev-list --count main)" = 2 ]
}

# The second client sees the same repository, whole.
second() {
    cd "$SECOND/repository"
    git fsck --full --strict
    git diff --exit-code HEAD
}

for name in commit clone status collect second; do check "$name" "$name"; done
