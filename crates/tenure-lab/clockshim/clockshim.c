/*
 * A wall clock that a test can set, for one process: load this with LD_PRELOAD.
 *
 * CLOCK_OFFSET_FILE names a file of eight bytes: by how many microseconds this process sees the wall clock
 * ahead, as a signed integer in the machine's byte order. It is mapped, so whoever writes to the file steps the clock
 * of the running process. Without the variable, or before the file is there, the clock is right.
 *
 * Only the wall clock is moved. CLOCK_MONOTONIC and CLOCK_BOOTTIME are not, as when somebody runs `date -s`.
 * Not covered: programs that ask the kernel by themselves, without libc; those that are linked statically;
 * and what the kernel does with the real time (time-outs of system calls, dates of files).
 *
 * Build: cc -shared -fPIC -O2 -o clockshim.so clockshim.c
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { MICROS_PER_SECOND = 1000000, NANOS_PER_SECOND = 1000000000 };

static const volatile int64_t *shared_offset;

/* Before main, so that no two threads do it at once. */
__attribute__((constructor)) static void map_offset(void)
{
    const char *path = getenv("CLOCK_OFFSET_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED)
        shared_offset = mapped;
}

/* Read once per call: half of one offset and half of another would be a third. */
static int64_t offset_micros(void)
{
    return shared_offset ? *shared_offset : 0;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (result != 0 || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return result;
    int64_t offset = offset_micros();
    int64_t nanos = time->tv_nsec + offset % MICROS_PER_SECOND * 1000;
    time->tv_sec += offset / MICROS_PER_SECOND;
    if (nanos >= NANOS_PER_SECOND) {
        nanos -= NANOS_PER_SECOND;
        time->tv_sec += 1;
    } else if (nanos < 0) {
        nanos += NANOS_PER_SECOND;
        time->tv_sec -= 1;
    }
    time->tv_nsec = nanos;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    (void)zone;
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    now->tv_sec = time.tv_sec;
    now->tv_usec = time.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    if (now)
        *now = time.tv_sec;
    return time.tv_sec;
}
