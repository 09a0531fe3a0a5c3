#!/bin/sh
# Installs the Debian packages that are missing.
# usage: bootstrap.sh [build|peers|pypi|newer|mpi|hdf5|dicom|remote|opencl|check|fuzz|paraview|slurm ...]
#   build  compiler, CMake and the libraries (the default)
#   peers  the Python packages that tests compare with
#   pypi   a Python environment in build/peers with newer versions of some of them; tests that want it are skipped without it
#   newer  the same in build/newer with the newest versions of what filters and measures are compared with, for `make newer`
#   mpi    MPICH and Open MPI, for runs on several machines; without them everything else works
#   hdf5   the HDF5 library, for such files; without it everything else works
#   dicom  the DCMTK library and its programs, for DICOM files; without it everything else works
#   remote libcurl, for files behind http and s3 addresses; without it everything else works
#   opencl OpenCL and a driver that runs on the processor; without them everything runs there anyway
#   check  what `make check` runs
#   fuzz   Clang with libFuzzer, for `make fuzz` and `make soak`
#   paraview  ParaView and an X server without a screen (540 MB), for the tests that open results in it; skipped without them
#   slurm  a Slurm for the tests to start; where it cannot be installed, they are skipped
# Does nothing when all are there. On other systems it says what is needed.
set -eu

build="build-essential cmake ninja-build pkg-config libtiff-dev libpng-dev libjpeg-dev libisal-dev libzstd-dev libblosc-dev
       libsqlite3-dev libcjson-dev libxxhash-dev zlib1g-dev sqlite3 python3"
peers="python3-numpy python3-scipy python3-skimage python3-nibabel python3-opencv python3-dask python3-distributed python3-zarr
       python3-mrcfile python3-h5py python3-vtk9 python3-pydicom"
pypi="zarr ome-zarr-models pyarrow pandas"
newer="numpy scipy scikit-image opencv-python-headless nibabel astra-toolbox"
mpi="mpich libmpich-dev openmpi-bin libopenmpi-dev"
hdf5="libhdf5-dev"
dicom="libdcmtk-dev dcmtk g++"
remote="libcurl4-openssl-dev"
opencl="ocl-icd-opencl-dev pocl-opencl-icd"
check="cppcheck clang-format python3"
fuzz="clang-14 libclang-rt-14-dev llvm-14"
paraview="paraview python3-paraview xvfb xauth"
slurm="slurm-wlm slurmctld slurmd slurm-client slurmdbd munge mariadb-server"

wanted=
environment=
for set in "${@:-build}"; do
    case $set in
    build) wanted="$wanted $build" ;;
    peers) wanted="$wanted $peers" ;;
    pypi)
        wanted="$wanted python3-venv"
        environment=build/peers packages=$pypi modules="zarr, ome_zarr_models, pyarrow, pandas"
        ;;
    newer)
        wanted="$wanted python3-venv"
        environment=build/newer packages=$newer modules="scipy, skimage, cv2, nibabel, astra"
        ;;
    mpi) wanted="$wanted $mpi" ;;
    hdf5) wanted="$wanted $hdf5" ;;
    dicom) wanted="$wanted $dicom" ;;
    remote) wanted="$wanted $remote" ;;
    opencl) wanted="$wanted $opencl" ;;
    check) wanted="$wanted $check" ;;
    fuzz) wanted="$wanted $fuzz" ;;
    paraview) wanted="$wanted $paraview" ;;
    slurm) wanted="$wanted $slurm" ;;
    *)
        echo "bootstrap.sh: nothing is called $set; the sets of packages are listed at the head of this script" >&2
        exit 2
        ;;
    esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    if command -v cmake >/dev/null && command -v ninja >/dev/null && command -v pkg-config >/dev/null &&
        pkg-config --exists libtiff-4 libpng libjpeg libisal libzstd blosc sqlite3 libcjson libxxhash zlib; then
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
make_environment() {
    [ -n "$environment" ] || return 0
    "$environment/bin/python" -c "import $modules" 2>/dev/null && return 0
    python3=/usr/bin/python3
    [ -x "$python3" ] || python3=python3
    "$python3" -m venv "$environment" && timeout 300 "$environment/bin/pip" install -q --disable-pip-version-check $packages
}

if [ -z "$missing" ]; then
    make_environment
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
make_environment
