/*
 * What ssh and sshd ask of the image around them, which may have nothing of it: they look it up here first.
 *
 *   sshd        the user that sshd drops its rights to before a login; images without sshd lack it
 *   the caller  the user of this process: under its name if /etc/passwd has one, else as `mpiuser`
 *
 * The caller's shell is always /bin/sh: the one in /etc/passwd may be missing, or be nologin. There is no shadow file:
 * logins are by key, and a user without a password would count as locked.
 *
 * A host name that is not found is looked up again for 30 s: a cluster's DNS learns the names of new pods late.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <pwd.h>
#include <shadow.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NOBODY 65534
#define DNS_IS_LATE_BY 30 /* seconds */
#define STRANGER "mpiuser"

static struct passwd made(const char *name, uid_t uid, gid_t gid, const char *home)
{
    return (struct passwd){.pw_name = (char *)name, .pw_passwd = "*", .pw_uid = uid, .pw_gid = gid, .pw_gecos = "",
                           .pw_dir = (char *)home, .pw_shell = "/bin/sh"};
}

static struct passwd *caller(void)
{
    static struct passwd stranger;
    const char *home = getenv("HOME");
    stranger = made(STRANGER, geteuid(), getegid(), home && *home ? home : "/");
    return &stranger;
}

static struct passwd *with_shell(struct passwd *entry)
{
    if (entry && entry->pw_uid == geteuid())
        entry->pw_shell = "/bin/sh";
    return entry;
}

struct passwd *getpwnam(const char *name)
{
    static struct passwd *(*real)(const char *);
    static struct passwd unprivileged;
    if (!real)
        real = (struct passwd * (*)(const char *)) dlsym(RTLD_NEXT, "getpwnam");
    struct passwd *found = real(name);
    if (found)
        return with_shell(found);
    if (strcmp(name, "sshd") == 0) {
        unprivileged = made("sshd", NOBODY, NOBODY, "/");
        return &unprivileged;
    }
    return strcmp(name, STRANGER) == 0 ? caller() : NULL;
}

struct passwd *getpwuid(uid_t uid)
{
    static struct passwd *(*real)(uid_t);
    if (!real)
        real = (struct passwd * (*)(uid_t)) dlsym(RTLD_NEXT, "getpwuid");
    struct passwd *found = real(uid);
    if (found)
        return with_shell(found);
    return uid == geteuid() ? caller() : NULL;
}

struct spwd *getspnam(const char *name)
{
    (void)name;
    return NULL;
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    if (!real)
        real = (int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **)) dlsym(
            RTLD_NEXT, "getaddrinfo");
    struct timespec pause = {.tv_nsec = 500 * 1000 * 1000};
    int error = real(host, service, hints, found);
    int numeric = hints && hints->ai_flags & AI_NUMERICHOST;
    for (int i = 0; i < 2 * DNS_IS_LATE_BY && !numeric && (error == EAI_NONAME || error == EAI_AGAIN); i++) {
        nanosleep(&pause, NULL);
        error = real(host, service, hints, found);
    }
    return error;
}
