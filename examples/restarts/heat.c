/* Heat in a ring, with checkpoints: heat FILE STEPS EVERY [PAUSE]
 *
 * Each rank holds a part of the ring. Every EVERY steps rank 0 writes the whole ring to FILE, and a run that finds FILE
 * goes on from there. So a job that is started again loses at most EVERY steps. PAUSE: milliseconds after each step.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CELLS 1000 /* of each rank */

static void stop(const char *what, const char *file)
{
    fprintf(stderr, "heat: %s %s\n", what, file);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Write to another name, then rename: if a rank dies meanwhile, FILE is whole. */
static void save(const char *file, long step, const double *ring, size_t cells)
{
    char beside[4096];
    snprintf(beside, sizeof beside, "%s.new", file);
    FILE *out = fopen(beside, "wb");
    if (!out) stop("cannot write", beside);
    size_t done = fwrite(&step, sizeof step, 1, out) + fwrite(ring, sizeof *ring, cells, out);
    if (done != cells + 1 || fflush(out) || fsync(fileno(out)) || fclose(out)) stop("cannot write", beside);
    if (rename(beside, file)) stop("cannot write", file);
}

/* The step after which FILE was written; 0 without FILE. */
static long load(const char *file, double *ring, size_t cells)
{
    long step = 0;
    FILE *in = fopen(file, "rb");
    if (!in) return 0;
    if (fread(&step, sizeof step, 1, in) != 1 || fread(ring, sizeof *ring, cells, in) != cells)
        stop("is from another number of ranks:", file);
    fclose(in);
    return step;
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 4) stop("call it as", "heat FILE STEPS EVERY [PAUSE]");
    const char *file = argv[1], *attempt = getenv("MPIBOOT_ATTEMPT");
    long steps = atol(argv[2]), every = atol(argv[3]), pause = argc > 4 ? atol(argv[4]) : 0, first = 0;
    size_t cells = (size_t)size * CELLS;
    double *ring = calloc(cells, sizeof *ring), here[CELLS + 2], next[CELLS];
    if (!ring || every < 1) stop("EVERY must be 1 or more:", argv[3]);

    if (rank == 0) {
        ring[0] = 1e6;
        first = load(file, ring, cells);
        printf("attempt %s begins after step %ld\n", attempt ? attempt : "1", first);
        fflush(stdout);
    }
    MPI_Bcast(&first, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    MPI_Scatter(ring, CELLS, MPI_DOUBLE, here + 1, CELLS, MPI_DOUBLE, 0, MPI_COMM_WORLD);

    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    for (long step = first + 1; step <= steps; step++) {
        MPI_Sendrecv(here + 1, 1, MPI_DOUBLE, left, 0, here + CELLS + 1, 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv(here + CELLS, 1, MPI_DOUBLE, right, 1, here, 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        for (int i = 1; i <= CELLS; i++) next[i - 1] = 0.5 * here[i] + 0.25 * (here[i - 1] + here[i + 1]);
        for (int i = 1; i <= CELLS; i++) here[i] = next[i - 1];
        if (step % every == 0 || step == steps) {
            MPI_Gather(here + 1, CELLS, MPI_DOUBLE, ring, CELLS, MPI_DOUBLE, 0, MPI_COMM_WORLD);
            if (rank == 0) {
                save(file, step, ring, cells);
                printf("checkpoint after step %ld\n", step);
                fflush(stdout);
            }
        }
        if (pause) usleep((useconds_t)pause * 1000);
    }
    if (rank == 0) {
        double weighted = 0;
        load(file, ring, cells);
        for (size_t i = 0; i < cells; i++) weighted += ring[i] * (double)(i % 97);
        printf("result %.17g\n", weighted);
    }
    free(ring);
    MPI_Finalize();
    return 0;
}
