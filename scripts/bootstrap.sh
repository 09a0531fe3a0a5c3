#!/bin/sh
# Installs the Debian packages that are missing.
# usage: bootstrap.sh [build|peers|pypi|newer|mpi|hdf5|dicom|remote|kafka|view|opencl|check|wheel|
#                      fuzz|paraview|viewers|interop|broker|slurm|spark|browser|dask|duckdb|ptychography ...]
#   build  compiler, CMake and the libraries (the default)
#   peers  the Python packages that tests compare with
#   pypi   a Python environment in build/peers with newer versions of some of them; tests that want it are skipped without it
#   newer  the same in build/newer with the newest versions of what filters and measures are compared with, for `make newer`
#   mpi    MPICH and Open MPI, for runs on several machines; without them everything else works
#   hdf5   the HDF5 library, for such files; without it everything else works
#   dicom  the DCMTK library and its programs, for DICOM files; without it everything else works
#   remote libcurl, for files behind http and s3 addresses; without it everything else works
#   kafka  librdkafka, for streams from Kafka and to it; without it everything else works
#   broker kcat, Java and Maven, which fetches a Kafka broker for the tests of streams; they are skipped without it
#   view   libmicrohttpd, for `fovea view` and `fovea watch`, which show things in a browser; without it everything else works
#   opencl OpenCL and a driver that runs on the processor; without them everything runs there anyway
#   check  what `make check` runs, and `make test` where it is installed
#   wheel  what packs the Python package, for `make wheel`
#   fuzz   Clang with libFuzzer, for `make fuzz` and `make soak`
#   paraview  ParaView and an X server without a screen (540 MB), for the tests that open results in it; skipped without them.
#             Its Python, which Debian does not let stand beside VTK's, is unpacked into build/interop/paraview
#   viewers   other programs in which results are opened: ImageJ, R, a browser (480 MB)
#   interop   Python environments in build/interop with napari, Neuroglancer, Spark, Dask and an imitation of S3, and the newest
#             ImageJ, for `make interop`
#   slurm  a Slurm for the tests to start; where it cannot be installed, they are skipped
#   programs  ImageMagick, dcm2niix and MRtrix3, which recipes for programs use; without them their tests are skipped
#   spark  Java, and a Python environment in build/spark with Spark (600 MB); where they cannot be had, its tests are skipped.
#          interop also makes one with the next version of Spark, in build/spark4
#   browser   Chromium, and in build/web what drives it, checks the page of `fovea view` and builds it (npm)
#   dask   a Python environment in build/interop/dask with the newest dask, distributed, dask-image and zarr; interop makes it too
#   duckdb a Python environment in build/duckdb with DuckDB, beside which `bench/approximate.py speed` measures tables
#   ptychography  a Python environment in build/ptychography with pty-chi and cdtools (6 GB, for PyTorch comes with what cards
#          need), beside which `bench/ptychography_peers.py` measures
# Does nothing when all are there. On other systems it says what is needed.
set -eu

build="build-essential cmake ninja-build pkg-config libtiff-dev libpng-dev libjpeg-dev libisal-dev libzstd-dev liblz4-dev
       libblosc-dev
       libsqlite3-dev libcjson-dev libxxhash-dev zlib1g-dev liblzma-dev libcairo2-dev fonts-liberation sqlite3 python3"
peers="python3-numpy python3-scipy python3-skimage python3-nibabel python3-opencv python3-dask python3-distributed python3-zarr
       python3-sklearn python3-pandas python3-mrcfile python3-h5py python3-vtk9 python3-pydicom python3-pytest python3-openpyxl
       python3-xarray python3-nbclient python3-ipykernel mypy"
