#!/bin/sh
# docs/layouts.md shows what `kvjit spec list layouts` prints: layouts.sh DOCUMENT KVJIT
set -eu

printed=$("$2" spec list layouts)
shown=$(sed -n '/^    layout=  /,/^$/s/^    //p' "$1")
[ -n "$printed" ] || { echo "nothing is printed"; exit 1; }
if [ "$printed" != "$shown" ]; then
    echo "$1 shows another table than this, which kvjit spec list layouts prints:"
    echo "$printed"
    exit 1
fi
