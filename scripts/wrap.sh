#!/bin/sh
# Wraps lines that are longer than the limit of scripts/layers.py, and touches no others. usage: wrap.sh [FILE ...]
set -eu
cd "$(dirname "$0")/.."
limit=$(sed -n 's/^LONGEST = //p' scripts/layers.py)
[ $# -gt 0 ] || set -- $(git ls-files '*.c' '*.h')
for file; do
    lines=$(awk -v limit="$limit" 'length($0) > limit { printf " --lines=%d:%d", NR, NR }' "$file")
    [ -z "$lines" ] || clang-format -i $lines "$file"
done
