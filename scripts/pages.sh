#!/bin/sh
# Writes the pages of the manual and the completions of shells, as the command tells them.
# usage: pages.sh FOVEA FOLDER
set -eu
fovea=$1 folder=$2
rm -rf "$folder"
mkdir -p "$folder/man"
"$fovea" man --into "$folder/man"
"$fovea" completion bash > "$folder/fovea"
"$fovea" completion zsh > "$folder/_fovea"
"$fovea" completion fish > "$folder/fovea.fish"
touch "$folder/made"
