#!/bin/sh
# Installs a build, and notes which files it put there and which folders were new, for uninstall.sh.
# usage: install.sh BUILD PREFIX; DESTDIR is put in front of all paths if it is set
set -eu
build=$1 prefix=$2 root=${DESTDIR:-}
list=$root$prefix/share/fovea/installed
before=$(mktemp)
trap 'rm -f "$before"' EXIT
if [ -d "$root$prefix" ]; then find "$root$prefix" -type d | sort > "$before"; fi
cmake --install "$build" --prefix "$prefix"
mkdir -p "$(dirname "$list")"
{
    if [ -f "$list" ]; then cat "$list"; fi # files of an earlier version, too
    sed 's/^/file /' "$build/install_manifest.txt"
    echo
    find "$root$prefix" -type d | sort | comm -13 "$before" - | sed "s|^$root|folder |"
} | grep . | LC_ALL=C sort -u > "$list.new"
mv "$list.new" "$list"