pypi="zarr ome-zarr-models pyarrow pandas"
moto="moto[s3,server] boto3"
napari="zarr ome-zarr-models ome-zarr tensorstore neuroglancer napari[pyqt5] napari-ome-zarr"
dataframes="pandas pyarrow polars dask[array,dataframe] pyspark==3.5.*"
dask="dask[array,distributed] dask-image scikit-image zarr"
imagej=net.imagej:ij:1.54p
newer="numpy scipy scikit-image opencv-python-headless nibabel astra-toolbox simpleitk pytest hypothesis pooch"
mpi="mpich libmpich-dev openmpi-bin libopenmpi-dev"
hdf5="libhdf5-dev"
dicom="libdcmtk-dev dcmtk g++"
remote="libcurl4-openssl-dev"
kafka="librdkafka-dev"
broker="kcat maven openjdk-17-jre-headless"
view="libmicrohttpd-dev"
opencl="ocl-icd-opencl-dev pocl-opencl-icd"
wheel="patchelf binutils python3-venv python3-numpy"
check="cppcheck clang-format python3"
fuzz="clang-14 libclang-rt-14-dev llvm-14"
paraview="paraview xvfb xauth"
viewers="imagej default-jre maven r-base-core r-cran-rsqlite chromium xvfb xauth libgl1 libegl1 libxkbcommon-x11-0 libdbus-1-3"
spark="pyspark==3.5.* pyarrow pandas scikit-image"
spark4="pyspark==4.* pyarrow pandas"
java="openjdk-17-jre-headless util-linux python3-venv"
programs="imagemagick dcm2niix mrtrix3"
slurm="slurm-wlm slurmctld slurmd slurm-client slurmdbd munge mariadb-server"

wanted=
fetched=
for set in "${@:-build}"; do
    case $set in
    build) wanted="$wanted $build" ;;
    peers) wanted="$wanted $peers" ;;
    pypi)
        wanted="$wanted python3-venv"
        fetched="$fetched pypi"
        ;;
    newer)
        wanted="$wanted python3-venv"
        fetched="$fetched newer"
        ;;
    mpi) wanted="$wanted $mpi" ;;
    hdf5) wanted="$wanted $hdf5" ;;
    dicom) wanted="$wanted $dicom" ;;
    remote) wanted="$wanted $remote" ;;
    kafka) wanted="$wanted $kafka" ;;
    broker) wanted="$wanted $broker" ;;
    view) wanted="$wanted $view" ;;
    opencl) wanted="$wanted $opencl" ;;
    check) wanted="$wanted $check" ;;
    wheel) wanted="$wanted $wheel" ;;
    fuzz) wanted="$wanted $fuzz" ;;
    paraview)
        wanted="$wanted $paraview"
        fetched="$fetched paraview"
        ;;
    viewers) wanted="$wanted $viewers" ;;
    interop)
        wanted="$wanted python3-venv"
        fetched="$fetched moto napari dataframes dask imagej spark spark4"
        ;;
    slurm) wanted="$wanted $slurm" ;;
    programs) wanted="$wanted $programs" ;;
    browser)
        wanted="$wanted chromium"
        command -v npm >/dev/null || wanted="$wanted npm" # it comes with a newer Node.js, or by itself
        fetched="$fetched browser"
        ;;
    dask)
        wanted="$wanted python3-venv"
        fetched="$fetched dask"
        ;;
    duckdb)
        wanted="$wanted python3-venv"
        fetched="$fetched duckdb"
        ;;
    ptychography)
        wanted="$wanted python3-venv"
        fetched="$fetched ptychography"
        ;;
    spark)
        wanted="$wanted $java"
        fetched="$fetched spark"
        ;;
    *)
        echo "bootstrap.sh: nothing is called $set; the sets of packages are listed at the head of this script" >&2
        exit 2
        ;;
    esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    if command -v cmake >/dev/null && command -v ninja >/dev/null && command -v pkg-config >/dev/null &&
        pkg-config --exists libtiff-4 libpng libjpeg libisal libzstd liblz4 blosc sqlite3 libcjson libxxhash zlib; then
        exit 0
    fi
    echo "bootstrap.sh: this is no Debian system. Install what these Debian packages hold:" $wanted >&2
    exit 1
fi

there=$(dpkg-query -W -f='${Package} ${Status}\n' $wanted 2>/dev/null | sed -n 's/ .* ok installed$//p' || true)
missing=
for package in $wanted; do
    echo "$there" | grep -qx "$package" || missing="$missing $package"
done
# make_environment FOLDER MODULES PACKAGE...: a Python environment in which these modules can be imported.
make_environment() {
    folder=$1 modules=$2
    shift 2
    "$folder/bin/python" -c "import $modules" 2>/dev/null && return 0
    python3=/usr/bin/python3
    [ -x "$python3" ] || python3=python3
    "$python3" -m venv "$folder" &&
        timeout 900 "$folder/bin/pip" install -q --disable-pip-version-check --timeout 20 --retries 1 "$@" && return 0
    echo "bootstrap.sh: the Python packages $* could not be fetched; tests that want them are skipped" >&2
    return 1
}

