#!/bin/sh
# A tomogram while it is measured: projections are published like a detector does, a stream shows previews and the final slices.
#
#     examples/live_tomography.sh HOST:PORT     a Kafka broker; without one, projections come through a folder
#
# The final slices have the same bits as those of the stored scan.
set -eu
fovea=${FOVEA:-fovea}
broker=${1:-}
cat >tomo.fov <<'F'
p = read("scans/*.tif", axes = "angle z x")
write(fbp(p, parallel(range(0, 179, 2))), "slices/{stem}.tif")
F
mkdir -p scans projections
$fovea run -q -e 'xray(phantom("shepp-logan", [16, 96, 96]), parallel(range(0, 179, 2))) |> write("scans/head.tif")'
if [ -n "$broker" ]; then
    $fovea publish -q scans/head.tif --slices --to "kafka://$broker/tomography" --rate 100/s &
    source=kafka://$broker/tomography
    sleep 1 # until the topic is there
else
    $fovea run -q -e 'read("scans/head.tif") |> write("projections/head_{angle}.tif")'
    source=watch:projections
fi
$fovea stream tomo.fov --bind "p=$source" --scan angle --count 90 --preview every=30 --limit 90
$fovea run -q tomo.fov --into stored
cmp slices/head.tif stored/slices/head.tif
echo "the live slices equal the stored ones"
