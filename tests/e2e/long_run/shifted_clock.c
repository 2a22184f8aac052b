/* The time of day, shifted by the seconds that a file holds: preloaded into a process whose clock is to be wrong.

   SHIFTED_CLOCK names the file, of one 64-bit integer in the machine's byte order, which is mapped and so read at each
   call. Clocks that nobody sets are left alone. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shift;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("SHIFTED_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *page = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (page != MAP_FAILED) shift = page;
}

int clock_gettime(clockid_t clock, struct timespec *moment) {
    int failed = (int)syscall(SYS_clock_gettime, clock, moment);
    if (!failed && shift && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) moment->tv_sec += *shift;
    return failed;
}

int gettimeofday(struct timeval *restrict moment, void *restrict zone) {
    (void)zone;
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    moment->tv_sec = now.tv_sec;
    moment->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *moment) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    if (moment) *moment = now.tv_sec;
    return now.tv_sec;
}
