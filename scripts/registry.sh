#!/bin/sh
# Writes the registry of operators, formats and table formats: whatever the sources define, found by their place.
# usage: registry.sh SOURCE_DIR "base avx2 avx512" > registry.c
# Without any instruction set: formats and the kernels that they use, for programs that read files and compute nothing.
set -eu
root=$1
isas=$2

names() { # names FOLDER PATTERN: the words that the pattern's group matches in the folder's C files
    find "$root/src/$1" -name '*.c' | LC_ALL=C sort | xargs sed -n "s/^$2.*/\1/p"
}

ops=$(names ops 'const fv_op FV_OP(\([a-z0-9_]*\))')
estimators=$(names ops 'const fv_estimator FV_ESTIMATOR(\([a-z0-9_]*\))')
formats=$(names formats 'const fv_format fv_format_\([a-z0-9_]*\)')
engines=$(names engines 'const fv_engine fv_engine_\([a-z0-9_]*\)')
tables=$(names tables 'const fv_table_format fv_table_\([a-z0-9_]*\)')

echo '/* Made by scripts/registry.sh; do not edit. */'
echo '#include "run/engine.h"'
echo '#include "op/registry.h"'
[ -n "$isas" ] || { isas=base ops= estimators= engines=; }
for isa in $isas; do
    for op in $ops; do echo "extern const fv_op fv_op_${op}_${isa};"; done
    echo "extern const fv_kernels fv_kernels_${isa};"
    echo "static const fv_op *const ops_${isa}[] = {"
    for op in $ops; do echo "    &fv_op_${op}_${isa},"; done
    echo '    NULL };'
    for op in $estimators; do echo "extern const fv_estimator fv_estimator_${op}_${isa};"; done
    echo "static const fv_named_estimator estimators_${isa}[] = {"
    for op in $estimators; do echo "    { \"${op}\", &fv_estimator_${op}_${isa} },"; done
    echo '    { NULL, NULL } };'
done
echo 'const fv_isa fv__isas[] = {'
for isa in $isas; do echo "    { \"$isa\", ops_${isa}, &fv_kernels_${isa}, estimators_${isa} },"; done
echo '    { NULL, NULL, NULL, NULL } };'
for format in $formats; do echo "extern const fv_format fv_format_${format};"; done
echo 'const fv_format *const fv__formats[] = {'
for format in $formats; do echo "    &fv_format_${format},"; done
echo '    NULL };'
for table in $tables; do echo "extern const fv_table_format fv_table_${table};"; done
echo 'const fv_table_format *const fv__table_formats[] = {'
for table in $tables; do echo "    &fv_table_${table},"; done
echo '    NULL };'
for engine in $engines; do echo "extern const fv_engine fv_engine_${engine};"; done
echo 'extern const fv_engine *const fv__engines[];'
echo 'const fv_engine *const fv__engines[] = {'
for engine in $engines; do echo "    &fv_engine_${engine},"; done
echo '    NULL };'
