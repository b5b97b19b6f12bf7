#!/usr/bin/env bash
# dev_help.sh DEV DEMO: ./dev's help says what each command takes, without building or installing anything, and
# that of the demo is the demo's own.
set -euo pipefail
dev=$1 demo=$2

fail() {
    printf 'dev_help: %s\n' "$*" >&2
    exit 1
}

commands=$("$dev" help | sed -n 's/^  \([a-z-]\+\) .*\(  \|\] \).*/\1/p' | grep -vx help)
[[ $(wc -w <<<"$commands") == 10 ]] || fail "./dev help lists other commands: $commands"
for command in $commands; do
    text=$("$dev" "$command" --help)
    [[ $text == "Usage: ./dev $command"* ]] || fail "./dev $command --help shows: $text"
    [[ $("$dev" help "$command") == "$text" ]] || fail "./dev help $command shows something else"
    [[ $("$dev" "$command" -h) == "$text" ]] || fail "./dev $command -h shows something else"
done
[[ $("$dev" demo --help) == *"$("$demo" --help)" ]] || fail "./dev demo --help is not the demo's"
[[ $("$dev" help help) == "$("$dev" help)" ]] || fail "./dev help help shows something else"
[[ $("$dev" dmeo 2>&1) == "dev: no command 'dmeo'; there are demo build test install "* ]] || fail "./dev dmeo names no command"
if "$dev" help fly 2>/dev/null; then fail "./dev help fly succeeds"; fi