# The Python of ParaView, beside the system's instead of in it.
unpack_paraview() {
    folder=build/interop/paraview
    dpkg-query -W -f='${Status}' python3-paraview 2>/dev/null | grep -q ' installed$' && return 0
    [ -d "$folder/usr" ] && return 0
    mkdir -p "$folder" && (cd "$folder" && apt-get download -q python3-paraview && dpkg -x python3-paraview*.deb . && rm ./*.deb)
}

# scikit-image's own tests are in its source package only. pip fetches and unpacks that, and keeps it when it finds nothing to
# build it with.
fetch_own_tests() {
    folder=build/newer/own_tests
    [ -d "$folder/skimage" ] && return 0
    version=$(build/newer/bin/python -c "import skimage; print(skimage.__version__)") || return 1
    mkdir -p "$folder/fetched"
    TMPDIR="$folder/fetched" timeout 600 build/newer/bin/pip download -q --disable-pip-version-check --no-clean --no-deps \
        --no-build-isolation --no-binary scikit-image --dest "$folder/fetched" "scikit-image==$version" \
        >"$folder/fetched.txt" 2>&1 || true
    found=$(find "$folder/fetched" -type d -path "*/tests/skimage" | head -n 1)
    [ -n "$found" ] && mv "$found" "$folder/skimage"
    rm -rf "$folder/fetched"
    [ -d "$folder/skimage" ] && return 0
    echo "bootstrap.sh: scikit-image's own tests could not be fetched; they are skipped" >&2
    return 1
}

fetch_imagej() {
    [ -n "$(find build/interop/imagej -name 'ij-*.jar' 2>/dev/null)" ] && return 0
    command -v mvn >/dev/null || return 0
    timeout 300 mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:2.8:copy -Dartifact=$imagej \
        -DoutputDirectory="$PWD/build/interop/imagej"
}

# What builds and tests the page of fovea view, in the versions that web/package-lock.json names.
fetch_browser() {
    cmp -s web/package-lock.json build/web/package-lock.json && [ -d build/web/node_modules ] && return 0
    mkdir -p build/web && cp web/package.json build/web/ &&
        (cd build/web && cp ../../web/package-lock.json . &&
            timeout 600 npm ci --ignore-scripts --no-fund --no-audit --loglevel=error >/dev/null) && return 0
    rm -f build/web/package-lock.json
    echo "bootstrap.sh: the npm packages of web/package.json could not be fetched; tests that want them are skipped" >&2
    return 1
}

# What does not come from Debian. One that cannot be had does not keep the others away.
fetch_all() {
    failed=0
    for set in $fetched; do
        case $set in
        pypi) make_environment build/peers "zarr, ome_zarr_models, pyarrow, pandas" $pypi || failed=1 ;;
        newer)
            make_environment build/newer "scipy, skimage, cv2, nibabel, astra, SimpleITK, pytest, hypothesis" $newer || failed=1
            fetch_own_tests || failed=1
            ;;
        moto) make_environment build/interop/moto "moto, boto3" $moto || failed=1 ;;
        napari) make_environment build/interop/napari "napari_ome_zarr, tensorstore, neuroglancer, qtpy" $napari || failed=1 ;;
        dataframes) make_environment build/interop/dataframes "pyspark, dask, polars, pyarrow" $dataframes || failed=1 ;;
        dask) make_environment build/interop/dask "distributed, dask_image, skimage, zarr" $dask || failed=1 ;;
        duckdb) make_environment build/duckdb "duckdb" duckdb || failed=1 ;;
        ptychography) make_environment build/ptychography "ptychi, cdtools" ptychi cdtools-py || failed=1 ;;
        imagej) fetch_imagej || failed=1 ;;
        spark) make_environment build/spark "pyspark, pyarrow, pandas, skimage" $spark || failed=1 ;;
        spark4) make_environment build/spark4 "pyspark, pyarrow, pandas" $spark4 || failed=1 ;;
        paraview) unpack_paraview || failed=1 ;;
        browser) fetch_browser || failed=1 ;;
        esac
    done
    return $failed
}

if [ -z "$missing" ]; then
    fetch_all
    exit
fi

as_root=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "bootstrap.sh: as root, run: apt-get install --no-install-recommends$missing" >&2
        exit 1
    fi
    as_root="sudo"
fi
echo "installing$missing" >&2
$as_root apt-get -o DPkg::Lock::Timeout=600 update -q
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -q --no-install-recommends $missing
fetch_all
