#!/bin/sh
# The lamp of a microscope grows weak: an alarm is raised while its images come in, and the log of alarms says which.
set -eu
fovea=${FOVEA:-fovea}
cat >quality.fov <<'F'
frames = read("incoming/*.tif")
light = measure(label(frames >= 0), frames, properties = "mean")
write(light, "light.db", table = "light")
alert(light, "mean < 60")
F
mkdir -p incoming
$fovea stream quality.fov --bind frames=watch:incoming --limit 6 --on-alert "cat >> alarms.jsonl" &
stream=$!
for i in 1 2 3 4 5 6; do # the microscope: each image has less light than the one before
    $fovea run -q -e "phantom(\"cells\", [200, 200], seed = $i) / $i |> write(\"incoming/image_$i.tif\")"
done
wait $stream
$fovea sql light.db "SELECT item, mean FROM light ORDER BY item"
echo "alarms: $(wc -l <alarms.jsonl)"
