# torch and its CUDA libraries without what only compiling needs, and without libraries that torch does not use: the
# multi-GPU solver (cusolverMg), a second nvrtc ("alt"), the C interface of FFTW, nvblas.
. /kit/lib.sh
sh /whole/install.sh
cd /usr/local/lib/python3*/dist-packages
rm -r torch/include torch/share torch/bin/ptxas torch/bin/protoc* nvidia/*/include
find nvidia torch \( -name '*.a' -o -name '*.bc' \) -delete
cd nvidia/cu13/lib
rm libcusolverMg.so.* libnvrtc.alt.so.* libnvrtc-builtins.alt.so.* libcufftw.so.* libnvblas.so.*
cd ../../..
compile_python /usr/bin/python3 torch torchgen functorch cuda nvidia || true
tidy
