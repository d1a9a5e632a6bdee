/* The host; see the header. Linux's files; elsewhere nothing of it is known. */
#include "exec/machine/host.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

enum { PATH_ROOM = 1024, LINE_ROOM = 1024 };

/* The number behind `key` in a file of lines "key number"; of a file with nothing but a number the key is "". */
static uint64_t read_number(const char *path, const char *key, uint64_t otherwise) {
  char line[LINE_ROOM];
  uint64_t number = otherwise, found;
  FILE *in = fopen(path, "re");
  while (in && fgets(line, sizeof line, in)) {
    if (strncmp(line, key, strlen(key)) != 0 || sscanf(line + strlen(key), "%" SCNu64, &found) != 1) continue;
    number = found;
    break;
  }
  if (in) fclose(in);
  return number;
}

static void lower(sn_host_memory *left, uint64_t bytes, const char *of) {
  if (bytes < left->bytes) *left = (sn_host_memory){bytes, of};
}

static uint64_t minus(uint64_t limit, uint64_t used) {
  return limit > used ? limit - used : 0;
}

/* Without what is free only because it lies in swap. */
static void look_at_machine(sn_host_memory *left) {
  uint64_t kib = read_number("/proc/meminfo", "MemAvailable:", UINT64_MAX);
  if (kib < UINT64_MAX / 1024) lower(left, 1024 * kib, "this machine");
}

static void look_at_limit(sn_host_memory *left) {
  struct rlimit limit;
  long page = sysconf(_SC_PAGESIZE);
  if (page <= 0 || getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  uint64_t pages = read_number("/proc/self/statm", "", 0);
  lower(left, minus(limit.rlim_cur, pages * (uint64_t)page), "the limit on this process (ulimit -v)");
}

/* What files in memory take in the group can be had back. "max" is no number, and no limit. */
static void look_at_group_in(sn_host_memory *left, const char *folder) {
  char path[PATH_ROOM + 32];
  snprintf(path, sizeof path, "%s/memory.max", folder);
  uint64_t limit = read_number(path, "", UINT64_MAX);
  if (limit == UINT64_MAX) return;
  snprintf(path, sizeof path, "%s/memory.current", folder);
  uint64_t used = read_number(path, "", 0);
  snprintf(path, sizeof path, "%s/memory.stat", folder);
  used = minus(used, read_number(path, "inactive_file ", 0));
  lower(left, minus(limit, used), "the container");
}

/* Version 2 has one line, "0::/path"; inside a container the path is that of its own root. */
static void look_at_group(sn_host_memory *left) {
  char line[LINE_ROOM], folder[PATH_ROOM];
  FILE *in = fopen("/proc/self/cgroup", "re");
  while (in && fgets(line, sizeof line, in)) {
    if (strncmp(line, "0::", 3) != 0) continue;
    line[strcspn(line, "\n")] = '\0';
    int length = snprintf(folder, sizeof folder, "/sys/fs/cgroup%s", line + 3);
    if (length > 0 && length < (int)sizeof folder) look_at_group_in(left, folder);
  }
  if (in) fclose(in);
  look_at_group_in(left, "/sys/fs/cgroup");
}

sn_host_memory sn_host_memory_left(void) {
  sn_host_memory left = {UINT64_MAX, "this machine"};
  look_at_machine(&left);
  look_at_limit(&left);
  look_at_group(&left);
  return left;
}

sn_status sn_resident_now(sn_resident *resident, sn_err *err) {
  uint64_t pages = 0, of_files = 0;
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  FILE *in = fopen("/proc/self/statm", "re");
  bool read = in && fscanf(in, "%*u %" SCNu64 " %" SCNu64, &pages, &of_files) == 2;
  if (in) fclose(in);
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  *resident = (sn_resident){pages * page, minus(pages, of_files) * page};
  return read ? SN_OK
              : sn_fail(err, SN_BAD_DEVICE, "/proc/self/statm cannot be read, which says what memory is in use");
}

sn_host_load sn_host_load_now(void) {
  sn_host_load load = {0, 0};
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  FILE *in = fopen("/proc/loadavg", "re");
  if (in && processors > 0 && fscanf(in, "%lf", &load.average) == 1) load.processors = (uint32_t)processors;
  if (in) fclose(in);
  return load;
}
