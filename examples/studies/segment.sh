#!/bin/sh
# The study of the image-processing framework papers: 4096 items made from 3 images, strong and weak scaling.
#
#     segment.sh [COUNT] [SIZE] [PIPELINE]      COUNT items (4096) of SIZE pixels squared (512), in the current folder
#
# PIPELINE is segment (smooth, threshold, label, measure), watershed (threshold, distance, peaks, watershed, measure) or blobs
# (blobs_log with 10 scales up to 30).
#
# FOVEA names the command, WORKERS the numbers of workers (1,2,4), ENGINE the engine (threads). Tables and pictures: scaling/.
set -eu
count=${1:-4096}
size=${2:-512}
pipeline=${3:-segment}
fovea=${FOVEA:-fovea}
here=$(cd "$(dirname "$0")" && pwd)

mkdir -p items
for i in 0 1 2; do
    [ -e "source$i.png" ] || $fovea run -q -e "phantom(\"cells\", [$size, $size], seed = $i) |> write(\"source$i.png\")"
done
for i in $(seq 0 $((count - 1))); do ln -f "source$((i % 3)).png" "$(printf 'items/%05d.png' "$i")"; done

$fovea scale "$here/$pipeline.fov" --strong --weak --workers "${WORKERS:-1,2,4}" --engine "${ENGINE:-threads}" -o scaling
