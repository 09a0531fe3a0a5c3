#!/bin/sh
# Denoising of 1 to 400 NIfTI volumes on every engine: estimate first, then serial, threads, processes, MPI and a job array.
#
#     denoise.sh [COUNT] [SIZE]      COUNT volumes (400) of SIZE voxels (182x218x182), in the current folder
#
# FOVEA names the command. MPI and Slurm are left out, and named, where they are not installed.
set -eu
count=${1:-400}
size=${2:-182x218x182}
fovea=${FOVEA:-fovea}
here=$(cd "$(dirname "$0")" && pwd)
shape=$(echo "$size" | sed 's/x/, /g')
distinct=$((count < 8 ? count : 8)) # volumes; the others are further names of these, so that 400 do not fill the disk

mkdir -p scans
for i in $(seq 0 $((distinct - 1))); do
    [ -e "source$i.nii.gz" ] ||
        $fovea run -q -e "phantom(\"t1\", [$shape], seed = $i) |> convert(\"int16\") |> write(\"source$i.nii.gz\")"
done
for i in $(seq 0 $((count - 1))); do ln -f "source$((i % distinct)).nii.gz" "$(printf 'scans/%04d.nii.gz' "$i")"; done

echo "== estimate"
$fovea estimate "$here/denoise.fov" --seconds 10

for items in 1 4 16 64 "$count"; do
    [ "$items" -le "$count" ] || continue
    for way in "serial --workers 1" "threads" "processes --engine processes"; do
        name=${way%% *}
        options=${way#"$name"}
        # shellcheck disable=SC2086
        $fovea run "$here/denoise.fov" $options --items "$items" --into "out-$name" --store "store-$name" --fresh --json -q |
            sed -n "s/.*\"seconds\":[^0-9]*\([0-9.]*\).*/$items files, $name: \1 s/p"
        rm -rf "out-$name" "store-$name"
    done
done

if command -v mpiexec >/dev/null && $fovea run --help | grep -q mpi; then
    echo "== MPI: ranks 1, 2, 4"
    $fovea scale "$here/denoise.fov" --engine mpi --workers 1,2,4 --repeats 1 -o scaling-mpi -q || echo "MPI: not here"
else
    echo "MPI is left out: no mpiexec, or this build has no engine for it"
fi
if command -v sbatch >/dev/null; then
    echo "== Slurm: a job array (written, not submitted)"
    $fovea submit "$here/denoise.fov" --dry-run
else
    echo "the job array is left out: there is no Slurm here"
fi

echo "== strong and weak scaling on threads"
$fovea scale "$here/denoise.fov" --workers 1,2,4 --strong --weak --repeats 3 -o scaling -q
