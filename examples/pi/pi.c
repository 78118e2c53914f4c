/*
 * Pi by the midpoint rule for 4 / (1 + x * x) on [0, 1]: each rank adds up every size-th interval.
 *
 *   mpirun -n 4 pi [INTERVALS]
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double sum_of(long first, long step, long intervals)
{
    double width = 1.0 / (double)intervals, sum = 0.0;
    for (long i = first; i < intervals; i += step) {
        double x = width * ((double)i + 0.5);
        sum += 4.0 / (1.0 + x * x);
    }
    return sum * width;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size, length;
    char host[MPI_MAX_PROCESSOR_NAME];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);

    long intervals = argc > 1 ? strtol(argv[1], NULL, 10) : 10000000;
    if (intervals < 1) {
        if (rank == 0)
            fprintf(stderr, "pi: INTERVALS must be a number of at least 1, is %s\n", argv[1]);
        MPI_Finalize();
        return 2;
    }
    printf("rank %d of %d on %s\n", rank, size, host);
    double begun = MPI_Wtime(), mine = sum_of(rank, size, intervals), pi = 0.0;
    MPI_Reduce(&mine, &pi, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("pi is about %.12f, off by %.1e, %ld intervals, %.3f s\n", pi, fabs(pi - M_PI), intervals,
               MPI_Wtime() - begun);
    MPI_Finalize();
    return 0;
}
