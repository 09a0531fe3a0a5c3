#!/bin/sh
# Formats every C and C++ file by .clang-format; with --check says only which ones are not, with exit status 1.
set -eu
cd "$(dirname "$0")/.."
way=-i
if [ "${1-}" = --check ]; then way="--dry-run -Werror"; fi
find src include tests bench examples -name '*.[ch]' -o -name '*.cpp' | xargs clang-format $way
