/* Counts what a process does to the files below a folder, and kills its process group at one of
 * these operations: before it, or, if it is a write, half-way through.
 *
 * Loaded by LD_PRELOAD. It does nothing until torture_begin(FILE) is called, or if TORTURE_COUNTER
 * names FILE when the process starts. FILE is mapped by all processes of a run:
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

struct shared {
    long count;       /* operations so far, of all processes */
    long target;      /* the one at which to kill; 0: never */
    char last[1024];  /* the operation at which it was done */
    char root[1024];  /* the folder */
    char trace[1024]; /* a file for a line per operation; empty: none */
};

static struct shared *shared;
static __thread int inside;

static int (*real_open)(const char *, int, ...);
static ssize_t (*real_write)(int, const void *, size_t);

void torture_begin(const char *file) {
    real_open = dlsym(RTLD_NEXT, "open64");
    real_write = dlsym(RTLD_NEXT, "write");
    int fd = real_open(file, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    void *at = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at != MAP_FAILED) shared = at;
}

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("TORTURE_COUNTER");
    if (file && *file) torture_begin(file);
}

static int below(const char *path) {
    size_t n = strlen(shared->root);
    return strncmp(path, shared->root, n) == 0 && (path[n] == '/' || path[n] == 0);
}

static void full(int at, const char *path, char *out) {
    char where[PATH_MAX];
    if (path[0] == '/') {
        snprintf(out, PATH_MAX, "%s", path);
        return;
    }
    if (at == AT_FDCWD) {
        if (!getcwd(where, sizeof where)) where[0] = 0;
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", at);
        ssize_t n = readlink(link, where, sizeof where - 1);
        where[n > 0 ? n : 0] = 0;
    }
    if (snprintf(out, PATH_MAX, "%s%s%s", where, *path ? "/" : "", path) >= PATH_MAX) out[0] = 0;
}

/* Count an operation; return 1 if it is the one at which to die. */
static int counted(const char *what, int at, const char *path) {
    if (!shared || inside) return 0;
    char name[PATH_MAX];
    inside = 1;
    full(at, path, name);
    int now = 0;
    if (below(name)) {
        long number = __atomic_add_fetch(&shared->count, 1, __ATOMIC_SEQ_CST);
        if (shared->trace[0]) {
            char line[PATH_MAX + 64];
            int n = snprintf(line, sizeof line, "%ld %s %s\n", number, what, name);
            int fd = real_open(shared->trace, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
            if (fd >= 0) {
                if (real_write(fd, line, n) < 0) n = 0;
                close(fd);
            }
        }
        if (number == shared->target) {
            snprintf(shared->last, sizeof shared->last, "%s %.1000s", what, name);
            now = 1;
        }
    }
    inside = 0;
    return now;
}

static void die(void) {
    kill(0, SIGKILL);
    for (;;) pause();
}

static void point(const char *what, int at, const char *path) {
    if (counted(what, at, path)) die();
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = dlsym(RTLD_NEXT, name)

#define WRITES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, #name, const char *, int, ...); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        if (flags & WRITES) point("open", AT_FDCWD, path); \
        return real(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
    int name(int at, const char *path, int flags, ...) { \
        REAL(int, #name, int, const char *, int, ...); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        if (flags & WRITES) point("open", at, path); \
        return real(at, path, flags, mode); \
    }
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int fd, const void *data, size_t n) {
    REAL(ssize_t, "write", int, const void *, size_t);
    if (counted("write", fd, "")) {
        if (n > 1) real(fd, data, n / 2);
        die();
    }
    return real(fd, data, n);
}

#define PWRITE(name) \
    ssize_t name(int fd, const void *data, size_t n, off_t where) { \
        REAL(ssize_t, #name, int, const void *, size_t, off_t); \
        if (counted("write", fd, "")) { \
            if (n > 1) real(fd, data, n / 2, where); \
            die(); \
        } \
        return real(fd, data, n, where); \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

ssize_t writev(int fd, const struct iovec *parts, int n) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    point("write", fd, "");
    return real(fd, parts, n);
}

#define ON_FILE(name) \
    int name(int fd) { \
        REAL(int, #name, int); \
        point(#name, fd, ""); \
        return real(fd); \
    }
ON_FILE(fsync)
ON_FILE(fdatasync)

#define TRUNCATE(name) \
    int name(int fd, off_t n) { \
        REAL(int, #name, int, off_t); \
        point("ftruncate", fd, ""); \
        return real(fd, n); \
    }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

#define ON_PATH(name) \
    int name(const char *path) { \
        REAL(int, #name, const char *); \
        point(#name, AT_FDCWD, path); \
        return real(path); \
    }
ON_PATH(unlink)
ON_PATH(rmdir)

int unlinkat(int at, const char *path, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    point(flags & AT_REMOVEDIR ? "rmdir" : "unlink", at, path);
    return real(at, path, flags);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    point("mkdir", AT_FDCWD, path);
    return real(path, mode);
}

int mkdirat(int at, const char *path, mode_t mode) {
    REAL(int, "mkdirat", int, const char *, mode_t);
    point("mkdir", at, path);
    return real(at, path, mode);
}

#define TWO(name) \
    int name(const char *from, const char *to) { \
        REAL(int, #name, const char *, const char *); \
        point(#name, AT_FDCWD, to); \
        return real(from, to); \
    }
TWO(rename)
TWO(link)
TWO(symlink)

int renameat(int at, const char *from, int there, const char *to) {
    REAL(int, "renameat", int, const char *, int, const char *);
    point("rename", there, to);
    return real(at, from, there, to);
}

int renameat2(int at, const char *from, int there, const char *to, unsigned flags) {
    REAL(int, "renameat2", int, const char *, int, const char *, unsigned);
    point("exchange", there, to);
    return real(at, from, there, to, flags);
}

int linkat(int at, const char *from, int there, const char *to, int flags) {
    REAL(int, "linkat", int, const char *, int, const char *, int);
    point("link", there, to);
    return real(at, from, there, to, flags);
}
