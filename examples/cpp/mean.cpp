// The mean of random numbers: each rank draws its share, and rank 0 gathers where the ranks ran.
//
//   mpiboot cc -O2 -o mean examples/cpp/mean.cpp
//   mpiboot run -n 4 --workers 2 mpiboot/openmpi -- ./mean
#include <cstdio>
#include <mpi.h>
#include <random>
#include <string>
#include <vector>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size, length;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::string host(MPI_MAX_PROCESSOR_NAME, '\0');
    MPI_Get_processor_name(host.data(), &length);

    constexpr long draws = 1000000;
    std::mt19937_64 source(rank);
    std::uniform_real_distribution<double> between(0.0, 1.0);
    double sum = 0.0, total = 0.0;
    for (long i = 0; i < draws; i++)
        sum += between(source);
    MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);

    std::vector<char> hosts(rank == 0 ? size * host.size() : 0);
    MPI_Gather(host.data(), MPI_MAX_PROCESSOR_NAME, MPI_CHAR, hosts.data(), MPI_MAX_PROCESSOR_NAME, MPI_CHAR, 0,
               MPI_COMM_WORLD);
    if (rank == 0) {
        for (int i = 0; i < size; i++)
            std::printf("rank %d of %d on %s\n", i, size, hosts.data() + i * host.size());
        std::printf("the mean is %.3f\n", total / (static_cast<double>(draws) * size));
    }
    MPI_Finalize();
}
