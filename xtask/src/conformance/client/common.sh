# Functions that the scripts of all suites use. MOUNT and SECOND are mounts of the same export,
# EXPORT is the exported folder, FOLDER one outside, SOURCES that of the suite.
set -eu

# Runs a command in a shell of its own and prints its result. A shell in the background, because
# `set -e` is without effect in a condition.
check() {
    name=$1
    shift
    ( set -e; "$@" ) &
    if wait $!; then echo "check $name : PASS"; else echo "check $name : FAILURE"; fi
}
