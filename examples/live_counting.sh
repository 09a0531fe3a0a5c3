#!/bin/sh
# Cells are counted while a microscope writes its images into a folder.
set -eu
fovea=${FOVEA:-fovea}
cat >count.fov <<'F'
images = read("incoming/*.tif")
cells = label(gaussian(images, 1) > 100)
write(measure(cells, images), "cells.db", table = "cells")
F
mkdir -p incoming
$fovea stream count.fov --bind images=watch:incoming --limit 8 &
stream=$!
for i in 1 2 3 4 5 6 7 8; do # the microscope
    $fovea run -q -e "phantom(\"cells\", [200, 200], seed = $i) |> write(\"incoming/image_$i.tif\")"
done
wait $stream
$fovea sql cells.db "SELECT item, count(*) AS cells FROM cells GROUP BY item ORDER BY item"
