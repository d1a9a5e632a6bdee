/* Modules; see the header. */
#include "exec/machine/module.h"

#include "base/build_id.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* From the program's folder to that of the installed modules. */
#ifndef SN_MODULE_DIR
#define SN_MODULE_DIR "../lib/snsim"
#endif

enum { PATH_ROOM = PATH_MAX + 256 };

bool sn_module_program_folder(char *folder, size_t room) {
  ssize_t length = readlink("/proc/self/exe", folder, room - 1);
  if (length <= 0) return false;
  folder[length] = '\0';
  char *slash = strrchr(folder, '/');
  if (slash) *slash = '\0';
  return slash != NULL;
}

static bool is_there(char *path, const char *folder, const char *between, const char *file) {
  snprintf(path, PATH_ROOM, "%s/%s%s", folder, between, file);
  return access(path, F_OK) == 0;
}

/* A path with a slash in it: the loader must not search for it. */
static sn_status find(const sn_module *m, char *path, sn_err *err) {
  char folder[PATH_MAX];
  const char *asked = m->variable ? getenv(m->variable) : NULL;
  if (asked) {
    snprintf(path, PATH_ROOM, "%s%s", strchr(asked, '/') ? "" : "./", asked);
    if (access(path, F_OK) == 0) return SN_OK;
    return sn_fail(err, SN_BAD_DEVICE, "the %s module %.200s, which %s names, does not exist", m->name, asked,
                   m->variable);
  }
  if (sn_module_program_folder(folder, sizeof folder) &&
      (is_there(path, folder, "", m->file) || is_there(path, folder, SN_MODULE_DIR "/", m->file)))
    return SN_OK;
  return sn_fail(err, SN_BAD_DEVICE, "there is no %s module (%s): %s", m->name, m->file, m->absent);
}

bool sn_module_is_there(const sn_module *m) {
  char path[PATH_ROOM];
  sn_err err = SN_ERR_INIT;
  return find(m, path, &err) == SN_OK;
}

/* The loader does not name the reason where the system refuses to map a part of a library: with a limit of address
 * space it is that. */
static bool is_short_of_memory(const char *why, bool limited) {
  if (strstr(why, "static TLS")) return false; /* of a table of the loader's own */
  return strstr(why, "annot allocate memory") || (limited && strstr(why, "failed to map segment"));
}

static sn_status fail_to_load(const sn_module *m, const char *why, sn_err *err) {
  char here[60] = "";
  struct rlimit bytes;
  bool limited = getrlimit(RLIMIT_AS, &bytes) == 0 && bytes.rlim_cur != RLIM_INFINITY;
  if (!is_short_of_memory(why, limited))
    return sn_fail(err, SN_BAD_DEVICE, "the %s module cannot be loaded: %.300s. It needs %s", m->name, why, m->needs);
  if (limited) snprintf(here, sizeof here, ", here %llu KiB", (unsigned long long)bytes.rlim_cur / 1024);
  return sn_fail(
      err, SN_NO_MEMORY,
      "there is not enough memory to load the %s module: %.200s; raise the limit (ulimit -v%s) or close other "
      "programs",
      m->name, why, here);
}

const void *sn_module_load(const sn_module *m, sn_err *err) {
  char path[PATH_ROOM];
  if (find(m, path, err) != SN_OK) return NULL;
  void *library = dlopen(path, RTLD_NOW | (m->global ? RTLD_GLOBAL : RTLD_LOCAL));
  if (!library) {
    const char *why = dlerror();
    fail_to_load(m, why ? why : path, err);
    return NULL;
  }
  const sn_module_head *table = dlsym(library, m->table);
  if (table && strcmp(table->build, sn_build_id) == 0) return table;
  if (!table)
    sn_fail(err, SN_BAD_DEVICE, "%.200s is not a %s module of snsim", path, m->name);
  else
    sn_fail(err, SN_BAD_DEVICE,
            "the %s module %.200s is of another build than this program; install both from one build", m->name, path);
  return NULL;
}
