#!/usr/bin/env bash
# Every kvjit command line in the documents calls a command, and its options are that command's: commands.sh KVJIT ROOT
set -euo pipefail

kvjit=$1
root=$2
status=0
seen=0

# Lines that begin with the command, without what a shell does with its output.
lines() {
    grep -hoE '^ +(build/)?kvjit [^|>#`]*' "$root"/README.md "$root"/docs/*.md "$root"/demo/help.cc |
        grep -vE 'kvjit +engine' # a drawing
    "$kvjit" help --man | sed -e 's/\\-/-/g' -e 's/\\&//g' | grep -oE '^  kvjit [^|>#`]*'
}

while read -r _ words; do
    read -ra words <<<"$words"
    called=()
    for word in "${words[@]}"; do
        [[ $word =~ ^[a-z]+$ && ${#called[@]} -lt 2 ]] || break
        "$kvjit" help "${called[@]}" "$word" >/dev/null 2>&1 || break
        called+=("$word")
    done
    if [[ ${#called[@]} -eq 0 ]]; then
        [[ ${words[0]} == --* ]] && continue
        echo "no command: kvjit ${words[*]}" && status=1 && continue
    fi
    seen=$((seen + 1))
    help=$("$kvjit" help "${called[@]}")
    for word in "${words[@]}"; do
        [[ $word == --* && ${called[0]} != help ]] || continue
        grep -qF -e "${word%%=*}" <<<"$help" || { echo "kvjit ${called[*]} has no ${word%%=*}"; status=1; }
    done
done < <(lines)
echo "$seen command lines"
[[ $seen -ge 40 ]] || { echo "too few were found"; status=1; }
exit "$status"
