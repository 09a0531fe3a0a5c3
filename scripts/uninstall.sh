#!/bin/sh
# Removes the files that install.sh has noted, then the folders that it had made, as far as nothing else lies in them.
# usage: uninstall.sh PREFIX; DESTDIR is put in front of all paths if it is set
set -eu
prefix=$1 root=${DESTDIR:-}
list=$root$prefix/share/fovea/installed
if [ ! -f "$list" ]; then
    echo "uninstall: $list is not there: \`make install\` has put nothing below $prefix" >&2
    exit 1
fi
files=$(mktemp)
trap 'rm -f "$files"' EXIT
cp "$list" "$files"
sed -n 's/^file //p' "$files" | while IFS= read -r path; do rm -f "$root$path"; done
rm -f "$list"
sed -n 's/^folder //p' "$files" | LC_ALL=C sort -r | while IFS= read -r path; do
    rmdir "$root$path" 2> /dev/null || true
done
