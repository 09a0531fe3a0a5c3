#!/bin/sh
# Makes a foam, measures its bubbles, and says where the results are. Everything happens in build/demo.
set -eu
cd "$(dirname "$0")/.."
fovea=$PWD/build/fovea
example=$PWD/examples/foam.fov
mkdir -p build/demo
cd build/demo

echo "1. a made-up foam of 100 x 400 x 400 voxels: build/demo/foam.tif"
"$fovea" run -e 'phantom("foam", [100, 400, 400], seed = 1) |> write("foam.tif")'
echo
echo "2. its bubbles, by examples/foam.fov:"
sed 's/^/     /' "$example"
"$fovea" run "$example"
echo
echo "3. a picture of every tenth slice"
"$fovea" run -e 'colorize(read("bubbles-12.zarr")[::10]) |> montage(columns = 5) |> write("bubbles.png")'
echo
echo "The ten largest bubbles:"
sqlite3 -column -header bubbles.db 'SELECT label, voxels, round(centroid_z) AS z, round(centroid_y) AS y, round(centroid_x) AS x,
    round(mean, 2) AS mean_grey FROM bubbles ORDER BY voxels DESC LIMIT 10'
echo
echo "All bubbles: build/demo/bubbles.db (table bubbles). Labels: build/demo/bubbles-12.zarr. Picture: build/demo/bubbles.png"
