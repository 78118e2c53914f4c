/* Looks up the caller in ways that no shell can: with buffers of every size, and from many threads at once. */
#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 8, LOOKUPS = 500, LARGE = 1024 };

static int is_caller(const struct passwd *entry)
{
    return entry->pw_uid == geteuid() && entry->pw_gid == getegid() && !strcmp(entry->pw_name, "mpiuser") &&
           !strcmp(entry->pw_dir, "/home/mpiuser") && !strcmp(entry->pw_shell, "/bin/bash");
}

static void *look_up_often(void *failures)
{
    char buffer[LARGE];
    struct passwd entry, *found;
    for (int i = 0; i < LOOKUPS; i++) {
        int error = i % 2 ? getpwuid_r(geteuid(), &entry, buffer, LARGE, &found)
                          : getpwnam_r("mpiuser", &entry, buffer, LARGE, &found);
        if (error || !found || !is_caller(found))
            ++*(int *)failures;
    }
    return NULL;
}

int main(void)
{
    /* Too small a buffer is ERANGE and writes nothing beyond it; from some size on it succeeds. */
    int enough = 0, wrong = 0;
    for (int size = 1; size <= LARGE; size++) {
        char *buffer = malloc(size + 1);
        struct passwd entry, *found;
        memset(buffer, 'x', size + 1);
        int error = getpwuid_r(geteuid(), &entry, buffer, size, &found);
        int fits = !error && found && is_caller(found);
        wrong += buffer[size] != 'x' || (fits ? 0 : error != ERANGE || found || enough);
        if (fits && !enough)
            enough = size;
        free(buffer);
    }
    pthread_t threads[THREADS];
    int failures[THREADS] = {0}, failed = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, look_up_often, &failures[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        failed += failures[i];
    }
    printf("enough=%d wrong=%d failed=%d\n", enough, wrong, failed);
    return 0;
}
