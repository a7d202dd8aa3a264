# The short way in: `make`, `make test`, `make demo`. CMake does the work (see CMakePresets.json); each target first
# installs what is missing, then configures and builds the release preset in build/.

.PHONY: all test demo bench install clean build/configured

all: build/configured
	cmake --build build

build/configured:
	@scripts/setup
	@cmake --preset release $(CMAKE_FLAGS) >build-configure.log 2>&1 || { cat build-configure.log; exit 1; }
	@mv build-configure.log build/configure.log

test: all
	ctest --test-dir build --output-on-failure

# A convolutional network on two GPUs that need not exist: both are emulated on the host's cores, and borrow the variables
# that are at home on /cpu:0.
demo: all
	build/yoke train cifar10 --virtual-gpus 2 --devices gpu:0,gpu:1 --strategy home --epochs 7

bench: all
	bench/run

install: all
	cmake --install build $(if $(PREFIX),--prefix $(PREFIX))

clean:
	rm -rf build build-dev build-asan build-tsan build-clang
