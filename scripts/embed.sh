#!/bin/sh
# Prints a text file as a C string. usage: embed.sh NAME FILE > HEADER
set -eu
echo "/* Made by scripts/embed.sh; do not edit. */"
echo "static const char $1[] ="
sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/    "&\\n"/' "$2"
echo "    ;"
