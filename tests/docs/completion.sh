#!/usr/bin/env bash
# What completion offers, in the shells that are there: completion.sh KVJIT SHELL. Status 77: there is no such shell.
set -euo pipefail

kvjit=$1
shell=$2
command -v "$shell" >/dev/null || { echo "SKIP: no $shell here"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$kvjit" completion "$shell" > "$folder/script"

# Prints what bash would offer at the end of the line $1.
cat > "$folder/offered.bash" <<'BASH'
source "$1"
COMP_LINE=$2 COMP_POINT=${#2}
_kvjit
printf '%s\n' "${COMPREPLY[@]}"
BASH

# The same for zsh, whose completion system is stood in for: compadd prints, filtered by the word.
cat > "$folder/offered.zsh" <<'ZSH'
compdef() { :; }
_files() { print -r -- "files $*"; }
compadd() {
    local candidate
    while [[ $1 != -- ]]; do [[ $1 == -S ]] && shift; shift; done
    shift
    for candidate; do [[ $candidate == "${words[CURRENT]}"* ]] && print -r -- "$candidate"; done
    return 0
}
source "$1"
words=("${(@s: :)2}")
CURRENT=$#words
_kvjit
ZSH

offered() { "$shell" "$folder/offered.$shell" "$folder/script" "$1"; }

status=0
# expect LINE WORD...: each of the words is offered; -WORD: it is not.
expect() {
    local line=$1 all word
    shift
    all=$(offered "$line")
    for word; do
        if [[ $word == no:* ]]; then
            ! grep -qxF -e "${word#no:}" <<<"$all" || { echo "'$line' offers ${word#no:}"; status=1; }
        else
            grep -qxF -e "$word" <<<"$all" || { echo "'$line' doesn't offer $word, but: $all"; status=1; }
        fi
    done
}

expect "kvjit " inspect bundle cache doctor help
expect "kvjit ins" inspect no:bundle
expect "kvjit bundle " create verify no:inspect
expect "kvjit bundle create --" --specs --targets --help no:--emit
expect "kvjit inspect --" --emit --lines --json
expect "kvjit inspect --emit " summary ir-unoptimised sass
expect "kvjit inspect --emit asm,s" asm,source asm,summary
expect "kvjit inspect --target sm_9" sm_90 sm_90a no:host
expect "kvjit inspect op=Merge --program d" decode
expect "kvjit inspect head" head_dim=
expect "kvjit spec list " fields values
expect "kvjit spec list values cache" cache_mode
expect "kvjit completion " bash zsh
expect "kvjit help " inspect bundle
if [[ $shell == bash ]]; then
    expect "kvjit inspect cache_mode=page" page_table # readline has "cache_mode=" as words of their own
    expect "kvjit inspect layout=vllm:L" LBNHC
    expect "kvjit inspect op=Merge,head" Merge,head_dim=
else
    expect "kvjit inspect cache_mode=page" cache_mode=page_table
    expect "kvjit inspect layout=vllm:L" layout=vllm:LBNHC
    expect "kvjit inspect op=Merge,head" op=Merge,head_dim=
    expect "kvjit replay " "files "
    expect "kvjit cache list --cache-dir " "files -/"
fi
exit "$status"
