#!/bin/sh
# Prints files as arrays of bytes in C, each named after its file: app.js is app_js. usage: embed_files.sh FILE... > HEADER
set -eu
echo "/* Made by scripts/embed_files.sh; do not edit. */"
for file in "$@"; do
    echo "static const unsigned char $(basename "$file" | tr . _)[] = {"
    od -An -v -tu1 "$file" | sed 's/  */,/g; s/^,//; s/$/,/'
    echo "};"
done
