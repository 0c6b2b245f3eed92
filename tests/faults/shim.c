/* Calls of the C library that fail on demand: loaded with LD_PRELOAD, armed by `fault_arm` through ctypes.

   File calls count only for files below the folder of `fault_folder`, so that imports are not disturbed; allocations
   count everywhere. `fault_count` is the number of calls of the armed kind since `fault_arm`. A call that fails sets
   errno; the n-th write may also write half of its data ("short"). After the n-th call, calls succeed again, unless
   `lasting`, as on a disk that stays full. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NONE, OPEN, READ, WRITE, SHORT_WRITE, FSYNC, RENAME, MAP, CLOSE, LOCK, CHANGE_MODE, SEEK, ALLOCATE };
static atomic_int armed, lasting, error_number;
static atomic_long at, count;
static size_t smallest;  /* bytes of an allocation that counts */
static char folder[4096];
static char inside[4096]; /* descriptors of files below the folder */

void fault_folder(const char *path) { strncpy(folder, path, sizeof folder - 1); }
void fault_arm(int kind, long n, int number, int stays, size_t least) {
    at = n; count = 0; error_number = number; lasting = stays; smallest = least; armed = kind;
}
long fault_count(void) { return count; }

static int fails(int kind) {
    if (armed != kind) return 0;
    long now = ++count;
    if (now == at || (lasting && now > at && at > 0)) { errno = error_number; return 1; }
    return 0;
}
static int is_inside(int fd) { return fd >= 0 && fd < (int)sizeof inside && inside[fd]; }
static int is_below(const char *path) {
    if (!path || !folder[0]) return 0;
    if (path[0] != '/') { /* relative to the current folder */
        static __thread char here[4096];
        return getcwd(here, sizeof here) && !strncmp(here, folder, strlen(folder));
    }
    return !strncmp(path, folder, strlen(folder));
}
#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define OPENING(name, call) \
    if (is_below(path) && fails(OPEN)) return -1; \
    int fd = call; \
    if (fd >= 0 && fd < (int)sizeof inside) inside[fd] = is_below(path); \
    return fd;
int open(const char *path, int flags, ...) {
    REAL(open); va_list list; va_start(list, flags); mode_t mode = va_arg(list, mode_t); va_end(list);
    OPENING(open, real(path, flags, mode))
}
int open64(const char *path, int flags, ...) {
    REAL(open64); va_list list; va_start(list, flags); mode_t mode = va_arg(list, mode_t); va_end(list);
    OPENING(open64, real(path, flags, mode))
}
int openat(int where, const char *path, int flags, ...) {
    REAL(openat); va_list list; va_start(list, flags); mode_t mode = va_arg(list, mode_t); va_end(list);
    OPENING(openat, real(where, path, flags, mode))
}
int dup(int old) {
    REAL(dup); int fd = real(old);
    if (fd >= 0 && fd < (int)sizeof inside) inside[fd] = is_inside(old);
    return fd;
}
int fcntl64(int fd, int command, ...) { /* Python duplicates descriptors so */
    REAL(fcntl64); va_list list; va_start(list, command); void *argument = va_arg(list, void *); va_end(list);
    int found = real(fd, command, argument);
    if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && found >= 0 && found < (int)sizeof inside)
        inside[found] = is_inside(fd);
    return found;
}
int close(int fd) {
    REAL(close); int was = is_inside(fd);
    if (was) inside[fd] = 0;
    int found = real(fd); /* a descriptor is free even where close reports an error */
    return was && fails(CLOSE) ? -1 : found;
}
#define READING(fd) if (is_inside(fd) && fails(READ)) return -1
ssize_t read(int fd, void *data, size_t n) { REAL(read); READING(fd); return real(fd, data, n); }
ssize_t pread(int fd, void *data, size_t n, off_t from) { REAL(pread); READING(fd); return real(fd, data, n, from); }
ssize_t pread64(int fd, void *data, size_t n, off64_t from) {
    REAL(pread64); READING(fd); return real(fd, data, n, from);
}
ssize_t readv(int fd, const struct iovec *parts, int n) { REAL(readv); READING(fd); return real(fd, parts, n); }
ssize_t write(int fd, const void *data, size_t n) {
    REAL(write);
    if (is_inside(fd) && fails(WRITE)) return -1;
    if (is_inside(fd) && n > 1 && fails(SHORT_WRITE)) n /= 2;
    return real(fd, data, n);
}
int fsync(int fd) { REAL(fsync); return is_inside(fd) && fails(FSYNC) ? -1 : real(fd); }
int rename(const char *from, const char *path) {
    REAL(rename); return is_below(path) && fails(RENAME) ? -1 : real(from, path);
}
int chmod(const char *path, mode_t mode) {
    REAL(chmod); return is_below(path) && fails(CHANGE_MODE) ? -1 : real(path, mode);
}
int flock(int fd, int operation) { REAL(flock); return is_inside(fd) && fails(LOCK) ? -1 : real(fd, operation); }
off_t lseek(int fd, off_t to, int whence) { REAL(lseek); return is_inside(fd) && fails(SEEK) ? -1 : real(fd, to, whence); }
off64_t lseek64(int fd, off64_t to, int whence) {
    REAL(lseek64); return is_inside(fd) && fails(SEEK) ? -1 : real(fd, to, whence);
}
static int lacks_memory(size_t n) { return armed == ALLOCATE && n >= smallest && fails(ALLOCATE); }
void *mmap(void *place, size_t n, int protection, int flags, int fd, off_t from) {
    REAL(mmap);
    if ((is_inside(fd) && fails(MAP)) || (fd < 0 && lacks_memory(n))) { errno = error_number; return MAP_FAILED; }
    return real(place, n, protection, flags, fd, from);
}
void *mmap64(void *place, size_t n, int protection, int flags, int fd, off64_t from) {
    REAL(mmap64);
    if ((is_inside(fd) && fails(MAP)) || (fd < 0 && lacks_memory(n))) { errno = error_number; return MAP_FAILED; }
    return real(place, n, protection, flags, fd, from);
}
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
void *malloc(size_t n) { return lacks_memory(n) ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return lacks_memory(n * size) ? NULL : __libc_calloc(n, size); }
void *realloc(void *old, size_t n) { return lacks_memory(n) ? NULL : __libc_realloc(old, n); }
int posix_memalign(void **found, size_t alignment, size_t n) {
    if (lacks_memory(n)) return ENOMEM;
    return (*found = __libc_memalign(alignment, n)) ? 0 : ENOMEM;
}
void *aligned_alloc(size_t alignment, size_t n) { return lacks_memory(n) ? NULL : __libc_memalign(alignment, n); }
