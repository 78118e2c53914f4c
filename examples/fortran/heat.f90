! Heat flows along a rod that is cut among the ranks. Neighbours exchange their ends before each step.
!
!   mpiboot cc -O2 -o heat examples/fortran/heat.f90
!   mpiboot run -n 4 --workers 2 mpiboot/openmpi -- ./heat
program heat
  use mpi
  implicit none
  integer, parameter :: cells = 100, steps = 50
  double precision :: rod(0:cells + 1), next(cells), mine, total
  integer :: rank, size, left, right, step, length, error
  character(len=MPI_MAX_PROCESSOR_NAME) :: host

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, size, error)
  call MPI_Get_processor_name(host, length, error)
  print '(a,i0,a,i0,2a)', 'rank ', rank, ' of ', size, ' on ', host(:length)

  left = merge(MPI_PROC_NULL, rank - 1, rank == 0)
  right = merge(MPI_PROC_NULL, rank + 1, rank == size - 1)
  rod = 0
  if (rank == 0) rod(1) = 1000
  do step = 1, steps
    rod(0) = rod(1)              ! no heat leaves the rod at its ends
    rod(cells + 1) = rod(cells)
    call MPI_Sendrecv(rod(cells), 1, MPI_DOUBLE_PRECISION, right, 0, rod(0), 1, MPI_DOUBLE_PRECISION, left, 0, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    call MPI_Sendrecv(rod(1), 1, MPI_DOUBLE_PRECISION, left, 1, rod(cells + 1), 1, MPI_DOUBLE_PRECISION, right, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    next = rod(1:cells) + 0.25d0 * (rod(0:cells - 1) - 2 * rod(1:cells) + rod(2:cells + 1))
    rod(1:cells) = next
  end do
  mine = sum(rod(1:cells))
  call MPI_Reduce(mine, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, error)
  if (rank == 0) print '(a,f0.3)', 'all heat is still there: ', total
  call MPI_Finalize(error)
end program heat
