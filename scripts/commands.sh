#!/bin/sh
# Writes the list of commands: whatever src/cli/cmd_*.c define, found by their place.
# usage: commands.sh SOURCE_DIR > commands.c
set -eu
commands=$(find "$1/src/cli" -name 'cmd_*.c' | LC_ALL=C sort | xargs sed -n 's/^const fv_command fv_cmd_\([a-z0-9_]*\).*/\1/p')

echo '/* Made by scripts/commands.sh; do not edit. */'
echo '#include "cli.h"'
for command in $commands; do echo "extern const fv_command fv_cmd_${command};"; done
echo 'const fv_command *const fv__commands[] = {'
for command in $commands; do echo "    &fv_cmd_${command},"; done
echo '    NULL };'
