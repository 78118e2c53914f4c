# mpi4py for the image's python3, and for Debian's where that is another one. Its wheel takes any of the runtimes.
. /kit/lib.sh
for python in $(command -v python3) /usr/bin/python3; do
    # -B: a cache written now would hold the time of this build.
    "$python" -B -c 'import mpi4py' 2>/dev/null || {
        pip_install "$python" "mpi4py==$MPI4PY"
        compile_python "$python" "$("$python" -B -c 'import mpi4py; print(mpi4py.__path__[0])')"
    }
done
tidy
