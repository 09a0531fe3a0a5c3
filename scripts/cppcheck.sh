#!/bin/sh
# cppcheck over the sources, with the findings that are style or its own misunderstanding left out.
set -eu
cd "$(dirname "$0")/.."
mkdir -p build/cppcheck
echo '#define cJSON_ArrayForEach(e, a) for (e = (a)->child; e; e = (e)->next)' > build/cppcheck/macros.h
exec nice cppcheck --std=c11 --language=c --quiet --error-exitcode=1 --inline-suppr -j 2 --cppcheck-build-dir=build/cppcheck \
    --enable=warning,performance -Isrc -Iinclude -DFV_ISA=base -D_GNU_SOURCE \
    --include=build/cppcheck/macros.h --suppress=ctunullpointer:src/run/results.c \
    --suppress=missingIncludeSystem --suppress=normalCheckLevelMaxBranches --suppress=varFuncNullUB \
    --suppress=invalidPointerCast --suppress=duplicateAssignExpression --suppress=nullPointer:src/graph/graph.c \
    --suppress=nullPointerArithmetic -isrc/plugins/dicom_plugin.cpp src
