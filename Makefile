# Thin targets over CMake, Ninja and the scripts. `make` builds build/fovea.
PREFIX ?= /usr/local
MINUTES ?= 30
FUZZ_SECONDS ?= 60
PYTHON ?= /usr/bin/python3
NINJA = nice ninja

all: build/build.ninja
	$(NINJA) -C build

build/build.ninja:
	scripts/bootstrap.sh build
	cmake -S . -B build -G Ninja -DCMAKE_INSTALL_PREFIX=$(PREFIX)

build-asan/build.ninja: build/build.ninja
	cmake -S . -B build-asan -G Ninja -DFV_SANITIZE=address,undefined "-DFV_ISAS=$(SANITIZED_ISAS)"

build-tsan/build.ninja: build/build.ninja
	cmake -S . -B build-tsan -G Ninja -DFV_SANITIZE=thread -DFV_ISAS=base

# Enough to meet every kernel in a vectorised and a plain form.
SANITIZED_ISAS = $(if $(filter x86_64,$(shell uname -m)),base;avx2,base)

# Installs MPICH, Open MPI, HDF5, DCMTK, libcurl, librdkafka, libmicrohttpd and OpenCL if that is possible here, and looks again for them.
mpi: build/build.ninja
	-scripts/bootstrap.sh mpi
	-scripts/bootstrap.sh hdf5
	-scripts/bootstrap.sh dicom
	-scripts/bootstrap.sh remote
	-scripts/bootstrap.sh kafka
	-scripts/bootstrap.sh view
	-scripts/bootstrap.sh opencl
	cmake -S . -B build > build/configured.txt

# Fetches DuckDB's library, which reads and writes Parquet files; everything else works without it.
duckdb: build/build.ninja
	scripts/duckdb.sh build/libraries

# Makes a foam, finds its bubbles, and says where the results are.
demo: all
	scripts/demo.sh

# The Python package with everything it needs, as build/wheel/fovea-*.whl; make python installs it into build/python.
wheel: all
	scripts/bootstrap.sh wheel
	$(PYTHON) scripts/wheel.py build build/wheel

python: wheel
	$(PYTHON) -m venv --system-site-packages build/python
	build/python/bin/pip install --quiet --force-reinstall --no-deps build/wheel/fovea-*.whl
	@echo "build/python/bin/python has the package fovea"

# All tests: plain, on the weakest instruction set, and under the sanitizers. make test TESTS="phantom sqlite" takes a few.
test: mpi all build-asan/build.ninja build-tsan/build.ninja
	scripts/bootstrap.sh build peers
	-scripts/bootstrap.sh pypi
	-scripts/bootstrap.sh slurm
	-scripts/bootstrap.sh programs
	-scripts/bootstrap.sh spark
	-scripts/bootstrap.sh broker
	-scripts/bootstrap.sh check
	-scripts/bootstrap.sh wheel
	-scripts/bootstrap.sh browser
	-scripts/duckdb.sh build/libraries 60
	$(NINJA) -C build tests
	$(NINJA) -C build-asan tests fovea
	$(NINJA) -C build-tsan tests_threads fovea
	$(PYTHON) tests/run.py $(TESTS)

# Every reader on files that a fuzzer makes up: make fuzz FUZZ_SECONDS=600 TARGETS="tif zarr"
fuzz: all
	scripts/bootstrap.sh fuzz
	cmake -S tests/fuzz -B build-fuzz -G Ninja -DCMAKE_C_COMPILER=clang-14
	$(NINJA) -C build-fuzz
	$(PYTHON) tests/fuzz/fuzz.py --seconds $(FUZZ_SECONDS) $(TARGETS)

# The tests that compare with peers, and a sample of these peers' own tests, with the newest versions instead of Debian's.
newer: all
	scripts/bootstrap.sh newer
	FOVEA_PYTHON=build/newer/bin/python $(PYTHON) tests/run.py --groups python peers/ own_tests

# All of scipy's own tests of ndimage, with the functions of fovea.ndimage; make test takes a sample of them.
own_tests: all
	scripts/bootstrap.sh peers
	FOVEA_EVERY=1 $(PYTHON) tests/run.py --groups python own_tests

# The results opened in the programs that people use: napari, Neuroglancer, ImageJ, ParaView, Spark, Dask, R, an imitation of S3.
# What cannot be installed here is skipped by name. make interop TESTS=napari takes one.
interop: mpi all
	-scripts/bootstrap.sh paraview
	-scripts/bootstrap.sh viewers
	-scripts/bootstrap.sh browser
	-scripts/bootstrap.sh interop
	-scripts/bootstrap.sh broker
	-scripts/duckdb.sh build/libraries 60
	FOVEA_LONG=1 $(PYTHON) tests/run.py --groups python $(or $(TESTS),interop/ paraview)

# The fuzz targets, newer peers, a scan larger than memory, then the same tests over and over, to meet what happens rarely:
# make soak MINUTES=60
soak: mpi fuzz build-asan/build.ninja build-tsan/build.ninja
	$(NINJA) -C build tests
	$(NINJA) -C build-asan tests fovea
	$(NINJA) -C build-tsan tests_threads fovea
	-$(MAKE) newer
	FOVEA=build/fovea $(PYTHON) tests/soak/large_scan.py
	-scripts/bootstrap.sh broker
	KILLS=50 $(PYTHON) tests/interop/test_kafka.py kills
	$(PYTHON) tests/soak/long_stream.py $(MINUTES)
	$(PYTHON) tests/soak/random_pipelines.py --minutes $(MINUTES) --seed $$(date +%s)
	$(PYTHON) tests/run.py --minutes $(MINUTES) $(TESTS)

bench: mpi all
	scripts/bootstrap.sh build peers
	$(NINJA) -C build bench
	$(PYTHON) bench/peers.py
	$(PYTHON) bench/peer_filters.py
	$(PYTHON) bench/formats.py
	-scripts/bootstrap.sh pypi
	-scripts/duckdb.sh build/libraries 60
	$(PYTHON) bench/tables.py
	$(PYTHON) bench/peer_measures.py
	$(PYTHON) bench/tomography.py
	$(PYTHON) bench/mpi.py
	$(PYTHON) bench/slurm.py
	$(PYTHON) bench/on_dask.py
	$(PYTHON) bench/scaling.py
	-scripts/bootstrap.sh spark
	$(PYTHON) bench/spark.py
	-scripts/bootstrap.sh browser
	$(PYTHON) bench/view.py --side 1080
	$(PYTHON) bench/view_page.py

# The operator reference and the tables of file formats, from what operators and formats say about themselves.
docs: all
	$(PYTHON) scripts/files_page.py
	$(PYTHON) scripts/operator_pages.py
	$(PYTHON) scripts/plot_pictures.py

# Layers, names, lines, operators known by name, state of the process, format, and what cppcheck finds.
check: all
	scripts/bootstrap.sh check
	$(PYTHON) scripts/layers.py
	$(PYTHON) scripts/operator_names.py
	$(PYTHON) scripts/process_state.py
	$(PYTHON) scripts/doc_names.py
	scripts/format.sh --check
	scripts/cppcheck.sh

install: all
	scripts/install.sh build $(PREFIX)

# Takes away what `make install` with the same PREFIX has put there, and nothing else.
uninstall:
	scripts/uninstall.sh $(PREFIX)

clean:
	rm -rf build build-asan build-tsan build-fuzz

.PHONY: all mpi duckdb demo wheel python test fuzz newer own_tests interop soak bench docs check install uninstall clean
