#!/bin/sh
# Which order of units is best: fovea each runs the same programs in every order and compares makespan, waiting and utilisation.
#
#     units.sh [COUNT] [WORKERS]      COUNT units (60) on WORKERS processors (4), in the current folder
#
# The units only wait, so that more processors can be pretended than there are: most are short, a few are long, every fifth needs
# half of the processors, some need much memory, and they belong to three users, of whom one came first with most of the work.
# FOVEA names the command. Gives units/orders.csv and the pictures units/orders.svg, units/waits.svg and units/starts.svg.
set -eu
count=${1:-60}
workers=${2:-4}
fovea=${FOVEA:-fovea}
mkdir -p units
cd units

awk -v n="$count" -v w="$workers" 'BEGIN {
    print "id,user,seconds,limit,cpus,memory"
    x = 12345
    for (i = 0; i < n; i++) {
        x = (x * 16807) % 2147483647
        u = x / 2147483647
        seconds = 0.05 + 0.15 * u + (u > 0.9 ? 1.0 : 0)
        wide = (i % 5 == 3 && w > 1) ? int(w / 2) : 1
        user = i < n / 2 ? "ana" : (i % 2 ? "ben" : "eva")
        printf "u%03d,%s,%.3f,%.1fs,%d,%dM\n", i, user, seconds, 1.5 * seconds + 0.5, wide, i % 7 ? 100 : 400
    }
}' > units.csv

echo "order,measure,value" > measures.csv
echo "order,makespan,mean_wait,longest_wait_of_a_user,utilisation" > orders.csv
echo "order,user,unit,start,wait" > starts.csv
for order in fifo round-robin backfill longest memory; do
    $fovea each 'sleep {seconds}' --from units.csv --name id --cpus cpus --memory memory --time limit --by user --order "$order" \
        --workers "$workers" --bound 1G --again -q -o "done-$order.csv"
    awk -F, -v order="$order" -v w="$workers" '
        FNR == 1 { file++; for (c = 1; c <= NF; c++) column[$c] = c; next }
        file == 1 { user[$1] = $2; cpus[$1] = $5; next }
        {
            start[$1] = $column["started"]
            took[$1] = $column["seconds"]
            if (!first || start[$1] < first) first = start[$1]
            if (start[$1] + took[$1] > last) last = start[$1] + took[$1]
        }
        END {
            for (id in start) {
                wait = start[id] - first
                total += wait
                of[user[id]] += wait
                number[user[id]]++
                busy += took[id] * cpus[id]
                n++
                printf "%s,%s,%d,%.3f,%.3f\n", order, user[id], substr(id, 2), wait, wait >> "starts.csv"
            }
            for (u in of) if (of[u] / number[u] > worst) worst = of[u] / number[u]
            span = last - first
            printf "%s,%.3f,%.3f,%.3f,%.3f\n", order, span, total / n, worst, busy / span / w >> "orders.csv"
            printf "%s,makespan,%.3f\n%s,mean wait,%.3f\n%s,worst user,%.3f\n", order, span, order, total / n, order, worst >> "measures.csv"
        }' units.csv "done-$order.csv"
done

$fovea run -q -e 'plot(read("measures.csv"), x = "measure", y = "value", by = "order", kind = "bar", title = "Orders of units", y_label = "seconds") |> write("orders.svg")' \
    -e 'plot(read("starts.csv"), x = "order", y = "wait", by = "user", kind = "box", title = "Waiting by user", y_label = "seconds") |> write("waits.svg")' \
    -e 'plot(read("starts.csv"), x = "start", y = "unit", by = "order", kind = "scatter", title = "When units start", x_label = "seconds") |> write("starts.svg")'
column -s, -t orders.csv 2>/dev/null || cat orders.csv
