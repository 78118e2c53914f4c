# torch of the distribution, for CPUs: the only one without CUDA that package registries hold.
. /kit/lib.sh
# Programs that test torch itself: 63 MB that nothing loads. Its version is the one that torch asks for.
if [ "$MODE" != whole ]; then
    apt -q update
    wanted=$(apt-cache show --no-all-versions python3-torch | grep -o 'libtorch-test \((= [^)]*)\)' | cut -d ' ' -f 2-)
    omit -torch torch "libtorch-test $wanted"
fi
apt_install python3-torch python3-cloudpickle python3-psutil python3-yaml python3-packaging
tidy
