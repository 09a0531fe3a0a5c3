#!/bin/sh
# Fetches DuckDB's library, which reads and writes Parquet files, through npm's client. usage: duckdb.sh [FOLDER] [SECONDS]
# It is put where fovea looks for it: FOLDER is build/libraries if left out. Does nothing where it is already. Without it
# everything but Parquet works.
set -eu

folder=${1:-build/libraries}
seconds=${2:-120}
version=${DUCKDB_VERSION:-1.5.6-r.1}

[ -e "$folder/libduckdb.so" ] && exit 0
case $(uname -m) in
x86_64) package=@duckdb/node-bindings-linux-x64 ;;
aarch64) package=@duckdb/node-bindings-linux-arm64 ;;
*)
    echo "duckdb.sh: no package for $(uname -m); install libduckdb.so yourself and set FOVEA_DUCKDB to its path" >&2
    exit 1
    ;;
esac
if ! command -v npm >/dev/null; then
    echo "duckdb.sh: npm is missing (Debian: apt-get install npm); or set FOVEA_DUCKDB to the path of a libduckdb.so" >&2
    exit 1
fi
mkdir -p "$folder"
work=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
if ! (cd "$work" && timeout "$seconds" npm pack --silent "$package@$version" >/dev/null && tar -xzf ./*.tgz); then
    echo "duckdb.sh: npm could not fetch $package $version within $seconds s" >&2
    exit 1
fi
mv "$work/package/LICENSE" "$folder/LICENSE.duckdb"
mv "$work/package/libduckdb.so" "$folder/libduckdb.so" # last, and at once: it is there or it is not
